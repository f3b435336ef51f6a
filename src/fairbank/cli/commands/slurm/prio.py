"""Command `fairbank prio`: priorities of pending jobs like sprio, for programs, or explained."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.commands.slurm.slurm_options import add_folder, fit, note, print_unreadable
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import FOUND, NOT_FOUND
from fairbank.cli.framework.host import Local, own_name
from fairbank.cli.framework.options import listed
from fairbank.core.errors import InvalidInput
from fairbank.core.time import iso
from fairbank.report.cells import counted
from fairbank.report.columns import Look
from fairbank.report.envelope import as_json, envelope
from fairbank.report.priorities import (
    as_data,
    best_rows,
    explain_priority,
    partition_queues,
    possible_reasons,
    priority_differences,
    undated_note,
    unnamed_note,
)
from fairbank.report.sprio import (
    csv_lines,
    default_format,
    lines,
    parse_format,
    select_rows,
    sort_rows,
    weight_lines,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.sprio import PriorityRow
    from fairbank.slurm.rankings import Priorities


def add(parser: Parser) -> None:
    parser.add_argument("-j", "--jobs", metavar="JOBID,...", type=_jobs, help="only these jobs")
    parser.add_argument(
        "-u", "--user", "--users", metavar="USER,...", type=listed, help="only these users"
    )
    parser.add_argument(
        "-p", "--partition", metavar="NAME,...", type=listed, help="only in these partitions"
    )
    parser.add_argument(
        "-S",
        "--sort",
        metavar="LETTERS",
        default="i",
        help="sort by these columns, separated by commas; - reverses one",
    )
    parser.takes_next("-S", "--sort")
    add_folder(parser)
    group = parser.add_argument_group("Output")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--explain",
        dest="form",
        action="store_const",
        const="explain",
        help=(
            "bars for each factor, and the job just ahead; of your own jobs, "
            "unless -j, -u or -p names others"
        ),
    )
    form.add_argument(
        "--check",
        dest="form",
        action="store_const",
        const="check",
        help="compute every factor and compare it with Slurm's",
    )
    form.add_argument(
        "--json", dest="form", action="store_const", const="json", help="JSON, with a named schema"
    )
    form.add_argument(
        "--csv",
        dest="form",
        action="store_const",
        const="csv",
        help="for a spreadsheet: whole cells, separated by commas",
    )
    form.add_argument(
        "-w",
        "--weights",
        dest="form",
        action="store_const",
        const="weights",
        help="the weights of the factors, no jobs",
    )
    group.add_argument(
        "-n", "--norm", action="store_true", help="factors from 0 to 1, without their weights"
    )
    group.add_argument("-l", "--long", action="store_true", help="all factors, with user and nice")
    group.add_argument("--noheader", action="store_true", help="no header line")
    group.add_argument(
        "-o",
        "--format",
        metavar="FORMAT",
        help="columns as sprio takes them, such as %%.15i %%9r %%.10Y",
    )


def _jobs(text: str) -> list[int]:
    words = listed(text)
    if wrong := [
        word for word in words if not (word.isascii() and word.isdigit() and len(word) <= 10)
    ]:
        raise ArgumentTypeError(f"{wrong[0][:40]!r} is no job id")
    return [int(word) for word in words]


COLUMNS_ONLY = {"format": "--format", "long": "--long", "norm": "--norm", "noheader": "--noheader"}
"""Options of the output like sprio only."""


def run(context: Context, options: Namespace) -> int:
    if options.form in ("explain", "check", "json"):
        fit(options, f"--{options.form}", COLUMNS_ONLY)
    form = parse_format(options.format) if options.format else None
    if options.form == "check":
        return _check(context, options)
    from fairbank.slurm.rankings import read_priorities

    priorities = read_priorities(options.folder, context.now())
    code = print_unreadable(context, priorities.unreadable, "sprio -l")
    if options.form == "weights":
        columns = form or default_format(
            priorities.weights, long=options.long, norm=options.norm, named=priorities.named
        )
        for line in weight_lines(priorities.weights, columns, header=not options.noheader):
            context.say(line)
        return code
    rows = _chosen(context, options, priorities.rows)
    rows = sort_rows(rows, priorities.weights, options.sort)
    match options.form:
        case "json":
            document = envelope(
                "fairbank.prio/1",
                iso(priorities.as_of),
                priorities.cluster,
                as_data(rows),
                priorities.unreadable,
                Look(),
            )
            context.say(as_json(document))
            note(context, unnamed_note(rows))
            return code
        case "explain":
            _explain(context, priorities, rows)
        case _:
            columns = form or default_format(
                priorities.weights,
                long=options.long,
                norm=options.norm,
                named=priorities.named,
                users=bool(options.user),
            )
            render = csv_lines if options.form == "csv" else lines
            for line in render(rows, priorities.weights, columns, header=not options.noheader):
                context.say(line)
            note(context, unnamed_note(rows) if columns.tells_names else [])
    return _known(context, rows, None if _others(options) else own_name()) or code


def _chosen(context: Context, options: Namespace, rows: Sequence[PriorityRow]) -> list[PriorityRow]:
    return select_rows(
        rows,
        jobs=options.jobs or None,
        users=_users(context, options),
        partitions=options.partition or None,
    )


def _check(context: Context, options: Namespace) -> int:
    """Return 8 if a factor differs from the one computed from Slurm's output."""
    from fairbank.slurm.rankings import read_recomputed_priorities

    priorities = read_recomputed_priorities(options.folder, context.now(), Local())
    if print_unreadable(
        context, priorities.unreadable, "sprio -l, scontrol show job, sshare -a -l -P"
    ):
        raise InvalidInput(
            "with lines left out all other factors may be wrong",
            field="--check",
            remedy="fix the lines above first",
        )
    rows = _chosen(context, options, priorities.reported.rows)
    computed = _chosen(context, options, priorities.rows)
    differences = list(priority_differences(rows, computed, priorities.reported.weights))
    for difference in differences:
        context.say(difference.text)
    result = counted(len(differences), "difference") if differences else "no differences"
    context.say(f"{counted(len(computed), 'row')} computed: {result}")
    note(context, possible_reasons(differences))
    if skipped := len(rows) - len(computed):
        context.note(
            f"Not computed: {counted(skipped, 'row')} of jobs with a fixed priority, "
            "or no longer pending."
        )
    return _known(context, rows) or (FOUND if differences else 0)


def _users(context: Context, options: Namespace) -> Sequence[str] | None:
    """Return the users to select: for explanations oneself, unless others are named."""
    return options.user or (None if _others(options) else [own_name()])


def _others(options: Namespace) -> bool:
    """Return True if the command is not about the user's own jobs only."""
    return options.form != "explain" or bool(options.user or options.jobs or options.partition)


def _explain(context: Context, priorities: Priorities, rows: Sequence[PriorityRow]) -> None:
    queues = partition_queues(priorities.rows)
    for number, row in enumerate(best_rows(rows)):
        if number:
            context.say()
        for line in explain_priority(row, queues.get(row.partition_name, ()), priorities.weights):
            context.say(line)
    note(context, [*unnamed_note(rows), *(undated_note(priorities.rows) if rows else [])])


def _known(context: Context, rows: Sequence[PriorityRow], own: str | None = None) -> int:
    """Return 3 if a named job is not pending. `own` is the user if no user was named."""
    missing = [
        number for number in context.options.jobs or () if number not in {row.job for row in rows}
    ]
    if missing:
        context.note(f"Not waiting, or held, or not eligible yet: {', '.join(map(str, missing))}.")
    elif not rows and own is not None:
        note(
            context,
            [f"None of your jobs ({own}) waits. Name a job with -j JOBID, or users with -u USER."],
        )
    elif not rows:
        context.note("No such job waits.")
    return NOT_FOUND if missing else 0


COMMAND = Command(
    "show the factors of the priorities of pending jobs",
    ("fairbank prio", "fairbank prio --explain -j 812345", "fairbank prio -l -S -Y"),
    add,
    run,
    reads=False,
    asks=False,
)
