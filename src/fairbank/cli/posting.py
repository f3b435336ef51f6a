"""Changing the books with care: what would be posted is shown first, asked about, posted once, and told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.cli.output import Listing, show
from fairbank.report.cells import plain
from fairbank.report.columns import Column, Look, Row, left, su, text
from fairbank.report.envelope import as_json, as_yaml
from fairbank.values.trouble import Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairbank.cli.desk import Desk

NOT_DONE = 1
_NOTHING: Mapping[str, object] = {}


def _what(row: Row, look: Look) -> str:
    return ", ".join(f"{key} {value}" for key, value in row["details"].items() if value is not None)


ENTRY_COLUMNS = (
    Column("KIND", text("kind")),
    Column("ALLOC", text("allocation"), right=True),
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource"), drop=2),
    Column("AMOUNT", su("amount"), right=True),
    Column("AVAILABLE", left("available"), right=True),
    Column("DETAILS", _what),
    Column("REASON", text("comment"), drop=1),
)


class Posting(NamedTuple):
    """A request that changes the books, and the entries that it will add to the journal. `done` tells of the answer."""

    method: str
    path: str
    body: Any
    entries: Sequence[Row]
    question: str


def entry(
    kind: str, comment: str | None, details: Mapping[str, object] = _NOTHING, *, allocation: Row | None = None, amount: int | None = None
) -> dict[str, Any]:
    """An entry to be: what it does to an allocation, as far as we can know. Signed amounts change what is available."""
    found = allocation or {}
    return {
        "kind": kind,
        "allocation": found.get("id"),
        "account": found.get("account"),
        "resource": found.get("resource"),
        "amount": None if amount is None else abs(amount),
        "available": None if amount is None or not found else found["available"] + amount,
        "details": dict(details),
        "comment": comment,
    }


def foretold(desk: Desk, path: str, body: Row, books: Sequence[Row]) -> list[dict[str, Any]]:
    """The entries that posting `body` would write to `books`, by the bank's own word. Raises its no, if it has one; none where the same
    was carried out before."""
    homes = {row["id"]: row for row in books}
    rows = desk.get(path, body, desk.options.idempotency_key)["data"]
    return [
        entry(row["kind"], row["comment"], row["details"] or {}, allocation=homes[row["allocation"]], amount=row["amount"])
        | {"available": row["available"]}
        for row in rows
    ]


def post(desk: Desk, posting: Posting) -> Row | None:
    """Carry it out and return the bank's answer; None when it was only to be shown, or not agreed to."""
    options = desk.options
    if options.dry_run and not posting.entries and options.form is None:
        desk.note("Nothing would be posted: this was carried out before, under the same key.")
        return None
    if options.dry_run:
        columns = [column for column in ENTRY_COLUMNS if any(column.cell(row, desk.look) for row in posting.entries)]
        show(desk, Listing("fairbank.entry/1", columns, posting.entries, "Nothing is changed. This would be posted:", exact=True))
        return None
    if not desk.agreed(posting.question):
        desk.note("Nothing was changed.")
        return None
    said = getattr(options, "idempotency_key", None)
    key = said or f"cli-{os.urandom(12).hex()}"
    try:
        answer = _send(desk, posting, key, said)
    except Unreachable as silent:
        if hasattr(options, "idempotency_key") and posting.method in ("POST", "PATCH"):  # the others may be repeated anyway
            silent.remedy = f"{silent.remedy}; to repeat it without doing it twice add: --idempotency-key {key}"
        raise
    desk.as_of = answer.get("as_of") or desk.as_of
    found: Row = answer["data"]
    return found


def _send(desk: Desk, posting: Posting, key: str, said: str | None) -> dict[str, Any]:
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


def tell(desk: Desk, schema: str, answer: Row | None, sentence: str, warnings: Sequence[str] = ()) -> int:
    """Say what was done, as a sentence or as the bank's own answer. Returns the exit code."""
    if answer is None:
        _warn(desk, warnings)
        return 0 if desk.options.dry_run else NOT_DONE
    document: dict[str, Any] = {"schema": schema, "as_of": desk.as_of, "cluster": desk.cluster, "data": answer, "warnings": list(warnings)}
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


def moved(desk: Desk, answer: Row | None, what: str) -> str:
    """`entry 9913533: deposit of 400 SU into allocation 1043 (chem_qmc/gpu); available 662 SU`."""
    return "" if answer is None else f"entry {answer['entry']}: {what}; available {desk.look.left(answer['available'])} SU"
