"""Command `fairbank balance`: remaining credit of each allocation, and when it runs out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.bank.outlook import OutlookState
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import TOO_LITTLE
from fairbank.cli.framework.listed_values import spread
from fairbank.cli.framework.options import add_accounts, add_option
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import check_listed
from fairbank.core.time import DAY, MINUTE
from fairbank.core.units import WORTH, counted, in_permille, parse_su
from fairbank.report.cells import plain
from fairbank.report.columns import (
    Column,
    DisplayFormat,
    Row,
    Summand,
    if_any,
    instant_of,
    percent,
    su,
    text,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

SOON_DAYS = 14


def about(minutes: int, form: DisplayFormat) -> str:
    """Format an estimate, from 10 units on rounded to at most three significant digits."""
    worth = WORTH[form.units]
    whole = minutes // worth
    step = 10 ** max(0, len(str(whole)) - 3) * worth
    return form.su((2 * minutes + step) // (2 * step) * step if whole >= 10 else minutes)


def show_outlook(row: Row, form: DisplayFormat) -> str:
    """Return the outlook of a balance row in a few words; ! marks one that needs action."""
    state = OutlookState(row["outlook"])
    match state:
        case OutlookState.RUNS_OUT:
            date = form.day(instant_of(row["runs_out"]))
            return f"! {date}" if form.short else f"! about {date}"
        case OutlookState.LASTS | OutlookState.UNUSED:
            mark = "lasts; " if state is OutlookState.LASTS else "! "
            left = about(row["left_over"], form)
            if form.short:
                return f"{mark}~{left} unused"
            return f"{mark}about {form.with_unit(left)} will be unused"
        case OutlookState.EMPTY:
            return "!! empty"
        case OutlookState.TOO_EARLY:
            return "too early" if form.short else "too early to tell"
        case _:
            return str(state.value)


def _runs_out(row: Row, form: DisplayFormat) -> str:
    return "frozen" if row["state"] == "frozen" else show_outlook(row, form)


def _used(row: Row) -> int | None:
    return in_permille(row["charged"], row["deposited"])


def _expires(row: Row, form: DisplayFormat) -> str:
    return form.last_day(instant_of(row["end"]))


class _CreditLimit(Summand):
    """Shows - in a table where the allocation has no credit limit."""

    def __call__(self, row: Row, form: DisplayFormat) -> str:
        return super().__call__(row, form) if row["credit_limit"] or form.exact else "-"


COLUMNS = (
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource")),
    Column("STATE", text("state"), extra=True),
    Column("GRANTED", Summand("granted"), right=True, drop=4),
    Column("LIMIT", _CreditLimit("limit"), right=True, extra=True, drop=4),
    Column("USED", Summand("used"), right=True, drop=2),
    Column("HELD", Summand("held"), right=True, drop=1),
    Column("REMAINING", Summand("remaining"), right=True, extra=True, drop=4),
    Column("MY-CAP", if_any(su("my_cap")), right=True, extra=True, drop=2),
    Column("MY-LEFT", if_any(su("my_left")), right=True, extra=True, drop=1),
    Column("AVAILABLE", su("available"), right=True),
    Column("USED%", percent(_used), right=True, drop=5),
    Column("EXPIRES", _expires, drop=3),
    Column("RUNS-OUT", _runs_out, drop=1),
    Column("ALLOC", text("id"), right=True, extra=True),
    Column("CATEGORY", text("category"), extra=True),
    Column("DAYS-LEFT", text("days_left"), right=True, extra=True),
    Column("PACE-PER-DAY", su("pace"), right=True, extra=True),
    Column("MINE", su("my_charged"), right=True, extra=True),
)
_SHOWN_IF: Mapping[str, Callable[[Row], bool]] = {
    "STATE": lambda row: row["state"] != "active",
    "LIMIT": lambda row: row["credit_limit"] > 0,
    "REMAINING": lambda row: row["remaining"] != row["available"],
    "MY-CAP": lambda row: row["my_cap"] is not None,
    "MY-LEFT": lambda row: row["my_cap"] is not None,
}
"""Extra columns that a table shows for some rows: without them rows would not add up."""


def columns(rows: Sequence[Row]) -> list[Column]:
    """Return the columns of a table of these rows."""
    return _with(head for head, needs in _SHOWN_IF.items() if any(map(needs, rows)))


def _with(heads: Iterable[str]) -> list[Column]:
    """Return the columns; these are no longer extra."""
    shown = set(heads)
    return [column._replace(extra=column.extra and column.head not in shown) for column in COLUMNS]


def add(parser: Parser) -> None:
    add_accounts(parser)
    add_option(parser, "-a, --all", "also the earlier ones of those that have ended")
    threshold = (
        "exit code 5 unless I may use at least N of each active or frozen allocation shown, and one"
        " is shown (100, 90m, 20k)"
    )
    add_option(parser, "--threshold N", threshold)


def run(context: Context, options: Namespace) -> int:
    least = None if options.threshold is None else parse_su(options.threshold, field="--threshold")
    query = {"account": options.account, "resource": options.resource, "all": options.all or None}
    rows = balances(context, query)
    check_listed(context, rows)
    form = context.format
    judged = [row for row in rows if row["state"] in ("active", "frozen")]
    short = [row for row in judged if least is not None and row["available"] < least]
    warnings = warnings_of(context, rows)
    warnings += [
        f"{_name(row)}: you may use {form.su_text(row['available'])}, less than"
        f" {form.for_sentences.su(least or 0)}"
        for row in short
    ]
    notes = _one_su(rows)
    if any(row["held"] for row in rows):
        notes += ["HELD is set aside for running jobs; what they do not use comes back."]
    listing = Listing(
        "fairbank.balance/1",
        # A script gets the same columns for all data.
        columns(rows) if options.form is None else _with(_SHOWN_IF),
        rows,
        caption(context),
        warnings=warnings,
        notes=notes,
        empty="There is no allocation that you may see.",
    )
    show(context, listing)
    return TOO_LITTLE if least is not None and (short or not judged) else 0


def balances(context: Context, query: Mapping[str, object]) -> Sequence[Row]:
    """Return the balance rows, sorted by project and resource."""
    rows = [row for one in spread(query) for row in context.rows("/balance", one)]
    return sorted(rows, key=lambda row: (row["account"], row["resource"], row["start"]))


def _one_su(rows: Sequence[Row]) -> list[str]:
    """Return what one SU of each resource buys, of measured use if no partition bills it."""
    texts = {
        str(row["resource"]): f"{plain(str(row['one_su']))} for an hour."
        if row["one_su"]
        else "1 TiB for a day of measured use; no partition bills it."
        for row in rows
    }
    return [f"1 SU of {plain(name)} = {texts[name]}" for name in sorted(texts)]


def _name(row: Row) -> str:
    return f"{row['account']}/{row['resource']}"


def warnings_of(context: Context, rows: Sequence[Row]) -> list[str]:
    """Return the warnings about the allocations of `/balance`."""
    now, form = context.bank_time, context.format
    return [line for row in rows for line in row_warnings(row, now, form)]


def row_warnings(row: Row, now: int, form: DisplayFormat) -> list[str]:
    """Return why an allocation cannot be used, or is used too fast or too slowly.

    Args:
        row: an allocation of `/balance`.
        now: the bank's time in seconds since 1970, from which the time left is counted.
        form: the unit of amounts, and the time zone of dates.
    """
    if row["state"] != "active":
        return [_state(row, form)]
    return [line for line in (_cap(row, form), _outlook(row, now, form)) if line]


def _state(row: Row, form: DisplayFormat) -> str:
    """Return the state of an allocation, since when, and the reason that staff gave, for a planned
    one that of its grant.
    """
    of_grant = "; reason of the grant" if row["state"] == "planned" else ""
    reason = f"{of_grant}: {row['state_reason']}" if row["state_reason"] else ""
    match row["state"]:
        case "planned":
            since = f"planned, begins {form.moment(instant_of(row['start']))}"
        case "ended":
            since = f"ended {form.moment(instant_of(row['state_since']))}"
        case state:
            since = f"{state} since {form.moment(instant_of(row['state_since']))}"
    return f"! {_name(row)}: {since}{reason}"


def _cap(row: Row, form: DisplayFormat) -> str | None:
    """Return how much the user's cap leaves, if it is less than the allocation has, or how far
    the user is above it.
    """
    form = form.for_sentences
    is_above = row["my_cap"] is not None and row["my_left"] < 0
    if row["available"] == row["remaining"] and not is_above:
        return None
    cap, _, used, held, left = form.sums(
        *(row[key] for key in ("my_cap", "my_charged", "my_held", "my_left"))
    )
    if row["available"] == row["remaining"]:
        return f"{_name(row)}: you used {used} and hold {held} of your cap of {form.with_unit(cap)}"
    return (
        f"{_name(row)}: {form.su_text(row['remaining'])} remain, but your cap is"
        f" {cap}: you used {used} and hold {held}, {left} left"
    )


def _outlook(row: Row, now: int, form: DisplayFormat) -> str | None:
    """Return a warning with a command that every user of the allocation may run."""
    usage = f"fairbank usage --alloc {row['id']}"
    since = form.day(instant_of(row["start"]))
    match OutlookState(row["outlook"]):
        case OutlookState.RUNS_OUT:
            seconds = instant_of(row["runs_out"]) - now
            if seconds >= SOON_DAYS * DAY:
                return None
            pace = f"the mean pace since {since}"
            return f"! {_name(row)}: empty in {_time_left(seconds)} at {pace}.  See: {usage}"
        case OutlookState.EMPTY if row["charged"] or row["held"]:
            # Without a price no partition bills it, and no jobs use it.
            effect = "new jobs are refused" if row["one_su"] else "further use has no credit"
            shown = form.for_sentences.sums(
                row["deposited"], row["charged"], row["held"], row["remaining"]
            )
            holding = (
                f" while running jobs hold {form.with_unit(shown.held)}" if row["held"] else ""
            )
            return f"!! {_name(row)}: empty{holding}; {effect}.  See: {usage} -S {since}"
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
