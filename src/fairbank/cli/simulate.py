"""`fairbank simulate`: what would have become of a recorded workload under other policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.command import Command
from fairbank.cli.granting import add_granting, granting_of
from fairbank.cli.options import at_least_one, count, file_written
from fairbank.cli.outcomes import credited, delivered, notes_of, refused_of, remarks_of, row_of
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.progress import Stages, add_progress
from fairbank.cli.simulated import Terms, is_table
from fairbank.cli.traces import POLICIES, USUAL, add_processors, add_trace
from fairbank.core.errors import Malformed, Trouble
from fairbank.report.cells import counted, plain
from fairbank.report.simulations import COLUMNS, measure_table

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.desk import Desk
    from fairbank.cli.figures import Drawn
    from fairbank.cli.parser import Parser
    from fairbank.cli.simulated import Outcome


def add(parser: Parser) -> None:
    add_trace(parser, optional=True)
    parser.add_argument(
        "--policy",
        metavar="NAME|FILE",
        dest="policies",
        action="append",
        help=f"{POLICIES} that describes one; may be repeated (usual: {USUAL})",
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
        help="the same of a centre that this file describes (usual: 960 processors, 40 users)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=count, help="another synthetic workload (usual: 1)"
    )
    parser.add_argument(
        "--save",
        metavar="FILE",
        type=file_written,
        help="write the synthetic workload as a trace too",
    )
    add_processors(parser)
    parser.add_argument(
        "--starts",
        metavar="FILE",
        type=file_written,
        help="write a line `job start` for each job, in the order of the queue, of one policy; a FILE.csv has a table of all policies",
    )
    parser.add_argument(
        "--shares",
        metavar="FILE",
        help="lines `account,shares`: how much is delivered to whom beyond the shares",
    )
    parser.add_argument(
        "--by",
        choices=("user", "group"),
        help="whose shares and credit are; the group of a Slurm job is its account (usual: user; with --grant group, if there are any)",
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
        help="draw utilisation, queue, waits and, with --shares, shares; made if need be",
    )
    parser.add_argument(
        "--png", action="store_true", help="draw PNG files, for where SVG is not taken (usual: SVG)"
    )
    add_granting(parser)
    add_progress(parser)


def run(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    policies = list(dict.fromkeys(options.policies or [USUAL]))
    if options.starts is not None and len(policies) > 1 and not is_table(options.starts):
        remedy = "name one --policy, or a FILE.csv, which has room for all"
        raise Malformed("--starts has room for one schedule", field="starts", remedy=remedy)
    if options.plots is not None:
        desk.works.courses.check(policies, options.plots)
    elif options.png:
        raise Malformed(
            "--png says how pictures are drawn, and none are",
            field="png",
            remedy="add --plots FOLDER, or leave it out",
        )
    workload = _workload(desk, options)
    with Stages(options) as stages:
        outcomes = desk.works.planning.simulate(
            workload,
            policies,
            Terms(options.procs, options.shares, options.by, granting_of(options)),
            starts=options.starts,
            fair_starts=options.fair_starts,
            plots=options.plots is not None,
            progress=stages,
        )
    try:
        if options.starts is not None:
            desk.works.planning.save_starts(outcomes, options.starts)
        drawn = (
            desk.works.courses.draw(outcomes, options.plots, as_png=options.png)
            if options.plots is not None
            else ()
        )
    except Trouble:
        tell(desk, outcomes, ())  # the work is done, and may have been long
        raise
    tell(desk, outcomes, drawn)
    return 0


def _workload(desk: Desk, options: Namespace) -> Any:
    """The name of the trace; or a synthetic workload, where one is asked for."""
    asked = {name: getattr(options, name) for name in ("jobs", "model", "seed", "save")}
    told = [f"--{name}" for name, value in asked.items() if value is not None]
    if options.trace is not None and told:
        raise Malformed(
            f"{told[0]} is for a synthetic workload",
            field=told[0][2:],
            remedy="name no trace, or leave it out",
        )
    if options.trace is not None:
        return options.trace
    if options.jobs is None and options.model is None:
        raise Malformed(
            "there is nothing to simulate",
            field="FILE",
            remedy="name a trace, or --jobs N for a synthetic workload",
        )
    workload = desk.works.models.workload(
        options.model, jobs=options.jobs, seed=1 if options.seed is None else options.seed
    )
    if options.save is not None:
        desk.works.models.save(workload, options.save)
    return workload


def tell(desk: Desk, outcomes: Sequence[Outcome], drawn: Sequence[Drawn]) -> None:
    """The measures beside each other, what was left out, and what was read otherwise."""
    for_people = desk.options.form is None and not desk.options.format
    rows = [row_of(outcome, exactly=not for_people) for outcome in outcomes]
    first = outcomes[0]
    there = rows[0]["jobs"] + rows[0]["left_out"]
    caption = f"{rows[0]['jobs']:,} of {counted(there, 'job')} on {counted(first.processors, 'processor')}"
    remarks = remarks_of(outcomes)
    more = {
        "excluded": {reason.name.lower(): list(numbers) for reason, numbers in first.left.items()},
        "excluded_lines": {why: list(lines) for why, lines in first.notes.left.items()},
        "announced_jobs": first.announced,
        "strangers": list(first.strangers),
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
        desk,
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
            desk.note(note)


COMMAND = Command(
    "what would have become of a recorded workload under other policies",
    (
        "fairbank simulate month.swf.gz --policy fcfs --policy easy --plots figures",
        "fairbank simulate october.txt --procs 512 --starts starts.csv     what sacct -P printed",
        "fairbank simulate --jobs 20000 --seed 7 --json                    a synthetic workload",
    ),
    add,
    run,
    asks=False,
)
