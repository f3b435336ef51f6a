"""The jobs that the bank said no to, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.choosing import check_listed, rows_of_each
from fairbank.cli.output import Listing, caption, show
from fairbank.cli.people import user_name
from fairbank.core.errors import Malformed
from fairbank.report.columns import Amount, Column, Look, Row, Show, left, moment, su, text

if TYPE_CHECKING:
    from fairbank.cli.desk import Desk


EXPLAINED = 3
ALL = "-a shows all that you may see"


def _reason(row: Row, look: Look) -> str:
    return str(row["reason"]).lower().replace("_", " ")


def short(row: Row, look: Look) -> str:
    """What was lacking, as all that tell it show it."""
    return look.lacking(row["asked"], row["available"])


def if_told(show: Show, field: str = "available") -> Amount:
    """The amount; - for people where the refusal does not tell the field."""
    return Amount(
        lambda row, look: show(row, look) if row[field] is not None else "" if look.exact else "-"
    )


COLUMNS = (
    Column("TIME", moment("at")),
    Column("JOBID", text("job_id"), right=True),
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource"), drop=2),
    Column("ASKED", if_told(su("asked"), "asked"), right=True),
    Column("AVAILABLE", if_told(left("available")), right=True, drop=1),
    Column("SHORT", if_told(short), right=True),
    Column("REASON", _reason, drop=3),
    Column("USER", text("user"), extra=True),
    Column("ALLOC", text("allocation"), right=True, extra=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("REFUSAL", text("id"), right=True, extra=True),
)


def refusals(desk: Desk, query: dict[str, object], limit: int) -> list[Row]:
    """Refusal rows, the newest first, with the user's name; without figures where these are not why the bank said no."""
    return [
        {**row, "user": user_name(row["owner_uid"])}
        for row in rows_of_each(desk, "/failure", query, limit)
    ]


def show_refusals(desk: Desk, owners: list[int] | None) -> int:
    """What `fairbank jobs --refused` shows: the refusals, and what would help."""
    options = desk.options
    if options.partition is not None:
        raise Malformed(
            "a refusal knows no partition",
            field="--partition",
            remedy="leave out -p, or leave out --refused",
        )
    query: dict[str, object] = {
        "account": options.account,
        "owner_uid": owners,
        "allocation": options.alloc,
        "cluster": options.clusters,
        "job_id": options.jobs,
        **desk.period(),
    }
    rows = refusals(desk, query, options.limit)
    check_listed(desk, rows, of_jobs=True)
    notes = _advice_for(desk, rows) if options.form is None else ()
    empty = (
        "No such job was refused, of those that you may see."
        if owners is None
        else f"No such job of yours was refused; {ALL}."
    )
    show(
        desk, Listing("fairbank.failure/1", COLUMNS, rows, caption(desk), notes=notes, empty=empty)
    )
    return 0


def _advice_for(desk: Desk, rows: list[Row]) -> list[str]:
    """What would help each, where they are few; else the newest, and how to ask for another."""
    if len(rows) <= EXPLAINED:
        return [line for row in rows for line in advice(desk, row)]
    return [*advice(desk, rows[0]), "What would help another: fairbank jobs --refused -j JOBID"]


def advice(desk: Desk, row: Row) -> list[str]:
    """What would help, asked for anew: only the bank's answer for one refusal names other projects that could pay."""
    full = desk.one(f"/failure/{row['id']}")
    lines = [f"Job {full['job_id']}: {full['detail']}"]
    return lines + [
        f"  {'or' if place else 'try'}: {remedy}" for place, remedy in enumerate(full["remedies"])
    ]
