"""Command `fairbank prio`: priorities of pending jobs like sprio, for programs, or explained."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.commands.slurm.slurm_options import (
    add_directory,
    check_partitions,
    fit,
    print_json,
    print_unreadable,
)
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import FOUND, NOT_FOUND
from fairbank.cli.framework.host import check_users, own_name
from fairbank.cli.framework.options import add_forms, add_option, split_list
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.time import iso
from fairbank.core.units import counted
from fairbank.report.columns import Column, DisplayFormat, text
from fairbank.report.priorities import (
    as_data,
    best_rows,
    csv_lines,
    explain_priority,
    explained_data,
    partition_queues,
    possible_reasons,
    priority_differences,
    undated_note,
    unnamed_note,
)
from fairbank.report.slurm.sprio import (
    FIELDS,
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
    from fairbank.report.columns import Row
    from fairbank.report.slurm.sprio import PriorityRow
    from fairbank.slurm.fairshare_view.factor_notes import FactorNotes
    from fairbank.slurm.rankings import Priorities


FORMS = {
    "--check": "compute every factor and compare it with Slurm's",
    "--json": "JSON, with a named schema",
    "--csv": "for a spreadsheet: whole cells, separated by commas",
    "-w, --weights": "the weights of the factors, no jobs",
}
COLUMNS_ONLY = ("format", "long", "norm", "noheader")
"""Options of the output like sprio only."""


def add(parser: Parser) -> None:
    add_option(parser, "-j, --jobs JOBID,...", "only these jobs", type=_jobs)
    add_option(parser, "-u, --user, --users USER,...", "only these users", type=split_list)
    add_option(parser, "-p, --partition NAME,...", "only in these partitions", type=split_list)
    about = "sort by these columns, separated by commas; - reverses one"
    add_option(parser, "-S, --sort LETTERS", about, default="i")
    parser.takes_next("-S", "--sort")
    add_directory(parser)
    group = parser.add_argument_group("Output")
    about = (
        "bars for each factor, what decides it, and the job just ahead; of your own jobs, unless"
        " -j, -u or -p names others"
    )
    add_option(group, "--explain", about)
    add_forms(group, FORMS)
    add_option(group, "-n, --norm", "factors from 0 to 1, without their weights")
    add_option(group, "-l, --long", "all factors, with user and nice")
    add_option(group, "--noheader", "no header line")
    about = "columns as sprio takes them, such as %%.15i %%9r %%.10Y"
    add_option(group, "-o, --format FORMAT", about)
    add_option(group, "--helpformat", "list the columns, each with its meaning")


def _jobs(text: str) -> list[int]:
    words = split_list(text)
    for word in words:
        if not re.fullmatch(r"\d{1,10}", word, re.ASCII):
            raise ArgumentTypeError(f"{word[:40]!r} is not a job id")
    return [int(word) for word in words]


def _check_options(options: Namespace) -> None:
    """Raise InvalidInput for options that would change nothing."""
    if options.explain and options.form not in (None, "json"):
        raise InvalidInput(
            f"an explanation has no form --{options.form}",
            field="--explain",
            remedy="it is text, or with --json for programs",
        )
    if options.explain or options.form in ("check", "json"):
        fit(options, "--explain" if options.explain else f"--{options.form}", COLUMNS_ONLY)


def run(context: Context, options: Namespace) -> int:
    _check_options(options)
    form = parse_format(options.format) if options.format else None
    if options.form == "check":
        return _check(context, options)
    from fairbank.slurm.rankings import read_priorities

    priorities = read_priorities(options.directory, context.now())
    weights, header = priorities.weights, not options.noheader
    code = print_unreadable(context, priorities.unreadable, "sprio -l")
    form = form or default_format(
        weights,
        long=options.long,
        norm=options.norm,
        named=priorities.named,
        users=bool(options.user) and options.form != "weights",
    )
    if options.form == "weights":
        context.print_lines(weight_lines(weights, form, header=header))
        return code
    rows = sort_rows(_chosen(context, priorities.rows), weights, options.sort)
    if options.explain:
        code = _explain(context, options, priorities, rows) or code
    elif options.form == "json":
        _print_json(context, priorities, [*map(as_data, rows)], priorities.unreadable)
        context.note(*unnamed_note(rows))
    else:
        render = csv_lines if options.form == "csv" else lines
        context.print_lines(render(rows, weights, form, header=header))
        context.note(*(unnamed_note(rows) if form.has_names else ()))
    return _missing(context, rows) or code


def _print_json(
    context: Context, priorities: Priorities, data: Sequence[Row], warnings: Sequence[str]
) -> None:
    source = (priorities.as_of, priorities.cluster)
    print_json(context, "fairbank.prio/1", *source, data, warnings)


def _is_about_own_jobs(options: Namespace) -> bool:
    """Return whether the jobs are the user's own: of an explanation that names no others."""
    return options.explain and not (options.user or options.jobs or options.partition)


def _chosen(context: Context, rows: Sequence[PriorityRow]) -> list[PriorityRow]:
    """Return the rows that -j, -u and -p select. Raises NotFound for an unknown name."""
    from fairbank.slurm.commands import output_of

    options = context.options
    names = output_of(options.directory).partition_names
    check_partitions(context, {row.partition_name for row in rows}, names)
    if options.directory is None:  # a recording does not say which users there are
        check_users(options.user or (), {row.user for row in rows})
    return select_rows(
        rows,
        jobs=options.jobs or None,
        users=[own_name()] if _is_about_own_jobs(options) else options.user or None,
        partitions=options.partition or None,
    )


def _check(context: Context, options: Namespace) -> int:
    """Return 8 if a factor differs from the one computed from Slurm's output."""
    from fairbank.slurm.rankings import read_recomputed_priorities

    priorities = read_recomputed_priorities(options.directory, context.now(), context.zone)
    commands = "sprio -l, scontrol show job, sshare -a -l -P"
    if print_unreadable(context, priorities.unreadable, commands):
        raise InvalidInput(
            "with lines left out all other factors may be wrong",
            field="--check",
            remedy="fix the lines above first",
        )
    rows = _chosen(context, priorities.reported.rows)
    computed = _chosen(context, priorities.rows)
    differences = list(priority_differences(rows, computed, priorities.reported.weights))
    context.print_lines(difference.text for difference in differences)
    result = counted(len(differences), "difference") if differences else "no differences"
    context.print_text(f"{counted(len(computed), 'row')} computed: {result}")
    context.note(*possible_reasons(differences))
    if skipped := len(rows) - len(computed):
        context.note(
            f"Not computed: {counted(skipped, 'row')} of jobs with a fixed priority, "
            "or no longer pending."
        )
    return _missing(context, rows) or (FOUND if differences else 0)


def _explain(
    context: Context, options: Namespace, priorities: Priorities, rows: Sequence[PriorityRow]
) -> int:
    """Return 8 if some of what explains the factors could not be read."""
    queues, is_json = partition_queues(priorities.rows), options.form == "json"
    moment = iso if is_json else DisplayFormat(zone=context.zone).moment
    notes, warnings, code = _factor_notes(context, options.directory) if rows else (None, (), 0)
    explained = [
        (
            row,
            queues.get(row.partition_name, ()),
            priorities.weights,
            None if notes is None else notes.of(row, priorities.as_of, moment),
        )
        for row in best_rows(rows)
    ]
    if is_json:
        data = [explained_data(*explanation) for explanation in explained]
        _print_json(context, priorities, data, [*priorities.unreadable, *warnings])
    for number, explanation in enumerate(() if is_json else explained):
        if number:
            context.print_text()
        context.print_lines(explain_priority(*explanation))
    context.note(*unnamed_note(rows), *(undated_note(priorities.rows) if rows else ()))
    return code


def _factor_notes(
    context: Context, directory: str | None
) -> tuple[FactorNotes | None, Sequence[str], int]:
    """Return what explains the factors, None if it cannot be read, what is missing, and the exit
    code.
    """
    from fairbank.slurm.rankings import read_factor_notes

    try:
        notes, unreadable = read_factor_notes(directory)
    except FairbankError as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        text = f"Why age, association and QOS count so is not known: {error.message}{remedy}"
        context.note(text)
        return None, [text], 0
    commands = "sacctmgr show qos, show associations"
    return notes, unreadable, print_unreadable(context, unreadable, commands)


def _missing(context: Context, rows: Sequence[PriorityRow]) -> int:
    """Note the named jobs that are not pending, or that there are none. Return 3 for the first."""
    shown = {row.job for row in rows}
    missing = [number for number in context.options.jobs or () if number not in shown]
    if missing:
        context.note(f"Not waiting, or held, or not eligible yet: {', '.join(map(str, missing))}.")
    elif not rows and _is_about_own_jobs(context.options):
        context.note(
            f"None of your jobs ({own_name()}) waits. Name a job with -j JOBID, or users with -u"
            " USER."
        )
    elif not rows:
        context.note("No such job waits.")
    return NOT_FOUND if missing else 0


COMMAND = Command(
    "show the factors of the priorities of pending jobs",
    ("{}", "{} --explain -j 812345", "{} -l -S -Y"),
    add,
    run,
    reads=False,
    asks=False,
    columns=[Column(head, text(head)) for head in {field.head: None for field in FIELDS.values()}],
)
