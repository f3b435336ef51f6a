"""`fairbank why`: why a job waits, who is ahead, when it is likely to start, and what would start it sooner."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.like_slurm import add_folder, note, told
from fairbank.cli.options import count, file_read
from fairbank.cli.progress import Stages, add_progress
from fairbank.cli.slurm_queue import Asked as AtSlurm
from fairbank.cli.traces import USUAL, add_processors
from fairbank.cli.waiting import Asked as OfTrace
from fairbank.core.errors import Malformed
from fairbank.core.time import iso
from fairbank.report.columns import Look
from fairbank.report.envelope import as_json, as_yaml, envelope
from fairbank.report.explanation import as_data, lines

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.explanation import JobExplanation

RUNS_MIN, RUNS, RUNS_MAX = 10, 100, 10_000
_JOB = re.compile(r"\d{1,10}(_\d{1,7})?", re.ASCII)
_OF_TRACE = {
    "policy": "--policy",
    "at": "--at",
    "procs": "--procs",
    "runs": "--runs",
    "seed": "--seed",
}


def add(parser: Parser) -> None:
    parser.add_argument(
        "job",
        metavar="JOBID",
        help="the job that waits; 33_7 is a task of an array, 33 the next of its tasks",
    )
    add_folder(parser)
    parser.add_argument(
        "--no-advice",
        dest="advice",
        action="store_false",
        help="do not look for what would start it sooner",
    )
    parser.add_argument(
        "--no-likely",
        dest="likely",
        action="store_false",
        help="do not draw when it may start from what accounting knows",
    )
    trace = parser.add_argument_group("Of a job of a recorded workload")
    trace.add_argument(
        "--trace",
        metavar="FILE",
        type=file_read,
        help="the workload, as `simulate` reads it; - is standard input",
    )
    trace.add_argument(
        "--policy",
        metavar="NAME|FILE",
        help=f"as `simulate` takes it: a name, or a file FILE.toml (usual: {USUAL})",
    )
    trace.add_argument(
        "--at", metavar="TIME", help="a time, or seconds of the trace (usual: when the job came)"
    )
    add_processors(trace)
    trace.add_argument(
        "--runs",
        metavar="N",
        type=_runs,
        help=f"rehearsals, at most: from {RUNS_MIN} to {RUNS_MAX} (usual: {RUNS})",
    )
    trace.add_argument("--seed", metavar="N", type=count, help="other rehearsals (usual: 1)")
    add_progress(parser)
    form = parser.add_argument_group("How to show it").add_mutually_exclusive_group()
    form.add_argument(
        "--json", dest="form", action="store_const", const="json", help="JSON, with a named schema"
    )
    form.add_argument(
        "--yaml", dest="form", action="store_const", const="yaml", help="the same as YAML"
    )


def _runs(said: str) -> int:
    if not RUNS_MIN <= (number := count(said)) <= RUNS_MAX:
        raise ArgumentTypeError(f"from {RUNS_MIN} to {RUNS_MAX}")
    return number


def run(desk: Desk, options: Namespace) -> int:
    return _at_slurm(desk, options) if options.trace is None else _in_trace(desk, options)


def _at_slurm(desk: Desk, options: Namespace) -> int:
    for name, word in _OF_TRACE.items():
        if getattr(options, name) is not None:
            raise Malformed(
                "it changes nothing of a job at Slurm",
                field=word,
                remedy="leave it out, or name a workload: --trace FILE",
            )
    if not _JOB.fullmatch(options.job):
        raise Malformed(
            f"{options.job[:40]!r} is no job id",
            field="JOBID",
            remedy="give one as squeue has it, such as 812345 or 33_7",
        )
    with Stages(options) as stages:
        found = desk.works.slurm_queue.why(
            AtSlurm(options.job, options.folder, options.advice, options.likely),
            quote=lambda request: (
                desk.client.post("/quote", dict(request))["data"]
                if desk.settings.configured
                else None
            ),
            progress=stages,
        )
    code = told(desk, found.unreadable, "scontrol show job, node, partition, reservation")
    _tell(desk, found.row, found.cluster, found.warnings)
    return code


def _in_trace(desk: Desk, options: Namespace) -> int:
    useless = {
        "--from": options.folder is not None,
        "--no-advice": not options.advice,
        "--no-likely": not options.likely,
        "--server": options.server is not None,
        "--as": options.acting_as is not None,
    }
    for word, said in useless.items():
        if said:
            raise Malformed(
                "it changes nothing of a job of a trace",
                field=word,
                remedy="leave it out, or --trace",
            )
    if not (options.job.isascii() and options.job.isdigit() and len(options.job) <= 12):
        raise Malformed(
            f"{options.job[:40]!r} is no job of a trace",
            field="JOBID",
            remedy="give its number there, the first column",
        )
    seconds = (
        options.at is not None
        and options.at.isascii()
        and options.at.isdigit()
        and len(options.at) <= 12
    )
    moment = None if seconds else desk.moment(options.at, "--at")
    asked = OfTrace(
        trace=options.trace,
        job=int(options.job),
        policy=options.policy or USUAL,
        at=int(options.at) if seconds else None if moment is None else int(moment),
        absolute=not seconds,
        processors=options.procs,
        runs=RUNS if options.runs is None else options.runs,
        seed=1 if options.seed is None else options.seed,
    )
    with Stages(options) as stages:
        found = desk.works.explaining.in_trace(asked, progress=stages)
    _tell(desk, found.row, None, found.warnings)
    return 0


def _tell(desk: Desk, row: JobExplanation, cluster: str | None, warnings: Sequence[str]) -> None:
    """In the form that was asked for."""
    if desk.options.form is not None:
        document = envelope(
            "fairbank.why/1", iso(row.as_of), cluster, [as_data(row)], warnings, Look()
        )
        desk.say(as_json(document) if desk.options.form == "json" else as_yaml(document))
        return
    with desk.in_pages():
        for line in lines(row, desk.look, desk.room):
            desk.say(line)
    note(desk, warnings)


COMMAND = Command(
    "why a job waits, who is ahead, when it is likely to start, what would start it sooner",
    (
        "fairbank why 812345",
        "fairbank why 33_7 --json",
        "fairbank why 4711 --trace month.swf.gz --policy slurm --at 2026-10-03T09:00",
    ),
    add,
    run,
    reads=False,
)
