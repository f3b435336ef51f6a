"""Command `sproject`: HADM's verbs for projects, allocations, jobs and failures."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from fairbank import __version__
from fairbank.cli.commands.bank.job_rows import (
    SHORTFALL,
    caption_of_jobs,
    jobs,
    refusals,
    with_units,
)
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.error_exit import run_to_exit
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import add_group, add_limit, add_option, add_period, printable
from fairbank.cli.framework.output import Listing, caption_of, show
from fairbank.cli.framework.screen import Shown
from fairbank.cli.framework.selectors import (
    check_accounts,
    check_category,
    check_group,
    check_resources,
    group_query,
)
from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT
from fairbank.report.columns import (
    Amount,
    Column,
    Row,
    Summand,
    day,
    if_any,
    last_day,
    moment,
    su,
    text,
)
from fairbank.report.tables import sort_rows
from fairbank.report.usage import resource_names

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.core.units import ShownSums
    from fairbank.report.columns import DisplayFormat

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
    Column("END", last_day("end"), drop=3),
)


class _OfBalance(Summand):
    """Shows an amount of HADM's balance, without the credit limit: credit = held + debit +
    balance.
    """

    def sums(self, row: Row, form: DisplayFormat) -> ShownSums | None:
        amounts = [row["deposited"], row["charged"], row["held"]]
        if None in amounts:
            return None
        granted, used, held = map(int, amounts)
        return form.sums(granted, used, held, granted - used - held)


DETAIL = (
    Column("CREDIT", _OfBalance("granted"), right=True),
    Column("RUN+CMPLT", _OfBalance("held"), right=True),
    Column("DEBIT", _OfBalance("used"), right=True),
    Column("BALANCE", _OfBalance("remaining"), right=True),
)
RESOURCE_NAME = Column("RESOURCE", text("resource_name"))
"""Resource of a user's charges, with its clusters if their prices differ."""
ALLOCATIONS_MAX = 200
"""Allocations whose users are requested together: the bank's maximum."""
BY_USER_SCHEMA = "fairbank.allocation-user/1"
BY_USER = (
    Column("OWNER", text("user")),
    Column("JOBS", text("runs"), right=True, drop=2),
    Column("DEBIT", su("charged"), right=True),
)
_JOB = (
    Column("ALLOC-ID", text("allocation"), right=True, drop=2),
    Column("PROJECT", text("account")),
    Column("JOB-ID", text("job_id"), right=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("RESOURCE", text("resource"), extra=True),
    Column("OWNER", text("user")),
)
JOBS = (
    *_JOB,
    Column("STATUS", text("status")),
    Column(
        "AMOUNT",
        Amount(
            lambda row, form: form.su(row["held"] if row["status"] == "executing" else row["cost"])
        ),
        right=True,
    ),
    Column("START", moment("start"), drop=1),
)
JOB_DETAIL = (
    Column("ACTIVITY-ID", text("id"), right=True),
    Column("PARTITION", text("partition")),
    Column("CREDIT", su("refunded"), right=True),
    Column("DEBIT", su("charged"), right=True),
)
FAILURES = (
    *_JOB,
    Column("AMOUNT", if_any(su("requested")), right=True),
    Column("BALANCE", if_any(su("available")), right=True),
    Column("TIME", moment("at"), drop=1),
    Column(
        "MESSAGE", lambda row, form: form.sentence(row["detail"]), drop=3, min_width=16, wraps=True
    ),
)
FAILURE_DETAIL = (
    Column("ACTIVITY-ID", text("id"), right=True),
    Column("SHORT", SHORTFALL, right=True),
)


def run(argv: Sequence[str]) -> int:
    """Run one command line (without the program's name). Return the exit code; raise nothing."""
    return run_to_exit(lambda: _execute(list(argv)), argv, "sproject")


def _execute(words: list[str]) -> int:
    if words[:1] in (["-V"], ["--version"]):
        raise Shown(f"sproject (fairbank {__version__})\n")
    if not words:
        raise Shown(COMMAND.help("sproject"))
    return COMMAND.execute("sproject", words)


class View(NamedTuple):
    """List of one verb.

    `detail` are its columns with --detail, `by_user` those with --by-user, if it has that; `empty`
    is its text without rows, `active` the option -a with its help. `owned`: its rows have a user.
    """

    about: str
    examples: tuple[str, ...]
    schema: str
    columns: tuple[Column, ...]
    detail: tuple[Column, ...]
    rows: Callable[[Context, Namespace], Sequence[Row]]
    empty: str
    active: tuple[str, str] = (
        "-a, --current",
        "only of allocations that are now in their period, frozen ones too",
    )
    owned: bool = False
    by_user: tuple[Column, ...] = ()

    def command(self) -> Command:
        """Return the command that prints the list."""
        return Command(self.about, self.examples, self._add, self._run, columns=self._chosen)

    def _add(self, parser: Parser) -> None:
        add_group(parser)
        add_option(parser, "-A, --account PROJECT", "only of this Slurm account")
        add_option(parser, "--sort COL[,-COL]", "by these columns; with - the largest first")
        parser.takes_next("--sort")
        more = [column.head for column in self.columns if column.extra]
        more += [column.head for column in self.detail]
        add_option(parser, "--detail", f"also {', '.join(more[:-1])} and {more[-1]}")
        about = "only of this resource, such as cpu or gpu"
        add_option(parser, "-r, --resource NAME", about, type=printable)
        about = "only of allocations of this category"
        add_option(parser, "--category NAME", about, type=printable)
        add_option(parser, *self.active, dest="active")
        if self.by_user:
            about = "what each user was charged, with -S and -E only for jobs that ended then"
            add_option(parser, "--by-user", about)
        if self.owned:
            add_option(parser, "-u, --user USER", "only of this user, by name or number")
        if self.owned or self.by_user:
            add_period(parser, "all", "no end")
        add_limit(parser, 0)

    def _chosen(self, options: Namespace) -> tuple[Column, ...]:
        if self.by_user and options.by_user:
            of_user = tuple(
                RESOURCE_NAME if column is RESOURCE else column for column in self.columns
            )
            return of_user + self.by_user
        if not options.detail:
            return self.columns
        return *(column._replace(extra=False) for column in self.columns), *self.detail

    def _run(self, context: Context, options: Namespace) -> int:
        if self.by_user and not options.by_user and (options.starttime or options.endtime):
            raise InvalidInput(
                "a period needs --by-user", field="--starttime", remedy="add --by-user"
            )
        rows = self.rows(context, options)
        if not rows:  # perhaps a filter names something that does not exist
            check_group(context, options.group)
            check_accounts(context, [options.account] if options.account else None, of_jobs=True)
            check_resources(context, [options.resource] if options.resource else None)
            check_category(context, options.category)
        columns: Sequence[Column] = self._chosen(options)
        if options.sort:
            rows = sort_rows(columns, rows, options.sort, context.format)
        if options.limit and len(rows) > options.limit:
            rows = rows[: options.limit]
            more = f"There are more; this shows {options.limit}."
            context.later_notes.append(f"{more} To see them, add --limit {10 * options.limit}")
        schema = BY_USER_SCHEMA if self.by_user and options.by_user else self.schema
        heading = caption_of(context, columns)
        if self.owned:
            columns, heading = with_units(context, columns, rows), caption_of_jobs(context, rows)
        return show(context, Listing(schema, columns, rows, heading, empty=self.empty))


def _projects(context: Context, options: Namespace) -> Sequence[Row]:
    query = {"account": options.account, **group_query(options.group)}
    named = any(value is not None for value in query.values())
    rows: Sequence[Row] = context.rows("/project", {**query, "removed": "any" if named else None})
    if options.resource or options.active or options.category:
        with_some = {row["project"] for row in _allocations(context, options)}
        rows = [row for row in rows if row["id"] in with_some]
    if options.detail:
        of_allocation = {"resource": options.resource, "category": options.category}
        balances = context.rows("/balance", {**query, **of_allocation, "state": "active"})
        rows = _of_each_resource(rows, balances, options.resource)
    return rows


def _of_each_resource(
    projects: Sequence[Row], balances: Sequence[Row], resource: str | None
) -> list[Row]:
    """Return each project with its balance of each resource; SU of two resources never add up."""
    figures = ("resource", "deposited", "held", "charged", "remaining")
    nothing = {**dict.fromkeys(figures), "resource": resource}
    own: dict[object, list[Row]] = {}
    for balance in balances:  # of each resource a project has one active allocation at most
        own.setdefault(balance["project"], []).append({key: balance[key] for key in figures})
    return [
        {**project, **balance}
        for project in projects
        for balance in own.get(project["id"], [nothing])
    ]


def _allocations(context: Context, options: Namespace) -> Sequence[Row]:
    state = "active" if options.active else None
    return context.rows("/alloc", {**_filters(options), "state": state})


def _allocations_or_users(context: Context, options: Namespace) -> Sequence[Row]:
    rows = _allocations(context, options)
    if not options.by_user:
        return rows
    period = context.period()
    # The default end of /usage is now, but an allocation has also paid for runs of a fast clock.
    period["until"] = period["until"] or f"{LAST_INSTANT}"
    names = ("id", "project", "account", "category", "resource", "start", "end")
    numbers = [row["id"] for row in rows]
    query = {"by": "allocation-user", **period}
    shares: dict[int, list[tuple[int | None, Row]]] = defaultdict(list)
    for begin in range(0, len(numbers), ALLOCATIONS_MAX):
        some = numbers[begin : begin + ALLOCATIONS_MAX]
        for used in context.rows("/usage", {**query, "allocation": some}):
            number, _, uid = used["group"].partition("/")
            shares[int(number)].append((int(uid) if uid else None, used))
    names_of_resources = resource_names(
        {(used["resource"], used["clusters"]) for parts in shares.values() for _, used in parts}
    )
    return [
        {
            **{name: row[name] for name in names},
            "clusters": used["clusters"],
            "resource_name": names_of_resources[used["resource"], used["clusters"]],
            "owner_uid": uid,
            "user": user_name(uid),
            "runs": used["runs"],
            "charged": used["charged"],
        }
        for row in rows
        for uid, used in shares[row["id"]]
    ]


def _jobs(context: Context, options: Namespace) -> Sequence[Row]:
    return jobs(context, _owned(context, options), _read_limit(options))


def _failures(context: Context, options: Namespace) -> Sequence[Row]:
    return refusals(context, _owned(context, options), _read_limit(options))


def _read_limit(options: Namespace) -> int:
    """Return how many of the newest rows to read: all if another order is wanted."""
    return 0 if options.sort else int(options.limit)


def _owned(context: Context, options: Namespace) -> dict[str, object]:
    owner = None if options.user is None else uid_of(options.user)
    return {**_filters(options), "owner_uid": owner, **context.period()}


def _filters(options: Namespace) -> dict[str, object]:
    """Return the filters for allocations, jobs and refusals. Active: now in the period."""
    return {
        "account": options.account,
        "resource": options.resource,
        "category": options.category,
        "active-at": "now" if options.active else None,
        **group_query(options.group),
    }


VIEWS = {
    "projects": View(
        "list the projects that you may see",
        ("{}", "{} -g chem --detail", "{} -a -r gpu"),
        "fairbank.project/1",
        PROJECTS,
        (RESOURCE, *DETAIL),
        _projects,
        "There is no such project that you may see.",
        ("-a, --active", "only those with an allocation that is active"),
    ),
    "allocations": View(
        "list their allocations, present and past",
        ("{} -a", "{} -g chem -r cpu --detail", "{} --by-user -S 2026-11-01 --sort -DEBIT"),
        "fairbank.allocation/1",
        ALLOCATIONS,
        DETAIL,
        _allocations_or_users,
        "There is no such allocation that you may see.",
        ("-a, --active", "only those that are active: now in their period, and not frozen"),
        by_user=BY_USER,
    ),
    "jobs": View(
        "list jobs with their holds or charges",
        ("{} -a", "{} -A chem_qmc -u ayla", "{} --sort -AMOUNT --json"),
        "fairbank.job/1",
        JOBS,
        JOB_DETAIL,
        _jobs,
        "There is no such job that you may see.",
        owned=True,
    ),
    "failures": View(
        "list jobs that the bank refused",
        ("{}", "{} -A chem_qmc", "{} -u ayla --csv"),
        "fairbank.failure/1",
        FAILURES,
        FAILURE_DETAIL,
        _failures,
        "No such job was refused.",
        owned=True,
    ),
}

COMMAND = Noun(
    "projects, allocations, jobs and failures, as HADM's command shows them",
    {name: view.command() for name, view in VIEWS.items()},
)
