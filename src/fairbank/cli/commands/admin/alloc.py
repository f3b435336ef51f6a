"""Command `fairbank alloc`: list and show allocations. `alloc_terms` changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.alloc_terms import VERBS
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.listed_values import rows_of_each
from fairbank.cli.framework.options import (
    add_accounts,
    add_allocation,
    add_group,
    add_option,
    printable,
)
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import check_listed, find_allocation, group_query
from fairbank.core.time import DAY
from fairbank.report.cells import plain
from fairbank.report.columns import (
    Amount,
    Column,
    DisplayFormat,
    Row,
    Summand,
    day,
    instant_of,
    last_day,
    su,
    text,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

COLUMNS = (
    Column("ALLOC", text("id"), right=True),
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource")),
    Column("CATEGORY", text("category"), drop=4),
    Column("START", day("start"), drop=3),
    Column("END", last_day("end"), drop=1),
    Column("STATE", text("state"), drop=2),
    Column("GRANTED", Summand("granted"), right=True, drop=1),
    Column("AVAILABLE", su("available"), right=True),
    Column("REMAINING", Summand("remaining"), right=True, extra=True),
    Column("USED", Summand("used"), right=True, extra=True),
    Column("HELD", Summand("held"), right=True, extra=True),
    Column("LIMIT", Summand("limit"), right=True, extra=True),
    Column("SHARED", lambda row, form: "yes" if row["shared"] else "no", extra=True),
    Column("PARTITION", text("partition"), extra=True),
    Column("RESERVATION", text("reservation"), extra=True),
    Column("GROUP", text("gname"), extra=True),
)
USER_COLUMNS = (
    Column("USER", text("user")),
    Column("UID", text("uid"), right=True, drop=1),
    Column("USED", su("charged"), right=True),
    Column("HELD", su("held"), right=True),
    Column(
        "CAP",
        Amount(lambda row, form: "none" if row["cap"] is None else form.su(row["cap"])),
        right=True,
    ),
    Column("CAP-LEFT", su("left"), right=True),
)


def _add_filters(parser: Parser) -> None:
    add_accounts(parser)
    add_group(parser)
    add_option(parser, "--category NAME", "only this category", type=printable)
    states = ("planned", "active", "frozen", "ended", "removed")
    add_option(parser, "--state", "only in this state", choices=states)
    add_option(parser, "--current", "only those whose period is running now, frozen ones too")
    add_option(parser, "--current-at TIME", "only those whose period holds this time")


def _list(context: Context, options: Namespace) -> int:
    query = {
        "account": options.account,
        "resource": options.resource,
        "category": options.category,
        "state": options.state,
        "active-at": (
            "now" if options.current else context.moment(options.current_at, "--current-at")
        ),
        **group_query(options.group),
    }
    rows = rows_of_each(context, "/alloc", query)
    check_listed(context, rows)
    rows.sort(key=lambda row: (row["account"], row["resource"], row["start"]))
    empty = "There is no such allocation that you may see."
    listing = Listing("fairbank.allocation/1", COLUMNS, rows, caption(context), empty=empty)
    return show(context, listing)


def _show(context: Context, options: Namespace) -> int:
    row = context.one(f"/alloc/{_number(context, options)}")
    if options.form or options.format:
        return show(context, Listing("fairbank.allocation/1", COLUMNS, [row]))
    context.print_text(caption(context))
    context.print_text()
    for column in COLUMNS:
        # Only a short-term allocation has a partition or a reservation.
        if cell := show_cell(column, row, context.format):
            context.print_text(f"{column.head.lower():<10} {cell}")
        if column.head == "STATE" and row["state_since"]:
            since = context.format.moment(instant_of(row["state_since"]))
            context.print_text(f"{'since':<10} {since}")
            if row["state_reason"]:
                context.print_text(f"{'reason':<10} {plain(row['state_reason'])}")
    return 0


def _number(context: Context, options: Namespace) -> int:
    return find_allocation(context, options.allocation, options.account, options.resource)


def show_cell(column: Column, row: Row, form: DisplayFormat) -> str:
    """Return the cell of a row; dates have their time unless they are whole days.

    Args:
        column: the column. Only START and END have a time.
        row: an allocation as the bank sends it.
        form: the unit of amounts, and the time zone of dates.
    """
    start, end = instant_of(row["start"]), instant_of(row["end"])
    at_midnight = form.moment(start) == f"{form.day(start)} 00:00:00"
    if column.head not in ("START", "END") or (at_midnight and end - start >= DAY):
        return column.cell(row, form)
    return form.moment(start if column.head == "START" else end)


def _users(context: Context, options: Namespace) -> int:
    number = _number(context, options)
    rows = [
        {
            **row,
            "user": user_name(row["uid"]),
            "left": None if row["cap"] is None else row["cap"] - row["charged"] - row["held"],
        }
        for row in context.rows(f"/alloc/{number}/user")
    ]
    allocation = context.one(f"/alloc/{number}")
    notes, empty = [], "No user has used it yet, and no user has a cap."
    # Users who do not lead the project may see only their own row.
    if any(allocation[name] > sum(row[name] for row in rows) for name in ("charged", "held")):
        notes, empty = ["The use of others is not shown to you."], "You have not used it."
    listing = Listing(
        "fairbank.allocation-use/1", USER_COLUMNS, rows, caption(context), notes=notes, empty=empty
    )
    return show(context, listing)


COMMAND = Noun(
    "credit of one project on one resource for one period",
    {
        "list": Command(
            "list the allocations that you may see",
            ("{}", "{} -A chem_qmc --current", "{} --state frozen --csv"),
            _add_filters,
            _list,
            watch=True,
            columns=COLUMNS,
        ),
        "show": Command(
            "show an allocation with its terms and sums",
            ("{} 1042", "{} 1042 --json", "{} 1042 --units m"),
            add_allocation,
            _show,
            columns=COLUMNS,
        ),
        "users": Command(
            "show what each user used of an allocation, and the caps",
            ("{} 1042", "{} 1042 --csv", "{} 1042 --units m"),
            add_allocation,
            _users,
            columns=USER_COLUMNS,
        ),
        **VERBS,
    },
    default="list",
)
