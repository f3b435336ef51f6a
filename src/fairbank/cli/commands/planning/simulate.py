"""Command `fairbank simulate`: a recorded or synthetic workload under other policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.planning.simulation_rows import (
    check_simulated,
    credit_rows,
    delivery_rows,
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
from fairbank.cli.framework.options import add_option, at_least_one, count, file_written
from fairbank.cli.framework.output import Listing, show
from fairbank.cli.framework.picture_files import add_png, check_directory, write_pictures
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.units import counted
from fairbank.report.simulations import COLUMNS, MEASURE_COLUMNS, measure_table

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.cli.framework.picture_files import PictureFile
    from fairbank.core.progress import StageProgress
    from fairbank.report.columns import Column
    from fairbank.simulator.engine.simulation import SimulationResult
    from fairbank.simulator.traces.synthetic import SyntheticWorkload


def add(parser: Parser) -> None:
    add_trace(parser, optional=True)
    about = f"{POLICIES} that describes one; may be repeated (default: {DEFAULT_POLICY})"
    add_option(parser, "--policy NAME|FILE", about, dest="policies", action="append")
    about = "instead of a trace, a synthetic workload of N jobs"
    add_option(parser, "--jobs N", about, type=at_least_one)
    about = "the same of a centre that this file describes (default: 960 processors, 40 users)"
    add_option(parser, "--model FILE", about)
    add_option(parser, "--seed N", "another synthetic workload (default: 1)", type=count)
    about = "write the synthetic workload as a trace too"
    add_option(parser, "--save FILE", about, type=file_written)
    add_option(parser, "--force", "let --save replace a file")
    add_processors(parser)
    about = (
        "write a line `job start` for each job, in the order of the queue, of one policy; a"
        " FILE.csv has a table of all policies"
    )
    add_option(parser, "--starts FILE", about, type=file_written)
    by = (
        "whose shares and credit are; the group of a Slurm job is its account (default: user; with"
        " --grant group, if there are any)"
    )
    add_shares(parser, by)
    about = "look at the fair start of every N-th job, which takes long"
    add_option(parser, "--fair-starts N", about, type=at_least_one, default=0)
    about = (
        "draw utilisation, queue, waits and, with --shares, shares; created if missing; "
        "needs matplotlib"
    )
    add_option(parser, "--plots DIRECTORY", about)
    add_png(parser)
    add_budget(parser)
    add_progress(parser)


def run(context: Context, options: Namespace) -> int:
    policies = list(dict.fromkeys(options.policies or [DEFAULT_POLICY]))
    if options.starts is not None and len(policies) > 1 and not _is_table(options.starts):
        remedy = "name one --policy, or a FILE.csv, which holds all"
        raise InvalidInput("--starts holds one schedule", field="starts", remedy=remedy)
    if options.plots is not None:
        _check_pictures(policies, options.plots)
    elif options.png:
        raise InvalidInput(
            "--png says how pictures are drawn, and none are",
            field="png",
            remedy="add --plots DIRECTORY, or leave it out",
        )
    workload = _workload(options)
    with Stages(options) as progress:
        outcomes = _simulate(workload, policies, options, progress)
    check_simulated(context, outcomes[0], synthetic=options.trace is None)
    try:
        if options.starts is not None:
            _write_starts(outcomes, options.starts)
        drawn = _draw(context, options, outcomes) if options.plots else []
    except FairbankError:
        show_simulation(context, outcomes, ())  # the work is done, and may have been long
        raise
    show_simulation(context, outcomes, drawn)
    return 0


def _workload(options: Namespace) -> str | SyntheticWorkload:
    """Return the name of the trace, or a synthetic workload. Raises InvalidInput."""
    names = ("jobs", "model", "seed", "save")
    synthetic = [f"--{name}" for name in names if getattr(options, name) is not None]
    if options.trace is not None and synthetic:
        raise InvalidInput(
            f"{synthetic[0]} is for a synthetic workload",
            field=synthetic[0][2:],
            remedy="name no trace, or leave it out",
        )
    if options.force and options.save is None:
        raise InvalidInput(
            "--force needs --save", field="force", remedy="add --save, or leave it out"
        )
    if options.trace is not None:
        return str(options.trace)
    if options.jobs is None and options.model is None:
        raise InvalidInput(
            "there is nothing to simulate",
            field="FILE",
            remedy="name a trace, or --jobs N for a synthetic workload",
        )
    from pathlib import Path

    import msgspec

    from fairbank.service.simulation.simulation_files import read_site, save_trace
    from fairbank.simulator.traces.site_settings import SyntheticSiteSettings, site_of
    from fairbank.simulator.traces.synthetic import SyntheticWorkload

    settings = SyntheticSiteSettings() if options.model is None else read_site(Path(options.model))
    if options.jobs is not None:
        settings = msgspec.structs.replace(settings, jobs=options.jobs)
    workload = SyntheticWorkload(site_of(settings), _seed(options))
    if options.save is not None:
        save_trace(workload, Path(options.save), replace=options.force)
    return workload


def _simulate(
    workload: str | SyntheticWorkload,
    policies: Sequence[str],
    options: Namespace,
    progress: StageProgress,
) -> list[SimulationResult]:
    """Simulate the workload under each policy. Raises FairbankError before the work starts."""
    from functools import partial
    from pathlib import Path

    from fairbank.service.simulation.simulation_files import check_starts, policies_of, read_shares
    from fairbank.service.simulation.trace_files import in_file
    from fairbank.simulator.comparison import simulate_each
    from fairbank.simulator.engine.simulation import SimulationPlan
    from fairbank.slurm.parsers.traces.any_format import read_any_trace

    path = Path(workload) if isinstance(workload, str) else None
    budget = budget_of(options)
    if options.starts is not None:
        check_starts(Path(options.starts), path)
    plan = SimulationPlan(
        options.procs,
        options.fair_starts,
        by_group=options.by == "group",
        has_time_series=options.plots is not None,
        has_job_runs=options.starts is not None and _is_table(options.starts),
    )
    holdings = None if options.shares is None else read_shares(Path(options.shares))
    return simulate_each(
        partial(in_file, Path(workload), read_any_trace)
        if isinstance(workload, str)
        else workload.opened,
        policies_of(policies),
        plan,
        holdings=holdings,
        budget=budget,
        progress=progress,
    )


def _is_table(path: str) -> bool:
    """Return True for a file with a table, which holds several policies."""
    return path.endswith(".csv")


def _write_starts(outcomes: Sequence[SimulationResult], path: str) -> None:
    """Write a line for each start, or a table of all schedules."""
    from pathlib import Path

    from fairbank.report.simulations import schedules_csv
    from fairbank.service.simulation.simulation_files import write_starts

    schedules = ((outcome.policy, _job_rows(outcome)) for outcome in outcomes)
    starts = schedules_csv(schedules) if _is_table(path) else outcomes[-1].starts.text()
    write_starts(starts, Path(path))


def _job_rows(outcome: SimulationResult) -> Iterator[tuple[int | str, ...]]:
    """Yield the jobs with users and groups by name, or by number if the trace has no names."""
    people = outcome.people
    user, group = (_name, _name) if people is None else (people.users.name, people.groups.name)
    for job in outcome.runs or ():
        times = (job.submitted, job.started, job.ended)
        wait = job.started - job.submitted
        yield (job.job, user(job.user), group(job.group), *times, job.processors, wait)


def _name(number: int) -> str:
    return "" if number < 0 else str(number)


def _check_pictures(policies: Sequence[str], directory: str) -> None:
    """Raise InvalidInput, before the work starts, if the figures cannot be drawn or written."""
    from fairbank.report.plots.figures import SERIES_MAX

    check_directory(directory, "plots")
    if len(policies) > SERIES_MAX:
        raise InvalidInput(
            f"a figure can show {SERIES_MAX} policies, not {len(policies)}",
            field="plots",
            remedy="name fewer of them",
        )


def _draw(
    context: Context, options: Namespace, outcomes: Sequence[SimulationResult]
) -> list[PictureFile]:
    from fairbank.report.plots.simulations import figures

    drawn = figures(outcomes, _source(options), context.command_line)
    return write_pictures(options.plots, drawn, as_png=options.png, option="plots")


def _source(options: Namespace) -> str:
    """Return the name of the trace, or the seed of the synthetic workload."""
    if options.trace is not None:
        return f"trace {options.trace}"
    site = f" of {options.model}" if options.model is not None else ""
    return f"synthetic workload{site}, seed {_seed(options)}"


def _seed(options: Namespace) -> int:
    return 1 if options.seed is None else int(options.seed)


def show_simulation(
    context: Context, outcomes: Sequence[SimulationResult], drawn: Sequence[PictureFile]
) -> None:
    """Print the measures, what was left out, and what was read differently.

    Args:
        context: the command, whose options choose the format.
        outcomes: the result of each policy on the same workload; at least one.
        drawn: the picture files that were written, to be named; may be empty.
    """
    for_people = context.options.form is None and not context.options.format
    rows = [row_of(outcome, exactly=not for_people) for outcome in outcomes]
    first = outcomes[0]
    jobs = rows[0]["jobs"]
    caption = (
        f"{jobs:,} of {counted(jobs + rows[0]['left_out'], 'job')} on"
        f" {counted(first.processors, 'processor')}"
    )
    remarks = policy_remarks(outcomes)
    more = {
        "excluded": {
            reason.name.lower(): list(numbers) for reason, numbers in first.omitted.items()
        },
        "excluded_lines": {why: list(lines) for why, lines in first.notes.omitted.items()},
        "announced_jobs": first.header_jobs,
        "unmatched_accounts": list(first.unmatched_accounts),
        "remarks": remarks,
        "delivered": delivery_rows(outcomes),
        "credit": credit_rows(outcomes),
        "plots": [picture.file for picture in drawn],
    }
    notes = (
        omission_notes(first)
        + remarks
        + refusal_notes({outcome.policy: outcome for outcome in outcomes})
    )
    notes += [f"{picture.file}: {picture.caption.about}" for picture in drawn]
    columns, shown = measure_table(rows) if for_people else (COLUMNS, rows)
    show(
        context,
        Listing("fairbank.simulation/2", columns, shown, caption=caption, notes=notes, more=more),
    )


def _columns(options: Namespace) -> Sequence[Column]:
    """Return the columns to explain: for people also those of the table of measures."""
    return COLUMNS if options.form is not None else (*MEASURE_COLUMNS, *COLUMNS)


COMMAND = Command(
    "simulate a recorded workload under other policies",
    (
        "{} month.swf.gz --policy fcfs --policy easy --plots figures",
        "{} october.txt --procs 512 --starts starts.csv     what sacct -P printed",
        "{} --jobs 20000 --seed 7 --json                    a synthetic workload",
    ),
    add,
    run,
    asks=False,
    columns=_columns,
)
