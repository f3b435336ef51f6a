"""Command `fairbank whatif`: a recorded workload with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.planning.simulation_rows import (
    newly_left_out,
    notes_of,
    refused_of,
    remarks_of,
    row_of,
)
from fairbank.cli.commands.planning.what_if_options import add_question, question_of
from fairbank.cli.commands.planning.workload_options import budget_of
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.time import show_duration
from fairbank.report.cells import counted, plain
from fairbank.report.what_if import COLUMNS, MeasuredPair, measure_rows, table_rows

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.service.simulation.what_if import Question, ResultPair, WhatIfResult


def add(parser: Parser) -> None:
    add_question(parser)
    add_progress(parser)


def run(context: Context, options: Namespace) -> int:
    if shown_columns(context, COLUMNS):
        return 0
    from functools import partial
    from pathlib import Path

    from fairbank.service.simulation.comparison import read_shares
    from fairbank.service.simulation.what_if import what_if
    from fairbank.service.simulation.workloads import in_file
    from fairbank.simulator.engine.simulation import SimulationPlan
    from fairbank.slurm.parsers.traces.any_format import read_any_trace

    question, budget = question_of(options), budget_of(options)
    with Stages(options) as progress:
        answer = what_if(
            partial(in_file, Path(options.trace), read_any_trace),
            question,
            SimulationPlan(options.procs, by_group=options.by == "group"),
            holdings=None if options.shares is None else read_shares(Path(options.shares)),
            budget=budget,
            progress=progress,
        )
    tell(context, question, answer)
    return 0


def tell(context: Context, question: Question, answer: WhatIfResult) -> None:
    """Print the measures, the changes, and what was left out."""
    two, copies = _rows(answer.plain), [_rows(each) for each in answer.copies]
    for_people = context.options.form is None and not context.options.format
    changes = changes_of(context.options, question, answer)
    more = {
        "recorded": row_of(answer.plain.recorded, exactly=False),
        "changed": row_of(answer.plain.changed, exactly=False),
        "changes": changes,
        "copies": len(copies),
        "seed": question.seed if copies else None,
    }
    notes = [f"changed: {each}" for each in changes] + notes_of(answer.plain.recorded)
    notes += newly_left_out(answer.plain.recorded, answer.plain.changed) + remarks_of(
        (answer.plain.recorded, answer.plain.changed)
    )
    notes += refused_of({"as recorded": answer.plain.recorded, "changed": answer.plain.changed})
    if copies:
        notes.append(
            f"means over {len(copies)} shaken copies with their 95 % confidence intervals;"
            " differences are taken copy by copy"
        )
    caption = f"{two.recorded['jobs']:,} jobs as recorded, {two.changed['jobs']:,} changed"
    rows = table_rows(two, copies) if for_people else measure_rows(two, copies)
    if not two.recorded["jobs"]:
        rows = []
    empty = "No job of this trace can be simulated."
    show(
        context,
        Listing(
            "fairbank.whatif/1", COLUMNS, rows, caption=caption, notes=notes, more=more, empty=empty
        ),
    )


def _rows(pair: ResultPair) -> MeasuredPair:
    return MeasuredPair(row_of(pair.recorded, exactly=False), row_of(pair.changed, exactly=False))


def changes_of(options: Namespace, question: Question, answer: WhatIfResult) -> list[str]:
    """Return each change in words, with the number of jobs concerned."""
    before, after, met = answer.plain.recorded, answer.plain.changed, answer.met
    said = []
    if before.policy != after.policy:
        said.append(f"policy {plain(after.policy)} instead of {plain(before.policy)}")
    if before.processors != after.processors:
        said.append(f"{counted(after.processors, 'processor')} instead of {before.processors:,}")
    said += [
        f"without user {plain(each)} ({counted(met.users[each], 'job')})"
        for each in dict.fromkeys(options.drop_user)
    ]
    said += [
        f"without group {plain(each)} ({counted(met.groups[each], 'job')})"
        for each in dict.fromkeys(options.drop_group)
    ]
    for job, resized in question.changes.jobs.items():
        words = (
            [] if resized.processors is None else [f"on {counted(resized.processors, 'processor')}"]
        )
        if resized.limit is not None:
            words.append(f"for at most {show_duration(resized.limit)}")
        said.append(f"job {job} {' '.join(words)}")
    if question.changes.limits_percent != 100:
        said.append(
            f"time limits {question.changes.limits_percent} % of what they were, but none shorter"
            " than the run"
        )
    return said


COMMAND = Command(
    "simulate a recorded workload with one thing changed",
    (
        "fairbank whatif month.swf.gz --add-procs 64",
        (
            "fairbank whatif month.swf.gz --drop-user 17 --shaken 10            with 95 %"
            " confidence intervals"
        ),
        "fairbank whatif month.swf.gz --policy slurm --to-policy fairer.toml",
    ),
    add,
    run,
    asks=False,
)
