"""Output of a dry run: the entries that the bank would write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.output import Listing, show
from fairbank.report.columns import Column, Look, Row, instant_of, left, su, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairbank.cli.framework.context import Context


def _what(row: Row, look: Look) -> str:
    return ", ".join(f"{key} {value}" for key, value in row["details"].items())


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


def show_planned_entries(context: Context, entries: Sequence[Row]) -> None:
    """Print the entries, or that there are none."""
    if not entries and context.options.form is None:
        context.note("Nothing would be posted: this was carried out before, or is so already.")
        return
    columns = [
        column
        for column in ENTRY_COLUMNS
        if any(column.cell(row, context.format) for row in entries)
    ]
    show(
        context,
        Listing(
            "fairbank.entry/1",
            columns,
            entries,
            "Nothing is changed. This would be posted:",
            exact=True,
        ),
    )


def readable_entries(context: Context, planned: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the bank's entries with project and resource, and their details in words."""
    rows: list[dict[str, Any]] = []
    home: Row = {}
    for row in planned:
        moves = row["sign"] is not None
        new = row["allocation"] is None and moves  # into what the entry before opens
        home = home if new else _home(context, row)
        details = {"job": row["job_id"], "cluster": row["cluster"], **_details(context, row)}
        rows.append(
            {
                **row,
                "account": home.get("account"),
                "resource": home.get("resource"),
                "amount": row["amount"] if moves else None,
                "available": row["available"] if "resource" in home else None,
                "details": {key: value for key, value in details.items() if value is not None},
            }
        )
    return rows


def _home(context: Context, row: Row) -> Row:
    """Return the allocation or project that an entry belongs to."""
    said = row["details"] or {}
    match row["kind"]:
        case "member":
            return {"account": context.one(f"/project/{said['project']}")["account"]}
        case "open":
            return {
                "account": context.one(f"/project/{said['project']}")["account"],
                "resource": said["resource"],
            }
        case "project":
            return {"account": said["account"]}
        case _:
            return {} if row["allocation"] is None else context.one(f"/alloc/{row['allocation']}")


def _details(context: Context, row: Row) -> dict[str, object]:
    """Return the details that no column shows."""
    said = dict(row["details"] or {})
    match row["kind"]:
        case "open":
            terms = {**said, "credit_limit": row["credit_limit"]}
            return shown_terms(
                context,
                {
                    key: terms[key]
                    for key in ("category", "start", "end", "shared", "credit_limit")
                    if terms[key]
                },
            )
        case "terms":
            changed = {
                key: instant_of(value) if key in ("start", "end") else value
                for key, value in row["changed"].items()
            }
            return {**shown_terms(context, changed), "undoes": said.get("undoes")}
        case "cap":
            return {
                **said,
                "uid": row["owner_uid"],
                "cap": "none" if said["cap"] is None else context.format.su(said["cap"]),
            }
        case "member":
            return {**said, "role": said["role"] or "none"}
        case "token":
            times = {
                key: context.format.moment(said[key])
                for key in ("expires", "revoked")
                if said[key] is not None
            }
            return {**said, "scopes": ",".join(said["scopes"]), "created": None, **times}
        case _:
            return said


def shown_terms(context: Context, changes: Mapping[str, Any]) -> dict[str, object]:
    """Return changed terms in words."""
    look = context.format
    return {
        key: (
            look.moment(int(value))
            if key in ("start", "end")
            else (
                f"{look.su(value)} SU"
                if key == "credit_limit"
                else ("yes" if value else "no")
                if key == "shared"
                else str(value)
            )
        )
        for key, value in changes.items()
    }
