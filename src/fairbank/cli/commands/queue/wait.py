"""Command `fairbank wait`: wait for the ends of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.queue.jobs import find_manager, job_name, wait_for_ends
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_option

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add(parser: Parser) -> None:
    about = "the jobs, or tasks of an array: 12, 12_3"
    add_option(parser, "jobs JOB", about, type=job_name, nargs="+")


def _wait(context: Context, options: Namespace) -> int:
    jobs = wait_for_ends(context, find_manager(), options.jobs)
    context.print_lines(f"job {job.name}: {job.end}" for job in jobs)
    return max(job.status for job in jobs)


COMMAND = host_command(
    "wait until jobs have ended; the exit code is the highest of theirs",
    ("{} 812301", "{} 812301 812302 && ./collect", "{} 812301_7      a task of an array"),
    _add,
    _wait,
)
