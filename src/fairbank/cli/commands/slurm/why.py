"""Command `fairbank why`: why a job waits, its likely start, and what would start it sooner."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from functools import partial
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.planning.workload_options import DEFAULT_POLICY, add_processors
from fairbank.cli.commands.slurm.slurm_options import add_directory, print_json, print_unreadable
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import (
    add_clusters,
    add_forms,
    add_option,
    count,
    file_read,
    job_of_cluster,
)
from fairbank.cli.framework.output import source_line
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import FairbankError, InvalidInput, NotFound, Unavailable
from fairbank.core.submission.arrays import parse_array
from fairbank.core.time import iso
from fairbank.core.units import counted
from fairbank.report.explanation import JobExplanation, TermsBesideJobAhead, as_data, lines

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.scheduling.explain.answer import Explanation
    from fairbank.slurm.rankings import Priorities

RUNS_MAX = 10_000
_JOB = re.compile(r"0*[1-9]\d{0,9}(_\d{1,7}|\+\d{1,4})?", re.ASCII)
_REMEDY = "give one as squeue has it, such as 812345, 33_7 or 33_[1-5]"
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)
_OF_TRACE = ("policy", "at", "procs", "runs", "seed")


def add(parser: Parser) -> None:
    from fairbank.scheduling.explain.answer import MIN_RUNS, RUNS

    about = (
        "the job that waits, also as CLUSTER/JOBID; 33_7 is a task of an array, 33 or 33_[1-5] the"
        " next of its tasks, 40+1 a component of a heterogeneous job"
    )
    add_option(parser, "job JOBID", about, type=partial(job_of_cluster, str))
    add_clusters(parser, "the job's cluster (default: that of Slurm here, or the one with the job)")
    add_directory(parser)
    about = "do not search changes that would start it sooner"
    add_option(parser, "--no-advice", about, dest="advice", action="store_false")
    about = "do not estimate the start from accounting"
    add_option(parser, "--no-likely", about, dest="likely", action="store_false")
    trace = parser.add_argument_group("Job of a recorded workload")
    about = "the workload, as `simulate` reads it; - is standard input"
    add_option(trace, "--trace FILE", about, type=file_read)
    about = f"as `simulate` takes it: a name, or a file FILE.toml (default: {DEFAULT_POLICY})"
    add_option(trace, "--policy NAME|FILE", about)
    add_option(trace, "--at TIME", "a time, or seconds of the trace (default: the submission)")
    add_processors(trace)
    about = f"simulated runs, at most: from {MIN_RUNS} to {RUNS_MAX} (default: {RUNS})"
    add_option(trace, "--runs N", about, type=_runs)
    add_option(trace, "--seed N", "seed of the simulated runs (default: 1)", type=count)
    add_progress(parser)
    add_forms(parser.add_argument_group("Output"), {"--json": "JSON, with a named schema"})


def _runs(text: str) -> int:
    from fairbank.scheduling.explain.answer import MIN_RUNS

    if not MIN_RUNS <= (number := count(text)) <= RUNS_MAX:
        raise ArgumentTypeError(f"from {MIN_RUNS} to {RUNS_MAX}")
    return number


def run(context: Context, options: Namespace) -> int:
    return _at_slurm(context, options) if options.trace is None else _in_trace(context, options)


def _at_slurm(context: Context, options: Namespace) -> int:
    for name in _OF_TRACE:
        if getattr(options, name) is not None:
            raise InvalidInput(
                "it has no effect on a job at Slurm",
                field=f"--{name}",
                remedy="leave it out, or name a workload: --trace FILE",
            )
    options.job = _whole_array(options.job)
    if not _JOB.fullmatch(options.job):
        raise InvalidInput(f"{options.job[:40]!r} is not a job id", field="JOBID", remedy=_REMEDY)
    from fairbank.slurm.explain.queue_explanation import explain
    from fairbank.slurm.explain.waiting_job import NotListed, NotPending

    def quote(request: Mapping[str, object]) -> Any:
        try:
            return context.client.post("/quote", dict(request))["data"]
        except FairbankError as error:
            context.bank = error.bank or context.bank  # it may be another bank than was meant
            raise

    try:
        with Stages(options) as progress:
            explanation = explain(
                options.job,
                options.directory,
                advice=options.advice,
                likely=options.likely,
                quote=quote if context.settings.is_configured else None,
                progress=progress,
            )
    except (NotPending, NotListed, Unavailable) as error:
        from fairbank.cli.commands.slurm.job_state import show_state

        return show_state(context, options, _other_cluster_error(options, error) or error)
    if other := _other_cluster_error(options, explanation):
        from fairbank.cli.commands.slurm.job_state import show_state

        return show_state(context, options, other)
    commands = "scontrol show job, node, partition, reservation"
    row, notes = explanation.row, [*explanation.notes]
    unreadable: list[object] = [*explanation.unreadable]
    if row.why.position is not None:
        try:
            priorities = _read_priorities(options, row.as_of)
        except FairbankError as error:
            notes.append(f"the terms of the priority are not known: {error.message}")
        else:
            if priorities is not None:
                row = row._replace(priority=_priority_terms(priorities, row))
                unreadable += priorities.unreadable
    code = print_unreadable(context, [*dict.fromkeys(map(str, unreadable))], commands)
    _show_explanation(context, row, explanation.cluster, [*notes, *missing_range(row.why)])
    return code


def _other_cluster_error(options: Namespace, answer: object) -> Unavailable | None:
    """Return the error for an answer of Slurm about another cluster than that of -M, else None."""
    cluster = getattr(answer, "cluster", None)
    if cluster is None or options.cluster in (None, cluster):
        return None
    return Unavailable(
        f"the queue here is that of cluster {cluster}",
        field="--clusters",
        remedy=f"for a job that waits, run this on a host of cluster {options.cluster}",
    )


def _whole_array(name: str) -> str:
    """Return the number of an array that waits, of its name in squeue: 15 of `15_[1-5,9%2]`."""
    number, bracket, tasks = name.partition("_[")
    if bracket:
        # squeue cuts a long list of tasks after 64 characters.
        parse_array(f"[{tasks.replace(',...', '')}", field="JOBID", remedy=_REMEDY)
    return number


def _read_priorities(options: Namespace, now: int) -> Priorities | None:
    """Return the priorities of pending jobs; None under priority/basic, and for a directory without
    sprio.txt.
    """
    from fairbank.slurm.fairshare_view.priorities import NoFactors
    from fairbank.slurm.rankings import read_priorities

    try:
        return read_priorities(options.directory, now)
    except (NoFactors, NotFound):
        return None


def _priority_terms(priorities: Priorities, row: JobExplanation) -> TermsBesideJobAhead | None:
    """Return the terms of the job's priority beside those of the last job that is ahead of it in
    its partition; None if sprio does not list the job.
    """
    from fairbank.jobqueue.arrays import record_number
    from fairbank.report.priorities import as_data as row_data
    from fairbank.report.priorities import (
        best_rows,
        partition_queues,
        terms_side_by_side,
        with_job_ahead,
    )

    number = record_number(row.why.number)  # all tasks of an array have the priority of the array
    own = [candidate for candidate in best_rows(priorities.rows) if candidate.job == number]
    if not own:
        return None
    best = max(own, key=lambda candidate: candidate.priority)
    # sprio also lists jobs that wait for other nodes, and those that their partition does not take.
    ahead = {record_number(other) for other in row.why.ahead}
    rows = [candidate for candidate in priorities.rows if candidate.job in {number, *ahead}]
    pair = with_job_ahead(best, partition_queues(rows)[best.partition_name])
    return TermsBesideJobAhead(terms_side_by_side(pair, priorities.weights), [*map(row_data, pair)])


def _in_trace(context: Context, options: Namespace) -> int:
    useless = {
        "--clusters": options.cluster is not None,
        "--from": options.directory is not None,
        "--no-advice": not options.advice,
        "--no-likely": not options.likely,
        "--server": options.server is not None,
        "--as": options.acting_as is not None,
    }
    for word, is_given in useless.items():
        if is_given:
            raise InvalidInput(
                "it has no effect on a job of a trace",
                field=word,
                remedy="leave it out, or --trace",
            )
    if not _NUMBER.fullmatch(options.job):
        raise InvalidInput(
            f"{options.job[:40]!r} is not a job of a trace",
            field="JOBID",
            remedy="give its number there, the first column",
        )
    is_absolute = options.at is None or not _NUMBER.fullmatch(options.at)
    moment = context.moment(options.at, "--at") if is_absolute else options.at
    _show_explanation(context, *_explain_trace_job(options, moment, is_absolute=is_absolute))
    return 0


def _explain_trace_job(
    options: Namespace, moment: str | None, *, is_absolute: bool
) -> tuple[JobExplanation, None, list[str]]:
    """Simulate until the job starts and explain why it waited.

    `moment` is the time to explain, None for the submission: in seconds since 1970 if
    `is_absolute`, else in seconds of the trace.
    """
    from pathlib import Path

    from fairbank.service.simulation.simulation_files import policies_of
    from fairbank.service.simulation.trace_files import in_file
    from fairbank.simulator.results.explanation import SampleSettings
    from fairbank.simulator.results.job_query import JobQuery, explain_job
    from fairbank.slurm.parsers.traces.any_format import read_any_trace

    (policy,) = policies_of([options.policy or DEFAULT_POLICY])
    samples = SampleSettings()
    if options.runs is not None:
        samples = samples._replace(runs=options.runs)
    if options.seed is not None:
        samples = samples._replace(seed=options.seed)
    at = None if moment is None else int(moment)
    query = JobQuery(int(options.job), at, is_absolute, options.procs, samples)
    with (
        Stages(options) as progress,
        in_file(Path(options.trace), read_any_trace) as (trace, extent),
    ):
        job = explain_job(
            trace, policy, query, lambda jobs: progress(policy.name, jobs, extent.about(jobs))
        )
    facts = {
        "user": job.user,
        "processors": job.processors,
        "limit_seconds": job.limit,
        "policy": job.policy,
    }
    row = JobExplanation(
        str(int(options.job)),
        facts,
        job.submitted,
        job.as_of,
        job.why,
        [str(number) for number in job.why.ahead],
        started=job.started,
    )
    remarks = [f"policy {policy.name}: {remark}" for remark in policy.remarks]
    return row, None, [*missing_range(job.why), *remarks]


def missing_range(why: Explanation) -> list[str]:
    """Return a note why the start has no range; none if it has one or none was requested."""
    from fairbank.scheduling.explain.answer import NoStartRange

    match why.missing_range_reason:
        case NoStartRange.NOT_QUEUED:
            return [f"no likely start: it is not in the queue ({why.code})"]
        case NoStartRange.TOO_FAR:
            ahead = f"with {counted(len(why.ahead), 'job')} ahead " if why.ahead else ""
            return [f"no likely start: {ahead}it is too far off to be simulated here"]
        case NoStartRange.NO_START:
            return [
                f"no likely start: as far as the simulated runs went, {why.code} kept it waiting"
            ]
    return []


def _show_explanation(
    context: Context, row: JobExplanation, cluster: str | None, warnings: Sequence[str]
) -> None:
    """Print the explanation in the requested form."""
    if context.options.form == "json":
        print_json(context, "fairbank.why/1", row.as_of, cluster, [as_data(row)], warnings)
        return
    context.as_of, context.cluster = iso(row.as_of), cluster
    with context.in_pages():
        context.print_lines(source_line(context))
        context.print_lines(lines(row, context.format, context.width))
    context.note(*warnings)


COMMAND = Command(
    "explain why a job waits and when it may start; or that it runs, ended or was refused",
    (
        "{} 812345",
        "{} 33_7 --json",
        "{} 4711 --trace month.swf.gz --policy slurm --at 2026-10-03T09:00",
    ),
    add,
    run,
    reads=False,
)
