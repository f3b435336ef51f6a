"""Command `fairbank warn`: have a process signalled before the time limit of its job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairbank.cli.commands.queue.jobs import find_manager
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.host import signal_name
from fairbank.cli.framework.options import add_option, at_least_one
from fairbank.core.errors import InvalidInput

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add(parser: Parser) -> None:
    about = "the signal, and how many seconds before the limit (default: 60): USR1@300"
    add_option(parser, "signal SIGNAL@SECONDS", about)
    about = "this process of the job (default: the one that calls the command)"
    add_option(parser, "--pid PID", about, type=at_least_one)


def _warn(context: Context, options: Namespace) -> int:
    from fairbank.core.submission.values import signal

    wanted = signal(options.signal, "SIGNAL@SECONDS")
    if wanted.to_script or wanted.for_reservation:
        raise InvalidInput(
            f"{options.signal[:40]!r} names who gets the signal; here it is a process",
            field="SIGNAL@SECONDS",
            remedy="write the signal without B and R, and choose the process with --pid",
        )
    pid = os.getppid() if options.pid is None else options.pid
    job, ends = find_manager().warn(pid, wanted.number, wanted.seconds)
    when = "no time limit now" if ends is None else f"the limit at {context.format.moment(ends)}"
    context.print_text(
        f"process {pid} of job {job} gets {signal_name(wanted.number)} {wanted.seconds} s before"
        f" its end; {when}"
    )
    return 0


COMMAND = host_command(
    "have a process of a job signalled before the time limit",
    ("{} USR1@300", "{} TERM@60 --pid $!     the command that the shell started last", "{} 10"),
    _add,
    _warn,
)
