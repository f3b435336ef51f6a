"""Dry runs: `?dry-run=true` on every route that changes the ledger.

The request takes the same way with the same checks, up to the ledger itself. If it would be
granted, the response lists the entries that would be written; otherwise it is the same refusal.
"""

from __future__ import annotations

from typing import Any, cast

from litestar import Request, Response

from fairbank.bank.entry import REGISTRY, facts_of
from fairbank.core.units import AMOUNTS, with_texts
from fairbank.rest.context import AppContext
from fairbank.rest.request import DRY_RUN
from fairbank.rest.schemas.alloc import changed_terms
from fairbank.rest.schemas.answers import ListResponse
from fairbank.rest.schemas.envelope import list_response
from fairbank.rest.schemas.statement import PlannedEntry, entry_row
from fairbank.service.dry_run import DryRunEntry, DryRunResult

LISTS_ENTRIES = {"dry_run": "entries"}
"""`opt` of routes whose dry run lists the entries that would be written."""

SAME_RESPONSE = {"dry_run": "response"}
"""`opt` of a route that writes no journal entry: its dry run has the response of the request."""

RESPONSE_SCHEMA = "ListResponse_PlannedEntry_"
"""Name of the response to a dry run in the OpenAPI document."""

_ENTRIES = (
    "true: change nothing; the response lists the entries that would be written now, or is the "
    "refusal"
)
_RESPONSE = "true: change nothing; the response is the one that the request would get now"


def describe_dry_run(operation: dict[str, Any], kind: object) -> None:
    """Add the parameter and the response of a dry run to an operation of the document."""
    is_same_response = kind == SAME_RESPONSE["dry_run"]
    values = {"type": "string", "enum": ["true", "false"], "default": "false"}
    text = _RESPONSE if is_same_response else _ENTRIES
    operation.setdefault("parameters", []).append(
        {"name": DRY_RUN, "in": "query", "schema": values, "required": False, "description": text}
    )
    if is_same_response:
        return
    planned = {"$ref": f"#/components/schemas/{RESPONSE_SCHEMA}"}
    response = operation["responses"].setdefault(
        "200", {"description": "Result of a dry run", "content": {"application/json": {}}}
    )
    content = response["content"]["application/json"]
    content["schema"] = {"anyOf": [content["schema"], planned]} if "schema" in content else planned


def dry_run_response(
    request: Request[Any, Any, Any], result: DryRunResult
) -> Response[ListResponse[PlannedEntry]]:
    """Return the response to a dry run. Its list is empty if the same was carried out before."""
    context = cast("AppContext", request.app.state["context"])
    rows = [_row(planned) for planned in result.entries]
    return Response(list_response(PlannedEntry, context, rows), status_code=200)


def _row(planned: DryRunEntry) -> PlannedEntry:
    """Return an entry without what only writing gives it."""
    entry = planned.entry
    row = entry_row(entry, planned.run)
    fields = {
        name: getattr(row, name) for name in PlannedEntry.__struct_fields__ if hasattr(row, name)
    }
    if entry.allocation == REGISTRY:  # it has no credit
        fields |= dict.fromkeys(AMOUNTS.intersection(fields))
    return PlannedEntry(
        **{**fields, "details": with_texts(_details(planned))},
        allocation=None if planned.opens else entry.allocation or None,
        changed=with_texts(changed_terms(planned.changed)),
    )


def _details(planned: DryRunEntry) -> dict[str, Any] | None:
    """Leave out the number of a new object, which will be another one, and a token's digest."""
    return {
        key: value
        for key, value in facts_of(planned.entry).items()
        if key not in ("digest", planned.numbers)
    } or None
