"""Command `fairbank whatif`: a recorded workload with changes."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.planning.simulation_rows import (
    check_simulated,
    new_omission_notes,
    omission_notes,
    policy_remarks,
    refusal_notes,
    row_of,
)
from fairbank.cli.commands.planning.workload_options import (
    DEFAULT_POLICY,
    POLICIES,
    add_budget,
    add_processors,
    add_shares,
    add_trace,
    budget_of,
)
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_option, at_least_one, count
from fairbank.cli.framework.output import Listing, show
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import InvalidInput
from fairbank.core.time import parse_duration, show_duration
from fairbank.core.units import counted
from fairbank.report.cells import plain
from fairbank.report.simulations import WHAT_IF_COLUMNS, MeasuredPair, measure_rows, table_rows

if TYPE_CHECKING:
    from argparse import Namespace, _ArgumentGroup

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.simulator.what_if import Question, ResultPair, WhatIfResult


def add(parser: Parser) -> None:
    add_trace(parser)
    about = f"{POLICIES} (default: {DEFAULT_POLICY})"
    add_option(parser, "--policy NAME|FILE", about, default=DEFAULT_POLICY)
    add_processors(parser)
    _add_changes(parser.add_argument_group("What if"))
    copies = parser.add_argument_group("How sure")
    about = "simulate N slightly changed copies of the trace as well"
    add_option(copies, "--perturbed N", about, type=count, default=0)
    add_option(copies, "--seed N", "other copies (default: 1)", type=count)
    by = "whose shares and credit are (default: user; with --grant group, if any)"
    add_shares(parser.add_argument_group("Shares"), by)
    add_budget(parser)
    add_progress(parser)


def _add_changes(group: _ArgumentGroup) -> None:
    about = "another policy, or other weights in a file"
    add_option(group, "--to-policy NAME|FILE", about)
    about = "N more nodes; fewer: --add-nodes=-2"
    add_option(group, "--add-nodes N", about, type=_signed, default=0)
    about = "N more processors; fewer: --add-procs=-64"
    add_option(group, "--add-procs N", about, type=_signed, default=0)
    listed: dict[str, Any] = {"action": "append", "default": []}
    add_option(group, "--drop-user USER", "a user had never come; may be repeated", **listed)
    add_option(group, "--drop-group GROUP", "a group, or an account of Slurm, had not", **listed)
    about = "a job by its number, with --size or --limit"
    add_option(group, "--job N", about, type=count, **listed)
    add_option(group, "--size N", "that job on N processors", type=at_least_one)
    about = "that job with this time limit, at which it ends: 30, 4:00:00, 1-12"
    add_option(group, "--limit TIME", about)
    about = "all limits, but none shorter than the run"
    add_option(group, "--scale-limits PERCENT", about, type=at_least_one, default=100)


def _signed(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,9}", text, re.ASCII):
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number")
    return int(text)


def _question(options: Namespace) -> Question:
    """Return what to simulate.

    Raises InvalidInput if nothing would change, and for a bare --job, and as `policies_of` does.
    """
    from fairbank.service.simulation.simulation_files import policies_of
    from fairbank.simulator.traces.workload_edits import Resized, WorkloadEdits
    from fairbank.simulator.what_if import MachineChange, Question

    limit = None if options.limit is None else parse_duration(options.limit, field="limit")
    resized = options.size is not None or limit is not None
    if options.job and not resized:
        raise InvalidInput(
            "--job needs --size or --limit", field="job", remedy="add --size N or --limit TIME"
        )
    if resized and not options.job:
        raise InvalidInput("--size and --limit need --job", field="job", remedy="add --job N")
    if options.seed is not None and not options.perturbed:
        raise InvalidInput(
            "--seed needs --perturbed", field="seed", remedy="add --perturbed N, or leave it out"
        )
    changes = WorkloadEdits(
        users=frozenset(options.drop_user),
        groups=frozenset(options.drop_group),
        jobs=dict.fromkeys(options.job, Resized(options.size, limit)),
        limits_percent=options.scale_limits,
    )
    machine = MachineChange(nodes=options.add_nodes, processors=options.add_procs)
    policy = options.to_policy or options.policy
    if changes == WorkloadEdits() and machine == MachineChange() and policy == options.policy:
        remedy = (
            "add --add-nodes, --add-procs, --drop-user, --drop-group, --job, --scale-limits or "
            "--to-policy"
        )
        raise InvalidInput("nothing would change", remedy=remedy)
    seed = 1 if options.seed is None else options.seed
    policies = policies_of(list(dict.fromkeys((options.policy, policy))))
    return Question(policies[0], policies[-1], changes, machine, options.perturbed, seed)


def run(context: Context, options: Namespace) -> int:
    from functools import partial
    from pathlib import Path

    from fairbank.service.simulation.simulation_files import read_shares
    from fairbank.service.simulation.trace_files import in_file
    from fairbank.simulator.engine.simulation import SimulationPlan
    from fairbank.simulator.what_if import what_if
    from fairbank.slurm.parsers.traces.any_format import read_any_trace

    question, budget = _question(options), budget_of(options)
    with Stages(options) as progress:
        answer = what_if(
            partial(in_file, Path(options.trace), read_any_trace),
            question,
            SimulationPlan(options.procs, by_group=options.by == "group"),
            holdings=None if options.shares is None else read_shares(Path(options.shares)),
            budget=budget,
            progress=progress,
        )
    check_simulated(context, answer.plain.recorded)
    show_comparison(context, question, answer)
    return 0


def show_comparison(context: Context, question: Question, answer: WhatIfResult) -> None:
    """Print the measures, the changes, and what was left out.

    Args:
        context: the command, whose options choose the format and describe the changes.
        question: the policies and changes that were simulated, and the seed.
        answer: the results as recorded and changed; with perturbed copies, also those of each copy.
    """
    before, after = answer.plain.recorded, answer.plain.changed
    pair, copies = _rows(answer.plain), [_rows(copy) for copy in answer.copies]
    changes = _changes(context.options, question, answer)
    more = {
        **pair._asdict(),
        "changes": changes,
        "copies": len(copies),
        "seed": question.seed if copies else None,
    }
    notes = [f"changed: {change}" for change in changes] + omission_notes(before)
    notes += new_omission_notes(before, after) + policy_remarks((before, after))
    notes += refusal_notes({"as recorded": before, "changed": after})
    if copies:
        notes.append(
            f"means over {len(copies)} perturbed copies with their 95 % confidence intervals;"
            " differences are taken copy by copy"
        )
    for_people = context.options.form is None and not context.options.format
    rows = table_rows(pair, copies) if for_people else measure_rows(pair, copies)
    show(
        context,
        Listing(
            "fairbank.whatif/2",
            WHAT_IF_COLUMNS,
            rows,
            caption=f"{pair.recorded['jobs']:,} jobs as recorded, {pair.changed['jobs']:,} changed",
            notes=notes,
            more=more,
        ),
    )


def _rows(pair: ResultPair) -> MeasuredPair:
    return MeasuredPair(row_of(pair.recorded, exactly=False), row_of(pair.changed, exactly=False))


def _changes(options: Namespace, question: Question, answer: WhatIfResult) -> list[str]:
    """Return each change in words, with the number of jobs concerned."""
    before, after, met = answer.plain.recorded, answer.plain.changed, answer.met
    changes = []
    if before.policy != after.policy:
        changes.append(f"policy {plain(after.policy)} instead of {plain(before.policy)}")
    if before.processors != after.processors:
        changes.append(f"{counted(after.processors, 'processor')} instead of {before.processors:,}")
    changes += [
        f"without user {plain(user)} ({counted(met.users[user], 'job')})"
        for user in dict.fromkeys(options.drop_user)
    ]
    changes += [
        f"without group {plain(group)} ({counted(met.groups[group], 'job')})"
        for group in dict.fromkeys(options.drop_group)
    ]
    for job, resized in question.changes.jobs.items():
        words = []
        if resized.processors is not None:
            words.append(f"on {counted(resized.processors, 'processor')}")
        if resized.limit is not None:
            words.append(f"for at most {show_duration(resized.limit)}")
        changes.append(f"job {job} {' '.join(words)}")
    if question.changes.limits_percent != 100:
        changes.append(
            f"time limits {question.changes.limits_percent} % of what they were, but none shorter"
            " than the run"
        )
    return changes


COMMAND = Command(
    "simulate a recorded workload with one thing changed",
    (
        "{} month.swf.gz --add-procs 64",
        "{} month.swf.gz --drop-user 17 --perturbed 10            with 95 % confidence intervals",
        "{} month.swf.gz --policy slurm --to-policy fairer.toml",
    ),
    add,
    run,
    asks=False,
    columns=WHAT_IF_COLUMNS,
)
