"""Command `fairbank simulate`: a recorded or synthetic workload under other policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.planning.picture_files import PictureFile, check_folder, write_picture
from fairbank.cli.commands.planning.simulation_rows import (
    credited,
    delivered,
    notes_of,
    refused_of,
    remarks_of,
    row_of,
)
from fairbank.cli.commands.planning.workload_options import (
    DEFAULT_POLICY,
    POLICIES,
    add_budget,
    add_processors,
    add_trace,
    budget_of,
)
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import at_least_one, count, file_written
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.report.cells import counted, plain
from fairbank.report.simulations import COLUMNS, measure_table

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.simulations import SimulatedJobRow
    from fairbank.service.simulation.comparison import Progress
    from fairbank.service.simulation.workloads import Modelled
    from fairbank.simulator.engine.simulation import SimulationResult


def add(parser: Parser) -> None:
    add_trace(parser, optional=True)
    parser.add_argument(
        "--policy",
        metavar="NAME|FILE",
        dest="policies",
        action="append",
        help=f"{POLICIES} that describes one; may be repeated (default: {DEFAULT_POLICY})",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=at_least_one,
        help="instead of a trace a synthetic workload of so many jobs",
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        help="the same of a centre that this file describes (default: 960 processors, 40 users)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=count, help="another synthetic workload (default: 1)"
    )
    parser.add_argument(
        "--save",
        metavar="FILE",
        type=file_written,
        help="write the synthetic workload as a trace too",
    )
    add_processors(parser)
    _add_results(parser)
    add_budget(parser)
    add_progress(parser)


def _add_results(parser: Parser) -> None:
    parser.add_argument(
        "--starts",
        metavar="FILE",
        type=file_written,
        help=(
            "write a line `job start` for each job, in the order of the queue, of one policy; a"
            " FILE.csv has a table of all policies"
        ),
    )
    parser.add_argument(
        "--shares",
        metavar="FILE",
        help="lines `account,shares`: how much is delivered to whom beyond the shares",
    )
    parser.add_argument(
        "--by",
        choices=("user", "group"),
        help=(
            "whose shares and credit are; the group of a Slurm job is its account (default: user;"
            " with --grant group, if there are any)"
        ),
    )
    parser.add_argument(
        "--fair-starts",
        metavar="N",
        type=at_least_one,
        default=0,
        help="look at the fair start of every N-th job, which takes long",
    )
    parser.add_argument(
        "--plots",
        metavar="FOLDER",
        help=(
            "draw utilisation, queue, waits and, with --shares, shares; made if need be; "
            "needs fairbank[plots]"
        ),
    )
    parser.add_argument(
        "--png",
        action="store_true",
        help="draw PNG files, for where SVG is not taken (default: SVG)",
    )


def run(context: Context, options: Namespace) -> int:
    if shown_columns(context, COLUMNS):
        return 0
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
            remedy="add --plots FOLDER, or leave it out",
        )
    workload = _workload(options)
    with Stages(options) as progress:
        outcomes = _simulate(workload, policies, options, progress)
    try:
        if options.starts is not None:
            _write_starts(outcomes, options.starts)
        drawn = _draw(context, options, outcomes) if options.plots else ()
    except FairbankError:
        tell(context, outcomes, ())  # the work is done, and may have been long
        raise
    tell(context, outcomes, drawn)
    return 0


def _workload(options: Namespace) -> str | Modelled:
    """Return the name of the trace, or a synthetic workload. Raises InvalidInput."""
    names = ("jobs", "model", "seed", "save")
    synthetic = [f"--{name}" for name in names if getattr(options, name) is not None]
    if options.trace is not None and synthetic:
        raise InvalidInput(
            f"{synthetic[0]} is for a synthetic workload",
            field=synthetic[0][2:],
            remedy="name no trace, or leave it out",
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

    from fairbank.service.simulation.workloads import (
        CentreSettings,
        Modelled,
        centre_of,
        read_centre,
    )

    settings = CentreSettings() if options.model is None else read_centre(Path(options.model))
    if options.jobs is not None:
        settings = msgspec.structs.replace(settings, jobs=options.jobs)
    workload = Modelled(centre_of(settings), _seed(options))
    if options.save is not None:
        workload.save(Path(options.save))
    return workload


def _simulate(
    workload: str | Modelled, policies: Sequence[str], options: Namespace, progress: Progress
) -> list[SimulationResult]:
    """Simulate the workload under each policy.

    Raises FairbankError before the work starts if the file of --starts cannot be written.
    """
    from functools import partial
    from pathlib import Path

    from fairbank.service.simulation.comparison import check_starts, read_shares, simulate_each
    from fairbank.service.simulation.workloads import in_file
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
    return simulate_each(
        (
            partial(in_file, Path(workload), read_any_trace)
            if isinstance(workload, str)
            else workload.opened
        ),
        policies,
        plan,
        holdings=None if options.shares is None else read_shares(Path(options.shares)),
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
    from fairbank.service.simulation.comparison import write_starts

    schedules = ((outcome.policy, _job_rows(outcome)) for outcome in outcomes)
    starts = schedules_csv(schedules) if _is_table(path) else outcomes[-1].starts.text()
    write_starts(starts, Path(path))


def _job_rows(outcome: SimulationResult) -> Iterator[SimulatedJobRow]:
    """Yield the jobs with users and groups by name, or by number if the trace has no names."""
    from fairbank.report.simulations import SimulatedJobRow

    people = outcome.people
    user, group = (_name, _name) if people is None else (people.users.name, people.groups.name)
    for job in outcome.runs or ():
        yield SimulatedJobRow(
            job.job,
            user(job.user),
            group(job.group),
            job.submitted,
            job.started,
            job.ended,
            job.processors,
        )


def _name(number: int) -> str:
    return "" if number < 0 else str(number)


def _check_pictures(policies: Sequence[str], folder: str) -> None:
    """Raise InvalidInput, before the work starts, if the figures cannot be drawn or written."""
    from fairbank.report.plots.figures import SERIES_MAX

    check_folder(folder, "plots")
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

    return [
        PictureFile(
            write_picture(options.plots, name, figure, as_png=options.png, option="plots"),
            figure.caption.about,
        )
        for name, figure in figures(outcomes, _source(options), context.command_line)
    ]


def _source(options: Namespace) -> str:
    """Return the name of the trace, or the seed of the synthetic workload."""
    if options.trace is not None:
        return f"trace {options.trace}"
    site = f" of {options.model}" if options.model is not None else ""
    return f"synthetic workload{site}, seed {_seed(options)}"


def _seed(options: Namespace) -> int:
    return 1 if options.seed is None else int(options.seed)


def tell(
    context: Context, outcomes: Sequence[SimulationResult], drawn: Sequence[PictureFile]
) -> None:
    """Print the measures, what was left out, and what was read differently."""
    for_people = context.options.form is None and not context.options.format
    rows = [row_of(outcome, exactly=not for_people) for outcome in outcomes]
    first = outcomes[0]
    there = rows[0]["jobs"] + rows[0]["left_out"]
    caption = (
        f"{rows[0]['jobs']:,} of {counted(there, 'job')} on"
        f" {counted(first.processors, 'processor')}"
    )
    remarks = remarks_of(outcomes)
    more = {
        "excluded": {
            reason.name.lower(): list(numbers) for reason, numbers in first.omitted.items()
        },
        "excluded_lines": {why: list(lines) for why, lines in first.notes.omitted.items()},
        "announced_jobs": first.header_jobs,
        "strangers": list(first.unmatched_accounts),
        "remarks": remarks,
        "delivered": delivered(outcomes),
        "credit": credited(outcomes),
        "plots": [each.file for each in drawn],
    }
    notes = notes_of(first) + remarks + refused_of({each.policy: each for each in outcomes})
    notes += [f"{plain(each.file)}: {plain(each.about)}" for each in drawn]
    table = measure_table(rows)
    columns, shown = (table.columns, table.rows) if for_people else (COLUMNS, rows)
    if for_people and not rows[0]["jobs"]:
        shown = []
    empty = "No job of this trace can be simulated."
    show(
        context,
        Listing(
            "fairbank.simulation/1",
            columns,
            shown,
            caption=caption,
            notes=notes,
            more=more,
            empty=empty,
        ),
    )
    if for_people and not rows[0]["jobs"]:
        for note in notes:
            context.note(note)


COMMAND = Command(
    "simulate a recorded workload under other policies",
    (
        "fairbank simulate month.swf.gz --policy fcfs --policy easy --plots figures",
        "fairbank simulate october.txt --procs 512 --starts starts.csv     what sacct -P printed",
        "fairbank simulate --jobs 20000 --seed 7 --json                    a synthetic workload",
    ),
    add,
    run,
    asks=False,
)
