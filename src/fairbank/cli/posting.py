"""Changing the books with care: what would be posted is shown first, asked about, posted once, and told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.cli.exits import NOT_DONE
from fairbank.cli.foretelling import as_people_read, show_planned
from fairbank.core.errors import Unreachable
from fairbank.report.cells import plain
from fairbank.report.envelope import as_json, as_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.cli.desk import Desk
    from fairbank.report.columns import Row


class Posting(NamedTuple):
    """A request that changes the books, and what is asked before."""

    method: str
    path: str
    body: Any
    question: str


def foretold(desk: Desk, posting: Posting) -> list[dict[str, Any]]:
    """The entries that it would write, by the bank's own word, which gets the very request. Raises the bank's no, if it has one; none
    where the same was carried out before, or is so already."""
    said = getattr(desk.options, "idempotency_key", None)
    answer = _send(desk, posting._replace(path=f"{posting.path}?dry-run=true"), said, said)
    desk.as_of = answer.get("as_of") or desk.as_of
    return as_people_read(desk, answer["data"])


def post(desk: Desk, posting: Posting) -> Row | None:
    """Carry it out and return the bank's answer; None when it was only to be shown, or not agreed to."""
    options = desk.options
    if options.dry_run:
        show_planned(desk, foretold(desk, posting))
        return None
    if not desk.agreed(posting.question):
        desk.note("Nothing was changed.")
        return None
    said = getattr(options, "idempotency_key", None)
    key = said or f"cli-{os.urandom(12).hex()}"
    try:
        answer = _send(desk, posting, key, said)
    except Unreachable as silent:
        if hasattr(options, "idempotency_key") and posting.method in (
            "POST",
            "PATCH",
        ):  # the others may be repeated anyway
            silent.remedy = (
                f"{silent.remedy}; to repeat it without doing it twice add: --idempotency-key {key}"
            )
        raise
    desk.as_of = answer.get("as_of") or desk.as_of
    found: Row = answer["data"]
    return found


def _send(desk: Desk, posting: Posting, key: str | None, said: str | None) -> dict[str, Any]:
    client = desk.client
    match posting.method:
        case "POST":
            return client.post(posting.path, posting.body, key)
        case "PATCH":
            return client.patch(posting.path, posting.body, key)
        case "PUT":
            return client.put(posting.path, posting.body, said)
        case _:
            return client.delete(posting.path, said)


def tell(
    desk: Desk, schema: str, answer: Row | None, sentence: str, warnings: Sequence[str] = ()
) -> int:
    """Say what was done, as a sentence or as the bank's own answer. Returns the exit code."""
    if answer is None:
        _warn(desk, warnings)
        return 0 if desk.options.dry_run else NOT_DONE
    warnings = [*warnings, *answer.get("warnings", ())]
    document: dict[str, Any] = {
        "schema": schema,
        "as_of": desk.as_of,
        "cluster": desk.cluster,
        "data": answer,
        "warnings": list(warnings),
    }
    match desk.options.form:
        case "json":
            desk.say(as_json(document))
        case "yaml":
            desk.say(as_yaml(document))
        case _:
            desk.say(plain(sentence))
            if answer.get("again"):
                desk.note("This was carried out before; nothing more was done.")
            _warn(desk, warnings)
    return 0


def _warn(desk: Desk, warnings: Sequence[str]) -> None:
    for line in warnings:
        desk.note(line)


def numbered(answer: Row | None, sentence: str) -> str:
    """With the number of its entry, where one was written: what is that way already needs none."""
    return f"entry {answer['entry']}: {sentence}" if answer and answer["entry"] else sentence


def moved(desk: Desk, answer: Row | None, what: str, *, of: str = "") -> str:
    """`entry 9913533: deposit of 400 SU into allocation 1043 (chem_qmc/gpu); available 662 SU`, and `of` which allocation."""
    return (
        ""
        if answer is None
        else f"entry {answer['entry']}: {what}; available {desk.look.left(answer['available'])} SU{of}"
    )
