"""Command `fairbank balance`: remaining credit of each allocation, and when it runs out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.bank.outlook import OutlookState
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import TOO_LITTLE
from fairbank.cli.framework.options import add_accounts, add_option
from fairbank.cli.framework.output import Listing, caption, show, wants
from fairbank.cli.framework.selectors import check_listed, spread
from fairbank.core.time import DAY, MINUTE
from fairbank.core.units import MINUTES_IN_SU, WORTH, parse_su, show_su
from fairbank.report.cells import counted
from fairbank.report.columns import (
    Column,
    DisplayFormat,
    Row,
    Summand,
    day,
    instant_of,
    percent,
    su,
    text,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

SOON_DAYS = 14
_WHOLE = 100 * MINUTES_IN_SU


def about(minutes: int, form: DisplayFormat) -> str:
    """Format an estimate with at most three significant digits, truncated."""
    worth = WORTH[form.units]
    whole = minutes // worth
    step = 10 ** max(0, len(str(whole)) - 3)
    return form.su(whole // step * step * worth if whole >= 10 else minutes)


def show_outlook(row: Row, form: DisplayFormat) -> str:
    """Return the outlook of a balance row in a few words; ! marks one that needs action."""
    state = OutlookState(row["outlook"])
    match state:
        case OutlookState.RUNS_OUT:
            date = form.day(instant_of(row["runs_out"]))
            return f"! {date}" if form.short else f"! about {date}"
        case OutlookState.LASTS:
            left = about(row["left_over"], form)
            return f"no, {left} left" if form.short else f"no, about {left} left over"
        case OutlookState.UNUSED:
            left = about(row["left_over"], form)
            return f"! {left} lost" if form.short else f"! {left} will expire unused"
        case OutlookState.EMPTY:
            return "!! empty"
        case OutlookState.TOO_EARLY:
            return "too early" if form.short else "too early to tell"
        case _:
            return str(state.value)


def _runs_out(row: Row, form: DisplayFormat) -> str:
    """Return the outlook; its amount is as precise as the row's other amounts."""
    whole = form.short and form.units == "h" and row["deposited"] >= _WHOLE
    return show_outlook(row, form._replace(decimals=0) if whole else form)


def _pace(row: Row, form: DisplayFormat) -> str:
    return f"{form.su(row['pace'])}/d" if row["pace"] or form.exact else "-"


class _CreditLimit(Summand):
    """Shows - in a table where the allocation has no credit limit."""

    def __call__(self, row: Row, form: DisplayFormat) -> str:
        return super().__call__(row, form) if row["credit_limit"] or form.exact else "-"


WITHOUT_MINE = (
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource")),
    Column("GRANTED", Summand("granted"), right=True, drop=4, brief=True),
    Column("LIMIT", _CreditLimit("limit"), right=True, extra=True, drop=4, brief=True),
    Column("USED", Summand("used"), right=True, drop=2, brief=True),
    Column("HELD", Summand("held"), right=True, drop=1, brief=True),
    Column("AVAILABLE", Summand("available"), right=True, brief=True),
    Column("USED%", percent("used_percent"), right=True, drop=5),
    Column("EXPIRES", day("end"), drop=3),
    Column("RUNS-OUT", _runs_out, drop=1),
    Column("ALLOC", text("id"), right=True, extra=True),
    Column("CATEGORY", text("category"), extra=True),
    Column("LEFT", lambda row, form: f"{row['days_left']} d", right=True, extra=True),
    Column("PACE", _pace, right=True, extra=True, brief=True),
    Column("STATE", text("state"), extra=True),
)
COLUMNS = (*WITHOUT_MINE, Column("MINE", su("mine"), right=True, extra=True))


def add(parser: Parser) -> None:
    add_accounts(parser)
    add_option(parser, "-a, --all", "also allocations that are frozen, have ended or begin later")
    about = "exit code 5 unless each allocation shown has at least N left (100, 90m, 20k)"
    add_option(parser, "--threshold N", about)


def run(context: Context, options: Namespace) -> int:
    least = None if options.threshold is None else parse_su(options.threshold, field="--threshold")
    query = {"account": options.account, "resource": options.resource, "all": options.all or None}
    rows = balances(context, query)
    check_listed(context, rows)
    if rows and wants(context, COLUMNS, "MINE"):
        rows = _with_mine(context, rows)
    short = [row for row in rows if least is not None and row["available"] < least]
    warnings = [line for row in rows if (line := _warning(row, context.bank_time, context.format))]
    warnings += [
        f"{_name(row)} has {show_su(row['available'], down=True)} SU left, less than"
        f" {show_su(least or 0)}"
        for row in short
    ]
    notes = []
    if any(row["held"] for row in rows):
        notes = ["HELD is set aside for running jobs; what they do not use comes back."]
    empty = (
        "There is no allocation that you may see."
        if options.all
        else "There is no active allocation that you may see; --all shows also those that have"
        " ended or begin later."
    )
    listing = Listing(
        "fairbank.balance/1",
        _columns(rows),
        rows,
        caption(context),
        warnings=warnings,
        notes=notes,
        empty=empty,
    )
    show(context, listing)
    return TOO_LITTLE if least is not None and (short or not rows) else 0


def _columns(rows: Sequence[Row]) -> tuple[Column, ...]:
    """Return the columns, with the credit limit if there is one: else rows would not add up."""
    lent = any(row["credit_limit"] for row in rows)
    return tuple(
        column._replace(extra=False) if lent and column.head == "LIMIT" else column
        for column in COLUMNS
    )


def balances(context: Context, query: Mapping[str, object]) -> Sequence[Row]:
    """Return the balance rows, sorted by project and resource."""
    rows = [row for one in spread(query) for row in context.rows("/balance", one)]
    return sorted(rows, key=lambda row: (row["account"], row["resource"], row["start"]))


def _with_mine(context: Context, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows with the user's own net charges, where the user may see them."""
    me = context.me()
    seen = {row["id"] for row in context.rows("/project")}
    mine = {
        row["allocation_id"]: row["amount"] for row in context.rows("/debit", {"owner_uid": me})
    }
    return [
        {**row, "mine": mine.get(row["id"], 0) if row["project"] in seen else None} for row in rows
    ]


def _name(row: Row) -> str:
    return f"{row['account']}/{row['resource']}"


def _warning(row: Row, now: int, form: DisplayFormat) -> str | None:
    """Return a warning with a command that every user of the allocation may run."""
    usage = f"fairbank usage --alloc {row['id']}"
    match OutlookState(row["outlook"]):
        case OutlookState.RUNS_OUT:
            seconds = instant_of(row["runs_out"]) - now
            if seconds >= SOON_DAYS * DAY:
                return None
            return f"! {_name(row)}: at this pace empty in {_time_left(seconds)}.  See: {usage}"
        case OutlookState.EMPTY if row["charged"]:
            since = form.day(instant_of(row["start"]))
            return f"!! {_name(row)}: empty; new jobs are refused.  See: {usage} -S {since}"
        case OutlookState.UNUSED:
            left = _time_left(instant_of(row["end"]) - now)
            return f"! {_name(row)}: under-used, {left} left.  See: {usage} --by month"
        case _:
            return None


def _time_left(seconds: int) -> str:
    """Return whole days; below one day whole hours, at least one."""
    if seconds >= DAY:
        return counted(seconds // DAY, "day")
    return counted(max(1, seconds // (60 * MINUTE)), "hour")


COMMAND = Command(
    "show available credit, and when it runs out",
    (
        "fairbank balance                           all that I may draw on",
        "fairbank balance -A chem_qmc -r gpu -l     one allocation, with all columns",
        "fairbank balance -A chem_qmc --threshold 100 && sbatch job.sh",
    ),
    add,
    run,
    watch=True,
    columns=COLUMNS,
)
