"""Command `fairbank jobs`: jobs with their holds and costs; --refused: refused jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.job_rows import (
    COLUMNS,
    REFUSED,
    caption_of_jobs,
    columns,
    jobs,
    refusals,
    with_units,
)
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, with_user_names
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
from fairbank.cli.framework.selectors import check_listed, job_names
from fairbank.core.errors import InvalidInput
from fairbank.report.columns import Row

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

LIMIT = 100
EXPLAINED = 3
"""Refusals whose remedies are shown."""


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
    add_option(
        parser,
        "-j, --jobs JOBID,...",
        "only the jobs with these numbers, or CLUSTER/JOBID",
        type=job_ids,
    )
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
