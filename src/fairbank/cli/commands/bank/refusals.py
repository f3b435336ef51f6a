"""Refused jobs and their remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import check_listed, rows_of_each
from fairbank.core.errors import InvalidInput
from fairbank.report.columns import Amount, Column, Look, Row, Show, left, moment, su, text

if TYPE_CHECKING:
    from fairbank.cli.framework.context import Context


EXPLAINED = 3
ALL = "-a shows all that you may see"


def _reason(row: Row, look: Look) -> str:
    return str(row["reason"]).lower().replace("_", " ")


def short(row: Row, look: Look) -> str:
    """Return the shortfall."""
    return look.lacking(row["asked"], row["available"])


def if_told(show: Show, field: str = "available") -> Amount:
    """Return the amount; - in a table if the refusal does not have the field."""
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


def refusals(context: Context, query: dict[str, object], limit: int) -> list[Row]:
    """Return refusal rows, newest first, with the user's name."""
    return [
        {**row, "user": user_name(row["owner_uid"])}
        for row in rows_of_each(context, "/failure", query, limit)
    ]


def show_refusals(context: Context, owners: list[int] | None) -> int:
    """Print the list of `fairbank jobs --refused`, with remedies."""
    options = context.options
    if options.partition is not None:
        raise InvalidInput(
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
        **context.period(),
    }
    rows = refusals(context, query, options.limit)
    check_listed(context, rows, of_jobs=True)
    notes = _advice_for(context, rows) if options.form is None else ()
    empty = (
        "No such job was refused, of those that you may see."
        if owners is None
        else f"No such job of yours was refused; {ALL}."
    )
    show(
        context,
        Listing("fairbank.failure/1", COLUMNS, rows, caption(context), notes=notes, empty=empty),
    )
    return 0


def _advice_for(context: Context, rows: list[Row]) -> list[str]:
    """Return the remedies of each refusal if there are few, else of the newest."""
    if len(rows) <= EXPLAINED:
        return [line for row in rows for line in advice(context, row)]
    return [*advice(context, rows[0]), "What would help another: fairbank jobs --refused -j JOBID"]


def advice(context: Context, row: Row) -> list[str]:
    """Return the remedies of one refusal: only the bank's answer for it names other projects."""
    full = context.one(f"/failure/{row['id']}")
    lines = [f"Job {full['job_id']}: {full['detail']}"]
    return lines + [
        f"  {'or' if place else 'try'}: {remedy}" for place, remedy in enumerate(full["remedies"])
    ]
