"""Bare `fairbank`: one screen with my projects, what they have left, my running jobs, and what was refused lately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.balance import WITHOUT_MINE as BALANCE
from fairbank.cli.balance import balances
from fairbank.cli.command import Command
from fairbank.cli.jobs import columns, jobs
from fairbank.cli.output import BOLD, PLAIN, caption, coloured
from fairbank.cli.refusals import COLUMNS as REFUSALS
from fairbank.cli.refusals import refusals
from fairbank.core.time import DAY
from fairbank.report.cells import plain
from fairbank.report.tables import table

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.columns import Column, Row

PROJECTS, RUNNING, REFUSED = 7, 4, 3  # rows at most, so that all of it fits on 24 lines
REFUSED_DAYS = 7


def add(parser: Parser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="all rows, however many")


def run(desk: Desk, options: Namespace) -> int:
    me = desk.one("/whoami")
    rows = balances(desk, {})
    running = jobs(desk, {"owner_uid": me["uid"], "state": "held"}, 0)
    refused = refusals(
        desk, {"owner_uid": me["uid"], "since": desk.bank_time - REFUSED_DAYS * DAY}, 0
    )
    name = plain(str(me["user"] or me["uid"]))
    desk.say(f"{caption(desk)}   user {name}")
    _part(
        desk,
        "What is left",
        BALANCE,
        rows,
        PROJECTS,
        "you are in no project with an active allocation",
        "fairbank balance",
    )
    held = f", {desk.look.su(sum(row['held'] for row in running))} held"
    _part(
        desk,
        f"Your running jobs{held if running else ''}",
        columns(running=True, mine=True),
        running,
        RUNNING,
        "none",
        "fairbank jobs --running",
    )
    _part(
        desk,
        f"Your jobs refused in the last {REFUSED_DAYS} days",
        REFUSALS,
        refused,
        REFUSED,
        "none",
        "fairbank jobs --refused",
    )
    return 0


def _part(
    desk: Desk,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    most: int,
    none: str,
    see: str,
) -> None:
    """A title and a few rows. `see` is the command that shows all."""
    most = len(rows) if desk.options.all else most
    desk.say()
    head = title if rows else f"{title}: {none}"
    desk.paint(f"{BOLD}{head}{PLAIN}" if desk.colours else head)
    if not rows:
        return
    made = table(columns, rows[:most], desk.look, desk.room)
    for line in coloured(made.lines, heads=False) if desk.colours else made.lines:
        desk.paint(line)
    if len(rows) > most:
        desk.say(f"... and {len(rows) - most} more: {see}")


COMMAND = Command(
    "my projects on one screen: what is left, what runs, what was refused",
    ("fairbank", "fairbank --all", "fairbank --help                             all commands"),
    add,
    run,
    reads=False,
)
