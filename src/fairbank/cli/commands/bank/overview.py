"""Command `fairbank` without arguments: projects, running jobs and recent refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.balance import balances, row_warnings, warnings_of
from fairbank.cli.commands.bank.balance import columns as balance_columns
from fairbank.cli.commands.bank.job_rows import REFUSED, columns, jobs, refusals, with_units
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_forms, add_option
from fairbank.cli.framework.output import BOLD, PLAIN, caption, colour, missing_columns
from fairbank.core.time import DAY
from fairbank.report.cells import folded, plain
from fairbank.report.tables import table
from fairbank.report.usage import resource_names

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Column, Row

PROJECT_ROWS, RUNNING_ROWS, REFUSED_ROWS = 7, 4, 3
"""Rows at most, so that all of it fits on 24 lines."""
REFUSED_DAYS = 7


def add(parser: Parser) -> None:
    add_option(parser, "-a, --all", "all rows, however many")
    add_forms(parser, {"--json": "print JSON, all rows, with the name of its schema"})


def run(context: Context, options: Namespace) -> int:
    me = context.one("/whoami")
    rows = balances(context, {})
    running = jobs(context, {"owner_uid": me["uid"], "state": "held"}, 0)
    since = context.bank_time - REFUSED_DAYS * DAY
    refused = refusals(context, {"owner_uid": me["uid"], "since": since}, 0)
    if options.form:
        parts = {"balances": rows, "running": running, "refused": refused}
        user = {name: me[name] for name in ("uid", "user")}
        context.print_json("fairbank.overview/1", {**user, **parts}, warnings_of(context, rows))
        return 0
    name = plain(str(me["user"] or me["uid"]))
    context.print_escaped(*folded(f"{caption(context)}   user {name}", context.width))
    none = "your projects have no allocation" if me["roles"] else "you are in no project"
    left = balance_columns(rows)
    _part(context, "What is left", left, rows, PROJECT_ROWS, "fairbank balance", none)
    for row in rows if options.all else rows[:PROJECT_ROWS]:
        if row["available"] != row["remaining"] or row["state"] != "active":
            warning, *_ = row_warnings(row, context.bank_time, context.format)
            context.print_lines(folded(plain(warning), context.width))
    title = "Your running jobs"
    title += f", {_held(context, running)} held" if running else ""
    # The first line names the user.
    shown = columns(context, running, mine=True)
    shown = [column for column in shown if column.head != "USER"]
    _part(context, title, shown, running, RUNNING_ROWS, "fairbank jobs --running")
    title = f"Your jobs refused in the last {REFUSED_DAYS} days"
    shown = with_units(context, REFUSED, refused if options.all else refused[:REFUSED_ROWS])
    _part(context, title, shown, refused, REFUSED_ROWS, "fairbank jobs --refused")
    return 0


def _held(context: Context, running: Sequence[Row]) -> str:
    """Return what jobs hold of each resource. SU of two, or of clusters, cannot be added."""
    sums: dict[tuple[str, str], int] = {}
    for row in running:
        unit = str(row["resource"]), str(row["cluster"])
        sums[unit] = sums.get(unit, 0) + row["held"]
    su, names = context.format.su, resource_names(sums)
    return ", ".join(f"{su(held)} of {plain(names[unit])}" for unit, held in sorted(sums.items()))


def _part(
    context: Context,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    most: int,
    see: str,
    none: str = "none",
) -> None:
    """Print a title and some rows; `see` is the command that shows all of them."""
    most = len(rows) if context.options.all else most
    context.print_text()
    made = table(columns, rows[:most], context.format, context.table_width)
    head = title if rows else f"{title}: {none}"
    if rows and (missing := missing_columns(columns, made)):
        head += f"   (without {', '.join(column.head for column in missing)}: {see} -l)"
    for line in folded(head, context.width):
        context.print_escaped(f"{BOLD}{line}{PLAIN}" if context.colours else line)
    if not rows:
        return
    context.print_escaped(*(colour(made.lines, header=False) if context.colours else made.lines))
    if len(rows) > most:
        context.print_text(f"... and {len(rows) - most} more: {see}")


COMMAND = Command(
    "show my projects on one screen: credit, running and refused jobs",
    ("fairbank", "fairbank --all", "fairbank --help                             all commands"),
    add,
    run,
    reads=False,
)
