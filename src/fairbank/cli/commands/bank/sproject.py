"""Command `sproject`: HADM's verbs for projects, allocations, jobs and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank import __version__
from fairbank.cli.commands.bank.jobs import jobs
from fairbank.cli.commands.bank.refusals import if_told, refusals, short
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.error_exit import run_to_exit
from fairbank.cli.framework.host import uid_of
from fairbank.cli.framework.options import printable
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.screen import Shown
from fairbank.cli.framework.selectors import (
    check_accounts,
    check_group,
    check_resources,
    group_query,
)
from fairbank.report.columns import Amount, Column, Row, Summand, day, left, moment, su, text
from fairbank.report.tables import sort_rows

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

PROJECTS = (
    Column("PROJECT-ID", text("id"), right=True),
    Column("ACCOUNT", text("account")),
    Column("GROUP-ID", text("gid"), right=True),
    Column("GROUP", text("gname")),
)
RESOURCE = Column("RESOURCE", text("resource"))
ALLOCATIONS = (
    Column("PROJECT-ID", text("project"), right=True, drop=6),
    Column("ALLOC-ID", text("id"), right=True),
    Column("PROJECT", text("account")),
    Column("CATEGORY", text("category"), drop=5),
    RESOURCE,
    Column("START", day("start"), drop=4),
    Column("END", day("end"), drop=3),
)
DETAIL = (
    Column("CREDIT", Summand("granted"), right=True),
    Column("RUN+CMPLT", Summand("held"), right=True),
    Column("DEBIT", Summand("used"), right=True),
    Column("BALANCE", Summand("available"), right=True),
)
JOBS = (
    Column("ALLOC-ID", text("allocation"), right=True, drop=2),
    Column("PROJECT", text("account")),
    Column("JOB-ID", text("job_id"), right=True),
    Column("OWNER", text("user")),
    Column("STATUS", text("status")),
    Column(
        "AMOUNT",
        Amount(
            lambda row, look: look.su(row["held"] if row["status"] == "executing" else row["cost"])
        ),
        right=True,
    ),
    Column("START", moment("start"), drop=1),
)
JOB_DETAIL = (
    Column("ACTIVITY-ID", text("id"), right=True),
    Column("CLUSTER", text("cluster")),
    Column("PARTITION", text("partition")),
    Column("CREDIT", su("refunded"), right=True),
    Column("DEBIT", su("charged"), right=True),
)
FAILURES = (
    Column("ALLOC-ID", text("allocation"), right=True, drop=2),
    Column("PROJECT", text("account")),
    Column("JOB-ID", text("job_id"), right=True),
    Column("OWNER", text("user")),
    Column("AMOUNT", if_told(su("asked"), "asked"), right=True),
    Column("BALANCE", if_told(left("available")), right=True),
    Column("TIME", moment("at"), drop=1),
    Column("MESSAGE", text("detail"), drop=3, least=16),
)
FAILURE_DETAIL = (
    Column("ACTIVITY-ID", text("id"), right=True),
    Column("RESOURCE", text("resource")),
    Column("SHORT", if_told(short), right=True),
)


def run(argv: Sequence[str]) -> int:
    """Run one command line (without the program's name). Return the exit code; raise nothing."""
    return run_to_exit(lambda: _execute(list(argv)), "sproject")


def _execute(words: list[str]) -> int:
    if words[:1] in (["-V"], ["--version"]):
        raise Shown(f"sproject (fairbank {__version__})\n")
    if not words:
        raise Shown(COMMAND.help("sproject"))
    name, command, rest = COMMAND.choose("sproject", words)
    return command.execute(name, rest)


def _add_filters(parser: Parser) -> None:
    parser.add_argument(
        "-g", "--group", metavar="GROUP", help="only of this Unix group, by name or number"
    )
    parser.add_argument("-A", "--account", metavar="PROJECT", help="only of this Slurm account")
    parser.add_argument(
        "--sort", metavar="COL[,-COL]", help="by these columns; with - the largest first"
    )
    parser.takes_next("--sort")


def _add_detailed(parser: Parser) -> None:
    _add_filters(parser)
    parser.add_argument(
        "--detail",
        action="store_true",
        help="with credit, running and completed, debit and balance",
    )


def _add_more(parser: Parser) -> None:
    _add_detailed(parser)
    parser.add_argument(
        "-r",
        "--resource",
        metavar="NAME",
        type=printable,
        help="only of this resource, such as cpu or gpu",
    )


def _add_projects(parser: Parser) -> None:
    _add_more(parser)
    parser.add_argument(
        "-a", "--active", action="store_true", help="only those with an allocation that is active"
    )


def _add_allocations(parser: Parser) -> None:
    _add_more(parser)
    parser.add_argument(
        "-a",
        "--active",
        action="store_true",
        help="only those that are active: now in their period, and not frozen",
    )


def _add_owned(parser: Parser) -> None:
    _add_more(parser)
    parser.add_argument(
        "-a",
        "--active",
        action="store_true",
        help="only of allocations that are now in their period, frozen ones too",
    )
    parser.add_argument("-u", "--user", metavar="USER", help="only of this user, by name or number")


def _show(
    context: Context, schema: str, columns: Sequence[Column], rows: Sequence[Row], empty: str
) -> int:
    if not rows:
        _check(context)
    wanted = context.options.sort
    show(
        context,
        Listing(
            schema,
            columns,
            sort_rows(columns, rows, wanted, context.format) if wanted else rows,
            empty=empty,
        ),
    )
    return 0


def _check(context: Context) -> None:
    """Check that what the filters name exists, if no row matches. Raises NotFound."""
    options = context.options
    check_group(context, options.group)
    check_accounts(context, [options.account] if options.account else None, of_jobs=True)
    check_resources(context, [options.resource] if options.resource else None)


def _projects(context: Context, options: Namespace) -> int:
    columns = (*PROJECTS, RESOURCE, *DETAIL) if options.detail else PROJECTS
    if shown_columns(context, columns):
        return 0
    asked = {"account": options.account, **group_query(options.group)}
    named = any(value is not None for value in asked.values())
    rows: Sequence[Row] = context.rows("/project", {**asked, "removed": "any" if named else None})
    if options.resource or options.active:
        with_some = {
            row["project"] for row in context.rows("/alloc", _asked_of_allocations(options))
        }
        rows = [row for row in rows if row["id"] in with_some]
    if options.detail:
        rows = _of_each_resource(
            rows,
            context.rows("/balance", {**asked, "resource": options.resource}),
            options.resource,
        )
    return _show(
        context, "fairbank.project/1", columns, rows, "There is no such project that you may see."
    )


def _of_each_resource(
    projects: Sequence[Row], balances: Sequence[Row], resource: str | None
) -> list[Row]:
    """Return each project with its balance of each resource; SU of two resources never add up."""
    figures = ("resource", "deposited", "held", "charged", "available")
    nothing = {**dict.fromkeys(figures), "resource": resource}
    own: dict[object, list[Row]] = {}
    for each in balances:  # of each resource a project has one active allocation at most
        own.setdefault(each["project"], []).append({key: each[key] for key in figures})
    return [
        {**project, **each} for project in projects for each in own.get(project["id"], [nothing])
    ]


def _allocations(context: Context, options: Namespace) -> int:
    columns = ALLOCATIONS + DETAIL if options.detail else ALLOCATIONS
    if shown_columns(context, columns):
        return 0
    rows = context.rows("/alloc", _asked_of_allocations(options))
    return _show(
        context,
        "fairbank.allocation/1",
        columns,
        rows,
        "There is no such allocation that you may see.",
    )


def _jobs(context: Context, options: Namespace) -> int:
    columns = JOBS + JOB_DETAIL if options.detail else JOBS
    if shown_columns(context, columns):
        return 0
    rows = jobs(context, _owned(options), 0)
    return _show(context, "fairbank.job/1", columns, rows, "There is no such job that you may see.")


def _failures(context: Context, options: Namespace) -> int:
    columns = FAILURES + FAILURE_DETAIL if options.detail else FAILURES
    if shown_columns(context, columns):
        return 0
    rows = refusals(context, _owned(options), 0)
    return _show(context, "fairbank.failure/1", columns, rows, "No such job was refused.")


def _asked_of_allocations(options: Namespace) -> dict[str, object]:
    return {**_asked(options), "state": "active" if options.active else None}


def _owned(options: Namespace) -> dict[str, object]:
    return {**_asked(options), "owner_uid": None if options.user is None else uid_of(options.user)}


def _asked(options: Namespace) -> dict[str, object]:
    """Return the filters for allocations, jobs and refusals. Active: now in the period."""
    return {
        "account": options.account,
        "resource": options.resource,
        "active-at": "now" if options.active else None,
        **group_query(options.group),
    }


COMMAND = Noun(
    "projects, allocations, jobs and failures, as HADM's command shows them",
    {
        "projects": Command(
            "list the projects that you may see",
            (
                "sproject projects",
                "sproject projects -g chem --detail",
                "sproject projects -a -r gpu",
            ),
            _add_projects,
            _projects,
        ),
        "allocations": Command(
            "list their allocations, present and past",
            (
                "sproject allocations -a",
                "sproject allocations -g chem -r cpu --detail",
                "sproject allocations --detail --sort -BALANCE",
            ),
            _add_allocations,
            _allocations,
        ),
        "jobs": Command(
            "list jobs with their holds or charges",
            (
                "sproject jobs -a",
                "sproject jobs -A chem_qmc -u ayla",
                "sproject jobs --sort -AMOUNT --json",
            ),
            _add_owned,
            _jobs,
        ),
        "failures": Command(
            "list jobs that the bank refused",
            (
                "sproject failures",
                "sproject failures -A chem_qmc",
                "sproject failures -u ayla --csv",
            ),
            _add_owned,
            _failures,
        ),
    },
)
