"""Command `fairbank queue`: my jobs, or all waiting jobs in the order of their priorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.slurm.slurm_options import (
    add_directory,
    check_partitions,
    print_unreadable,
)
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_option, split_list
from fairbank.cli.framework.output import Listing, caption, named_columns, show
from fairbank.core.errors import FairbankError
from fairbank.core.time import MINUTE, iso, show_rounded
from fairbank.core.units import counted
from fairbank.report.columns import (
    Column,
    DisplayFormat,
    Row,
    SameWhenShort,
    duration,
    instant_of,
    moment,
    text,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.slurm.output import SlurmOutput
    from fairbank.slurm.parsers.squeue import WaitingJob


def _age(row: Row, form: DisplayFormat) -> str:
    age = row["age_seconds"]
    if form.exact:
        return str(age)
    return show_rounded(age) if age >= MINUTE else f"{age} s"


def _likely(row: Row, form: DisplayFormat) -> str:
    return _relative(row["likely_start"], row["likely_start_in_seconds"], form)


def _start(row: Row, form: DisplayFormat) -> str:
    """Return when slurmctld expects the start, from the time of its output."""
    return _relative(row["start"], row["start_in_seconds"], form)


def _relative(at: str | int | None, left: int | None, form: DisplayFormat) -> str:
    if at is None or (left is None and not form.exact):
        return "" if form.exact else "-"
    if form.exact:
        return form.moment(instant_of(at))
    return f"in {show_rounded(left)}" if left else "now"


def _where(row: Row, form: DisplayFormat) -> str:
    """Return the nodes of a job that runs, and why another waits, as squeue does."""
    return str(row["node_list"] or f"({row['reason']})")


QUESTION = "squeue --all --states=PENDING"
"""Command that shows the lines that could not be read."""
JOBS_MAX = 200
"""Maximum number of waiting jobs, tasks of arrays included, whose likely starts are computed
without --start. Simulating so many took about 1 s of CPU on clusters of 10 to 3,000 nodes.
"""
COLUMNS = (
    Column("JOBID", text("job_id"), min_width=7),
    Column("USER", text("user"), min_width=6),
    Column("PROJECT", text("account"), drop=2),
    Column("PART", text("partition"), min_width=6),
    Column("PRIORITY", text("priority"), right=True, drop=1),
    Column("NODES", text("nodes"), right=True),
    Column("CPUS", text("cpus"), right=True),
    Column("GPUS", text("gpus"), right=True),
    Column("TIME-LIMIT", duration("limit_seconds"), right=True),
    Column("AGE", SameWhenShort(_age), right=True),
    Column("REASON", text("reason"), min_width=14),
    Column("START", SameWhenShort(_start), right=True),
    Column("LIKELY", SameWhenShort(_likely), right=True),
    Column("NAME", text("name"), min_width=8, extra=True),
    Column("STATE", text("state"), extra=True),
    Column("LEFT", duration("left_seconds"), right=True, extra=True),
    Column("NODELIST(REASON)", _where, extra=True),
    Column("QOS", text("qos"), extra=True),
    Column("SUBMIT", moment("submitted"), extra=True),
)


_OWN_DROPS = {
    "JOBID": 0,
    "NAME": 0,
    "PART": 3,
    "STATE": 0,
    "NODES": 0,
    "CPUS": 0,
    "GPUS": 1,
    "TIME-LIMIT": 2,
    "LEFT": 0,
    "START": 0,
    "NODELIST(REASON)": 0,
}
_BY_HEAD = {column.head: column for column in COLUMNS}
OWN_COLUMNS = [_BY_HEAD[head]._replace(extra=False, drop=drop) for head, drop in _OWN_DROPS.items()]
_FURTHER_COLUMNS = [
    column._replace(extra=True) for column in COLUMNS if column.head not in _OWN_DROPS
]
"""Columns of my jobs that are only shown if they are named or all requested."""
FRAME_LINES = 9
"""Lines of a screen around the rows: caption, header, notes of what is left out, next prompt."""


def add(parser: Parser) -> None:
    about = "all waiting jobs, as with the other options; default: my jobs, those that run first"
    add_option(parser, "-a, --all", about)
    about = "only jobs that may run in these partitions"
    add_option(parser, "-p, --partition NAME,...", about, type=split_list)
    add_option(parser, "--me", "only my waiting jobs")
    likely = parser.add_mutually_exclusive_group()
    about = f"a likely start of each, however many wait (default: of up to {JOBS_MAX} jobs)"
    add_option(likely, "--start", about)
    about = "only the start that slurmctld expects; accounting is not asked"
    add_option(likely, "--no-likely", about, dest="likely", action="store_false")
    add_directory(parser)


def run(context: Context, options: Namespace) -> int:
    from fairbank.slurm.commands import output_of

    source = output_of(options.directory)
    of_all = options.all or options.me or options.partition or options.start
    if not of_all and options.directory is None:
        return _show_own(context, source)
    source.require(("waiting", "config"), _needed_for_starts(options))
    answer, now = source.all_waiting_jobs(), source.clock()
    context.as_of, context.cluster = iso(now), source.config.get("ClusterName") or None
    code = print_unreadable(context, answer.unreadable, QUESTION)
    there = {name for job in answer.rows for name in job.partitions}
    check_partitions(context, there, source.partition_names)
    jobs = [
        job
        for job in answer.rows
        if not options.partition or not set(options.partition).isdisjoint(job.partitions)
    ]
    if options.me:
        from fairbank.cli.framework.host import own_name

        jobs = [job for job in jobs if job.user == own_name()]
    # As slurmctld goes through them; held jobs, of priority 0, come last.
    jobs.sort(key=lambda job: (-job.priority, job.submitted, job.job_id))
    # As seconds in a table: the texts of 10,000 times take 20 ms.
    time_of = iso if options.form == "json" else int
    likely, is_incomplete = _likely_starts(context, options, len(answer.rows))
    rows = [_row(job, now, time_of, likely.get(job.name.partition("_[")[0])) for job in jobs]
    notes = []
    has_likely = bool(likely) or options.start
    if any(row["start"] is not None for row in rows):
        more = "" if has_likely else "; a likely start: fairbank queue --start, or why JOBID"
        notes = [f"START is what slurmctld expects{more}"]
    if likely:
        notes += [
            "LIKELY is from one simulated run, in which each job takes the middle part of its limit"
            " that its user's jobs took, and no job arrives; a range: fairbank why JOBID"
        ]
    where = f" in {', '.join(options.partition)}" if options.partition else ""
    mine = " of yours" if options.me else ""
    hidden = {
        "NAME": True,  # not read, as other users write them
        "GPUS": not any(row["gpus"] for row in rows),
        "LIKELY": not has_likely,
    }
    listing = Listing(
        "fairbank.queue/1",
        # LIKELY replaces START in a table that is too narrow for both.
        [
            column._replace(drop=3) if column.head == "START" and has_likely else column
            for column in COLUMNS
            if options.form or named_columns(context) or not hidden.get(column.head)
        ],
        rows,
        f"{caption(context, unit=False)}   {counted(len(rows), 'job')}{mine} waiting{where}",
        notes=notes,
        empty=f"No job{mine} waits{where}.",
    )
    return show(context, listing) or code or is_incomplete


def _show_own(context: Context, source: SlurmOutput) -> int:
    """Print the user's jobs, at a terminal as many as fit on its screen."""
    from fairbank.cli.framework.host import own_name
    from fairbank.cli.framework.screen import terminal_height

    answer, now = source.own_jobs(own_name()), source.clock()
    context.as_of, context.cluster = iso(now), source.config.get("ClusterName") or None
    code = print_unreadable(context, answer.unreadable, "squeue --all --me")
    jobs, options = answer.rows, context.options
    waiting = [job for job in jobs if job.state == "PENDING"]
    running = [job for job in jobs if job.state != "PENDING"]
    waiting.sort(key=lambda job: (-job.priority, job.submitted, job.job_id))
    running.sort(key=lambda job: (job.ends or now, job.job_id))
    time_of = iso if options.form == "json" else int
    rows = [_row(job, now, time_of, None) for job in (*running, *waiting)]
    height = None if options.form or options.long else terminal_height()
    shown = rows if height is None else rows[: max(height - FRAME_LINES, 1)]
    left_out = len(rows) - len(shown)
    more = [f"{counted(left_out, 'more job')} of yours: fairbank queue -l"] if left_out else []
    suspended = sum(job.state == "SUSPENDED" for job in running)
    paused = f"{suspended:,} suspended, " if suspended else ""
    counts = f"{len(running) - suspended:,} running, {paused}{len(waiting):,} waiting"
    has_gpus = any(row["gpus"] for row in rows)
    is_plain = options.form is None and not named_columns(context)
    plain_columns = [column for column in OWN_COLUMNS if has_gpus or column.head != "GPUS"]
    listing = Listing(
        "fairbank.queue/1",
        plain_columns if is_plain else [*OWN_COLUMNS, *_FURTHER_COLUMNS],
        shown,
        f"{caption(context, unit=False)}   yours: {counts}",
        notes=more,
        empty="No job of yours runs or waits.",
        fitted=True,
    )
    return show(context, listing) or code


def _needed_for_starts(options: Namespace) -> Mapping[str, Sequence[str]]:
    """Return the further commands of --start, by their files; only a recording may lack one."""
    if not options.start or options.directory is None:
        return {}
    from fairbank.slurm.queue_snapshot.answers import COMMANDS

    return COMMANDS


def _likely_starts(
    context: Context, options: Namespace, waiting: int
) -> tuple[Mapping[str, int], int]:
    """Return the likely starts by job, and exit code 8 if Slurm's output could not all be read.

    Without --start they are left out, with a note, if too many jobs wait or Slurm does not tell
    what they need.
    """
    if not (options.likely and waiting):
        return {}, 0
    most, starts = None if options.start else JOBS_MAX, None
    try:
        if most is None or waiting <= most:
            from fairbank.slurm.explain.queue_explanation import likely_starts

            starts = likely_starts(options.directory, most)
    except FairbankError as error:
        if options.start:
            raise
        context.note(f"! no likely start: {error.message}")
        return {}, 0
    if starts is None:
        context.note(f"! no likely start: more than {most} jobs wait; fairbank queue --start")
        return {}, 0
    code = print_unreadable(context, starts.unreadable, "scontrol -a -d show job")
    context.note(*(f"! {note}" for note in starts.notes))
    return starts.by_name, code


def _row(
    job: WaitingJob, now: int, time_of: Callable[[int], str | int], likely: int | None
) -> dict[str, object]:
    return {
        "job_id": job.name,
        "name": job.job_name,
        "user": job.user,
        "account": job.account,
        "partition": ",".join(job.partitions),
        "qos": job.qos,
        "priority": job.priority,
        "nodes": job.nodes,
        "cpus": job.cpus,
        "gpus": job.gpus,
        "limit_seconds": job.limit_seconds,
        "submitted": time_of(job.submitted),
        "age_seconds": max(now - job.submitted, 0),
        "state": job.state,
        "left_seconds": None if job.ends is None else max(job.ends - now, 0),
        "node_list": job.node_list,
        "reason": job.reason,
        "start": None if job.expected is None else time_of(job.expected),
        "start_in_seconds": (
            None if job.expected is None or job.state != "PENDING" else max(job.expected - now, 0)
        ),
        "likely_start": None if likely is None else time_of(likely),
        "likely_start_in_seconds": None if likely is None else max(likely - now, 0),
    }


COMMAND = Command(
    "list my jobs, or all waiting jobs by priority with reason and likely start",
    ("{}", "{} --all", "{} -p gpu --start"),
    add,
    run,
    asks=False,
    watch=True,
    columns=COLUMNS,
)
