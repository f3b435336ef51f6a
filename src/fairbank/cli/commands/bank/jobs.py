"""Command `fairbank jobs`: jobs with their holds and costs; --refused: refused jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.refusals import ALL, show_refusals
from fairbank.cli.commands.bank.refusals import COLUMNS as REFUSED
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import (
    add_accounts,
    add_clusters,
    add_limit,
    add_period,
    add_users,
    counts,
    listed,
    number,
)
from fairbank.cli.framework.output import Listing, caption, show, shown_columns, watched
from fairbank.cli.framework.selectors import check_listed, rows_of_each
from fairbank.report.columns import Column, Look, Row, duration, instant_of, moment, su, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

LIMIT = 100


def _reason(row: Row, look: Look) -> str:
    said = []
    if row["refunded"]:
        said.append(f"{look.su(row['refunded'])} refunded")
    if row["written_off"]:
        said.append(f"{look.su(row['written_off'])} written off")
    if row["state"] == "released":
        said.append("not charged")
    if row["state"] == "lapsed":
        said.append("no word of its end")
    return ", ".join(said)


def _exit(row: Row, look: Look) -> str:
    """Return exit code and signal as Slurm writes them."""
    return "" if row["exit_code"] is None else f"{row['exit_code']}:{row['exit_signal']}"


COLUMNS = (
    Column("JOBID", text("job_id"), right=True),
    Column("NAME", text("name"), least=8),
    Column("PROJECT", text("account"), drop=6),
    Column("USER", text("user"), drop=5),
    Column("PART", text("partition"), drop=3),
    Column("STATE", text("word")),
    Column("ELAPSED", duration("ran"), right=True, drop=1),
    Column("LIMIT", duration("time_limit"), right=True, drop=2),
    Column("SU", su("cost"), right=True),
    Column("HELD", su("held"), right=True, drop=7),
    Column("REASON", _reason, drop=4),
    Column("SUBMIT", moment("submitted"), extra=True),
    Column("START", moment("start"), extra=True),
    Column("WAITED", duration("waited"), right=True, extra=True),
    Column("NODES", text("nodes"), right=True, extra=True),
    Column("QOS", text("qos"), extra=True),
    Column("TRES", text("tres"), extra=True, least=8),
    Column("WRITTEN-OFF", su("written_off"), right=True, extra=True),
    Column("ALLOC", text("allocation"), right=True, extra=True),
    Column("EXIT", _exit, right=True, extra=True),
    Column("END", moment("ended"), extra=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("RESTART", text("restart"), right=True, extra=True),
    Column("ID", text("id"), right=True, extra=True),
)


def columns(*, running: bool, mine: bool) -> tuple[Column, ...]:
    """Return the columns; running jobs show holds, one's own jobs not the user."""
    drops = ({"HELD": 0} if running else {}) | ({"USER": 8} if mine else {})
    return tuple(column._replace(drop=drops.get(column.head, column.drop)) for column in COLUMNS)


def add(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--running", action="store_true", help="only jobs that hold credit now")
    which.add_argument(
        "--failed", action="store_true", help="only jobs that ended otherwise than COMPLETED"
    )
    which.add_argument(
        "--refused", action="store_true", help="jobs that the bank said no to, with what would help"
    )
    add_accounts(parser, resource=False)
    whose = parser.add_mutually_exclusive_group()
    add_users(whose)
    whose.add_argument(
        "--me",
        action="store_true",
        help="only mine (usual, unless -u, -a, -A, -j or --alloc is there)",
    )
    whose.add_argument("-a", "--allusers", action="store_true", help="all that I may see")
    parser.add_argument(
        "-p", "--partition", metavar="NAME,...", type=listed, help="only these partitions"
    )
    parser.add_argument(
        "-j", "--jobs", metavar="JOBID,...", type=counts, help="only the jobs with these numbers"
    )
    add_clusters(parser, "only these clusters", several=True)
    parser.add_argument(
        "--alloc",
        metavar="ALLOC",
        type=number,
        help="only jobs that this allocation pays for, of whatever project",
    )
    add_period(parser, "all", "no end")
    add_limit(parser, LIMIT)


def run(context: Context, options: Namespace) -> int:
    if shown_columns(context, REFUSED if options.refused else COLUMNS):
        return 0
    return watched(
        context,
        lambda: show_refusals(context, owners_of(context)) if options.refused else _show(context),
    )


def owners_of(context: Context) -> list[int] | None:
    """Return whose jobs to list; None for all. As in sacct, the default is one's own."""
    options = context.options
    if options.user:
        return [uid_of(user) for user in options.user]
    others = options.allusers or options.account or options.jobs or options.alloc
    return None if others and not options.me else [context.me()]


def _show(context: Context) -> int:
    options = context.options
    owners = owners_of(context)
    rows = jobs(
        context,
        {
            "account": options.account,
            "owner_uid": owners,
            "allocation": options.alloc,
            "state": "held" if options.running else None,
            "outcome": "failed" if options.failed else None,
            "cluster": options.clusters,
            "job_id": options.jobs,
            "partition": options.partition,
            **context.period(),
        },
        options.limit,
    )
    check_listed(context, rows, of_jobs=True)
    empty = (
        "There is no such job that you may see."
        if owners is None
        else f"There is no such job of yours; {ALL}."
    )
    there = columns(running=options.running, mine=owners == [context.me()])
    show(context, Listing("fairbank.job/1", there, rows, caption(context), empty=empty))
    return 0


def jobs(context: Context, query: dict[str, object], limit: int) -> list[Row]:
    """Return job rows, newest first, with state, cost, run time and wait."""
    return [_told(context, row) for row in rows_of_each(context, "/job", query, limit)]


def _told(context: Context, row: Row) -> Row:
    running = row["state"] == "held"
    ran = max(0, context.bank_time - instant_of(row["start"])) if running else row["elapsed"]
    return {
        **row,
        "user": user_name(row["owner_uid"]),
        "word": "RUNNING" if running else (row["outcome"] or row["state"].upper()),
        "ran": ran,
        "waited": max(0, instant_of(row["start"]) - instant_of(row["submitted"])),
        "cost": None if running else row["charged"] - row["refunded"],
    }


COMMAND = Command(
    "list jobs with their holds and costs, the newest first",
    (
        "fairbank jobs --running                    what holds my credit now",
        "fairbank jobs --refused                    why jobs were refused, and what would help",
        "fairbank jobs -A chem_qmc -j 812301,812344 --csv",
    ),
    add,
    run,
    watch=True,
)
