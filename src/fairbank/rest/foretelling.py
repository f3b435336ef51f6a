"""Dry runs: whatever changes the books in somebody's name takes `?dry-run=true`, and goes the same way with the same checks up to the
bank's own word. What would be granted is answered by the entries that would be written; what would be refused is refused."""

from __future__ import annotations

from typing import Any, cast

from litestar import Request, Response

from fairbank.bank.entry import facts_of
from fairbank.rest.asking import DRY_RUN
from fairbank.rest.bodies.answers import Listing, PlannedEntry
from fairbank.rest.house import House
from fairbank.rest.views import changed_terms, entry_row, listing
from fairbank.service.dry_run import DryRunEntry, DryRunResult

FORETOLD = {"foretold": True}
"""The `opt` of routes whose requests can be foretold."""

FORETOLD_IN_ITS_WORDS = {"foretold": "in its words"}
"""The same of a route that writes nothing into the journal: its answer to a dry run is the one that the same request would get."""

PLANNED = "Listing_PlannedEntry_"
"""What the document calls the answer to a dry run."""

_ABOUT = "true: nothing is changed; the answer tells the entries that would be written now, or is the refusal"
_IN_ITS_WORDS = (
    "true: nothing is changed; the answer is the one that the same request would get now"
)


def described(operation: dict[str, Any], foretold: object) -> None:
    """Put into the document that the operation takes a dry run, as its `opt` has it, and what is answered then."""
    in_its_words = foretold == FORETOLD_IN_ITS_WORDS["foretold"]
    words = {"type": "string", "enum": ["true", "false"], "default": "false"}
    about = _IN_ITS_WORDS if in_its_words else _ABOUT
    operation.setdefault("parameters", []).append(
        {"name": DRY_RUN, "in": "query", "schema": words, "required": False, "description": about}
    )
    if in_its_words:
        return
    planned = {"$ref": f"#/components/schemas/{PLANNED}"}
    answer = operation["responses"].setdefault(
        "200", {"description": "What would be done", "content": {"application/json": {}}}
    )
    content = answer["content"]["application/json"]
    content["schema"] = {"anyOf": [content["schema"], planned]} if "schema" in content else planned


def told(
    request: Request[Any, Any, Any], foretold: DryRunResult
) -> Response[Listing[PlannedEntry]]:
    """The answer to a dry run; no entries where it was carried out before under the same key, or is so already."""
    house = cast("House", request.app.state["house"])
    return Response(
        listing("planned-entry", house.services.clock, [_row(each) for each in foretold.entries]),
        status_code=200,
    )


def _row(planned: DryRunEntry) -> PlannedEntry:
    """An entry that would be written: as it is shown later, but for what only writing gives it."""
    entry = planned.entry
    row = entry_row(entry, planned.run)
    fields = {
        name: getattr(row, name) for name in PlannedEntry.__struct_fields__ if hasattr(row, name)
    }
    return PlannedEntry(
        **{**fields, "details": _details(planned)},
        allocation=None if planned.opens else entry.book or None,
        changed=changed_terms(planned.changed),
    )


def _details(planned: DryRunEntry) -> dict[str, Any] | None:
    """Without the number of what is new, for it will have another; nor what a token is known by."""
    return {
        key: value
        for key, value in facts_of(planned.entry).items()
        if key not in ("digest", planned.numbers)
    } or None
