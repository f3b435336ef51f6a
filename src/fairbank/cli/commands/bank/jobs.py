"""Command `fairbank jobs`: jobs with their holds and costs; --refused: refused jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name, with_user_names
from fairbank.cli.framework.options import (
    add_accounts,
    add_clusters,
    add_limit,
    add_option,
    add_period,
    add_users,
    job_ids,
    number,
    split_list,
)
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import check_listed, job_names, rows_of_each
from fairbank.core.errors import InvalidInput
from fairbank.report.columns import (
    Amount,
    Column,
    DisplayFormat,
    Row,
    duration,
    if_any,
    instant_of,
    moment,
    su,
    text,
)
from fairbank.report.usage import efficiency

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

LIMIT = 100
_STATE_REASONS = {"released": ["not charged"], "lapsed": ["no report of its end"]}
EXPLAINED = 3
"""Refusals whose remedies are shown."""


def _reason(row: Row, form: DisplayFormat) -> str:
    reasons = [
        f"{form.su(row[name])} {name.replace('_', ' ')}"
        for name in ("refunded", "written_off")
        if row[name]
    ]
    reasons += _STATE_REASONS.get(row["state"], ())
    return ", ".join(reasons)


def _exit(row: Row, form: DisplayFormat) -> str:
    """Return exit code and signal as Slurm writes them."""
    return "" if row["exit_code"] is None else f"{row['exit_code']}:{row['exit_signal']}"


COLUMNS = (
    Column("JOBID", text("job_id"), right=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("NAME", text("name"), least=8),
    Column("PROJECT", text("account"), drop=6),
    Column("USER", text("user"), drop=5),
    Column("PART", text("partition"), drop=3),
    Column("RESOURCE", text("resource"), extra=True),
    Column("STATE", text("word")),
    Column("ELAPSED", duration("ran"), right=True, drop=1),
    Column("LIMIT", duration("time_limit"), right=True, drop=2),
    Column("SU", su("cost"), right=True),
    Column("HELD", su("held"), right=True, drop=8),
    Column("EFF%", efficiency, right=True, drop=7),
    Column("REASON", _reason, drop=4),
    Column("SUBMIT", moment("submitted"), extra=True),
    Column("START", moment("start"), extra=True),
    Column("WAITED", duration("waited"), right=True, extra=True),
    Column("NODES", text("nodes"), right=True, extra=True),
    Column("QOS", text("qos"), extra=True),
    Column("TRES", text("tres"), extra=True, least=8),
    Column("WASTED", if_any(su("wasted")), right=True, extra=True),
    Column("WRITTEN-OFF", su("written_off"), right=True, extra=True),
    Column("ALLOC", text("allocation"), right=True, extra=True),
    Column("EXIT", _exit, right=True, extra=True),
    Column("END", moment("ended"), extra=True),
    Column("RESTART", text("restart"), right=True, extra=True),
    Column("ID", text("id"), right=True, extra=True),
)


def columns(context: Context, rows: Sequence[Row], *, mine: bool) -> Sequence[Column]:
    """Return the columns; if a job runs, always its hold, and the users of the jobs of others."""
    running = any(row["state"] == "held" for row in rows)
    drops = ({"HELD": 0} if running else {}) | {"USER": 9 if mine else 0}
    shown = with_units(context, COLUMNS, rows)
    if any(column.head == "RESOURCE" and not column.extra for column in shown):
        # On a narrow terminal the resource takes the place of the partition, not of the reason.
        drops |= {"PART": 5, "LIMIT": 4, "ELAPSED": 3, "REASON": 2, "RESOURCE": 1}
    return tuple(column._replace(drop=drops.get(column.head, column.drop)) for column in shown)


def with_units(
    context: Context, columns: Sequence[Column], rows: Sequence[Row]
) -> Sequence[Column]:
    """Return the columns of jobs with those that tell whose SU and whose job numbers rows have.

    RESOURCE is shown if rows differ in it, else the caption names it (`caption_of_jobs`). CLUSTER
    is shown if the bank has several and the caption names none, LATER if a refused job was
    accepted later. Scripts get the same columns for all data.

    Args:
        context: the command, which asks for the clusters.
        columns: those of the command, with RESOURCE and CLUSTER as extra columns.
        rows: of `GET /job` or `GET /failure`.
    """
    needed = set()
    is_script = context.options.form is not None
    if is_script or len({row["resource"] for row in rows}) > 1:
        needed.add("RESOURCE")
    if is_script or (rows and context.cluster is None and context.has_several_clusters):
        needed.add("CLUSTER")
    if is_script or any(row.get("later_state") for row in rows):
        needed.add("LATER")
    return [column._replace(extra=column.extra and column.head not in needed) for column in columns]


def caption_of_jobs(context: Context, rows: Sequence[Row]) -> str:
    """Return the caption of jobs, with the resource that their SU are of if it is just one."""
    resources = {row["resource"] for row in rows}
    of_resource = f" of {resources.pop()}" if len(resources) == 1 and resources != {None} else ""
    return caption(context) + of_resource


def _refusal_reason(row: Row, form: DisplayFormat) -> str:
    return str(row["reason"]).lower().replace("_", " ")


def _later(row: Row, form: DisplayFormat) -> str:
    """Return what became of a job that was accepted after its refusal."""
    state = row["later_state"]
    return "running" if state == "held" else str(state or ("" if form.exact else "-"))


def _short(row: Row, form: DisplayFormat) -> str:
    is_known = row["available"] is not None
    return form.lacking(row["requested"], row["available"]) if is_known else ""


SHORTFALL = if_any(Amount(_short))
"""Shortfall of a refused job."""
REFUSED: Sequence[Column] = (
    Column("TIME", moment("at")),
    Column("JOBID", text("job_id"), right=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("PROJECT", text("account"), least=8),
    Column("RESOURCE", text("resource"), drop=2),
    Column("REQUEST", if_any(su("requested")), right=True),
    Column("AVAILABLE", if_any(su("available")), right=True, drop=3),
    Column("SHORT", SHORTFALL, right=True, drop=1),
    Column("REASON", _refusal_reason),
    Column("LATER", _later, extra=True),
    Column("USER", text("user"), extra=True),
    Column("ALLOC", text("allocation"), right=True, extra=True),
    Column("REFUSAL", text("id"), right=True, extra=True),
)


def add(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    add_option(which, "--running", "only jobs that hold credit now")
    add_option(which, "--failed", "only jobs that ran and did not end as COMPLETED")
    add_option(which, "--refused", "jobs that the bank refused, with remedies")
    add_accounts(parser, resource=False)
    whose = parser.add_mutually_exclusive_group()
    add_users(whose)
    add_option(whose, "--me", "only mine (default without -u, -a, -A, -j and --alloc)")
    add_option(whose, "-a, --allusers", "all that I may see")
    add_option(parser, "-p, --partition NAME,...", "only these partitions", type=split_list)
    add_option(parser, "-j, --jobs JOBID,...", "only the jobs with these numbers", type=job_ids)
    add_clusters(parser, "only these clusters", several=True)
    about = "only jobs that this allocation pays for, of whatever project"
    add_option(parser, "--alloc ALLOC", about, type=number)
    add_period(parser, "all", "no end")
    add_limit(parser, LIMIT)


def run(context: Context, options: Namespace) -> int:
    owners = _owners(context)
    if options.refused and options.partition is not None:
        raise InvalidInput(
            "a refusal knows no partition",
            field="--partition",
            remedy="leave out -p, or leave out --refused",
        )
    query = {
        "account": options.account,
        "owner_uid": owners,
        "allocation": options.alloc,
        "cluster": options.clusters,
        "job_id": options.jobs,
        **context.period(),
    }
    notes: list[str] = []
    if options.refused:
        rows = refusals(context, query, options.limit)
        schema, shown = "fairbank.failure/1", with_units(context, REFUSED, rows)
        mine = "None of your jobs of this selection was refused"
        others = "No job of this selection that you may see was refused."
    else:
        query |= {
            "state": "held" if options.running else None,
            "outcome": "failed" if options.failed else None,
            "partition": options.partition,
        }
        rows = jobs(context, query, options.limit)
        schema = "fairbank.job/1"
        is_mine = owners == [context.me()]
        shown = columns(context, rows, mine=is_mine)
        mine = "You have no job of this selection"
        others = "There is no job of this selection that you may see."
    check_listed(context, rows, of_jobs=True)
    if options.refused and options.form is None:
        notes = _advice(context, rows)
    empty = (
        others if owners is None else f"{mine}; -a includes the jobs of others that you may see."
    )
    heading = caption(context) if options.refused else caption_of_jobs(context, rows)
    return show(context, Listing(schema, shown, rows, heading, notes=notes, empty=empty))


def _owners(context: Context) -> list[int] | None:
    """Return whose jobs to list; None for all. As in sacct, the default is one's own."""
    options = context.options
    if options.user:
        return [uid_of(user) for user in options.user]
    others = options.allusers or options.account or options.jobs or options.alloc
    return None if others and not options.me else [context.me()]


def jobs(context: Context, query: dict[str, object], limit: int) -> list[Row]:
    """Return job rows, the last entered first, with state, cost, run time and wait.

    Args:
        context: the command, which sends the requests.
        query: parameters of `GET /job`; a list stands for several requests.
        limit: maximum number of rows; 0: all.
    """
    return [_job_row(context, row) for row in rows_of_each(context, "/job", query, limit)]


def _job_row(context: Context, row: Row) -> Row:
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


def refusals(context: Context, query: dict[str, object], limit: int) -> list[Row]:
    """Return refusal rows, newest first, with the user's name.

    Args:
        context: the command, which sends the requests.
        query: parameters of `GET /failure`; a list stands for several requests.
        limit: maximum number of rows; 0: all.
    """
    return [
        {**row, "user": user_name(row["owner_uid"])}
        for row in rows_of_each(context, "/failure", query, limit)
    ]


def _advice(context: Context, rows: list[Row]) -> list[str]:
    """Return the remedies of each refusal if there are few, else of the newest."""
    lines = []
    shown = rows if len(rows) <= EXPLAINED else rows[:1]
    for row, name in zip(shown, job_names(context, shown), strict=True):
        # Only the bank's answer for a single refusal names other projects.
        refusal = context.one(f"/failure/{row['id']}")
        detail = context.format.sentence(refusal["detail"])
        lines.append(f"Job {name}: {detail}")
        for place, remedy in enumerate(refusal["remedies"]):
            lines.append(f"  {'or' if place else 'try'}: {with_user_names(remedy)}")
    if len(rows) > EXPLAINED:
        lines.append("What would help another: fairbank jobs --refused -j JOBID")
    return lines


COMMAND = Command(
    "list jobs with their holds and costs, those that the bank entered last first",
    (
        "fairbank jobs --running                    what holds my credit now",
        "fairbank jobs --refused                    why jobs were refused, and what would help",
        "fairbank jobs -A chem_qmc -j 812301,812344 --csv",
    ),
    add,
    run,
    watch=True,
    columns=lambda options: REFUSED if options.refused else COLUMNS,
)
