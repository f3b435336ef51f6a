"""`fairbank why`: why a job waits, who is ahead, when it is likely to start, and what would start it sooner."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.options import count
from fairbank.cli.progress import Stages, add_progress
from fairbank.report.columns import Look
from fairbank.report.envelope import as_json, as_yaml, envelope
from fairbank.report.waiting import data, lines
from fairbank.values.time import iso
from fairbank.values.trouble import Malformed

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.waiting import Waiting

USUAL = "easy"
RUNS, RUNS_MAX = 100, 10_000


def add(parser: Parser) -> None:
    parser.add_argument("job", metavar="JOB", help="its number")
    parser.add_argument("--trace", metavar="FILE", required=True, help="the job of a recorded workload, as `simulate` reads it")
    parser.add_argument("--policy", metavar="NAME", default=USUAL, help=f"fifo, fcfs, easy, conservative, slurm (usual: {USUAL})")
    parser.add_argument("--at", metavar="TIME", help="a time, or seconds of the trace (usual: when the job came)")
    parser.add_argument("--procs", metavar="N", type=_at_least_one, help="processors of the machine (usual: MaxProcs of the trace)")
    parser.add_argument("--runs", metavar="N", type=_runs, default=RUNS, help=f"rehearsals, at most (usual: {RUNS})")
    parser.add_argument("--seed", metavar="N", type=count, default=1, help="other rehearsals (usual: 1)")
    add_progress(parser)
    form = parser.add_argument_group("How to show it").add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", help="JSON, with a named schema")
    form.add_argument("--yaml", dest="form", action="store_const", const="yaml", help="the same as YAML")


def _at_least_one(said: str) -> int:
    if (number := count(said)) == 0:
        raise ArgumentTypeError("at least 1")
    return number


def _runs(said: str) -> int:
    if not 10 <= (number := count(said)) <= RUNS_MAX:
        raise ArgumentTypeError(f"from 10 to {RUNS_MAX}")
    return number


def run(desk: Desk, options: Namespace) -> int:
    tell(desk, _in_trace(desk, options))
    return 0


def _in_trace(desk: Desk, options: Namespace) -> Waiting:
    if not (options.job.isascii() and options.job.isdigit() and len(options.job) <= 12):
        raise Malformed(f"{options.job[:40]!r} is no job of a trace", field="JOB", remedy="give its number there, the first column")
    seconds = options.at is not None and options.at.isascii() and options.at.isdigit() and len(options.at) <= 12
    moment = None if seconds else desk.moment(options.at, "--at")
    with Stages(options) as stages:
        return desk.works.explaining.in_trace(
            options.trace,
            int(options.job),
            policy=options.policy,
            at=int(options.at) if seconds else None if moment is None else int(moment),
            absolute=not seconds,
            processors=options.procs,
            runs=options.runs,
            seed=options.seed,
            progress=stages,
        )


def tell(desk: Desk, found: Waiting) -> None:
    """In the form that was asked for."""
    if desk.options.form is None:
        with desk.in_pages():
            for line in lines(found, desk.room):
                desk.say(line)
        return
    document = envelope("fairbank.why/1", iso(found.as_of), None, [data(found)], (), Look())
    desk.say(as_json(document) if desk.options.form == "json" else as_yaml(document))


COMMAND = Command(
    "why a job waits, who is ahead, when it is likely to start, what would start it sooner",
    (
        "fairbank why 4711 --trace month.swf.gz",
        "fairbank why 4711 --trace month.swf.gz --policy slurm --at 2026-10-03T09:00",
        "fairbank why 4711 --trace month.swf.gz --json",
    ),
    add,
    run,
    reads=False,
    asks=False,
)
