"""Command `fairbank cancel`: cancel jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.queue.jobs import find_manager, job_name
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_option
from fairbank.core.errors import Conflict, FairbankError
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.commands.queue.jobs import Manager
    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add(parser: Parser) -> None:
    about = "the jobs, or tasks of an array: 12, 12_3"
    add_option(parser, "jobs JOB", about, type=job_name, nargs="+")


def _cancel(context: Context, options: Namespace) -> int:
    manager, errors = find_manager(), list[FairbankError]()
    for name in dict.fromkeys(options.jobs):
        try:
            _cancel_one(manager, name)
        except FairbankError as error:
            errors.append(error)
        else:
            context.print_text(f"job {name} is cancelled")
    context.note(*(f"! {plain(error.message)}" for error in errors[:-1]))
    if errors:
        raise errors[-1]
    return 0


def _cancel_one(manager: Manager, name: str) -> None:
    """Cancel a job. Raises Conflict if it has ended, and the error that refuses it."""
    jobs = manager.jobs(name)
    if all(job.has_ended for job in jobs):
        raise Conflict(f"job {name} has ended: {jobs[0].end}", field="JOB")
    manager.cancel(name)


COMMAND = host_command(
    "cancel jobs that wait or run", ("{} 812301", "{} 812301 812302", "{} 812301_7"), _add, _cancel
)
