"""Command `fairbank log`: output of a job."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, BinaryIO

from fairbank.cli.commands.queue.jobs import find_manager, job_name, wait_for_ends
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_option
from fairbank.core.errors import Conflict, NotFound
from fairbank.core.os_errors import translate_os_error

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

_CHUNK = 64 * 1024


class OutputFile:
    """File into which a job writes, and how much of it was printed."""

    def __init__(self, path: str | None) -> None:
        if path is None:
            raise NotFound(
                "Slurm does not know any more where its output is",
                field="JOB",
                remedy="by default it is slurm-JOB.out in the directory of the submission",
            )
        self.path, self._printed = path, 0

    def print_new(self) -> None:
        """Print what was added. A file that is not there yet, or cannot be read, adds nothing."""
        if os.access(self.path, os.R_OK):
            with open(self.path, "rb") as file:
                self.print_rest(file)

    def print_rest(self, file: BinaryIO) -> None:
        """Print what was not printed yet of the open file. Raises OSError."""
        if os.fstat(file.fileno()).st_size < self._printed:
            self._printed = 0  # the job began again
        file.seek(self._printed)
        while chunk := file.read(_CHUNK):
            sys.stdout.buffer.write(chunk)
            self._printed += len(chunk)
        sys.stdout.buffer.flush()


def _add(parser: Parser) -> None:
    add_option(parser, "job JOB", "the job, or the task of an array: 12, 12_3", type=job_name)
    add_option(parser, "-f, --follow", "print what is added until the job ends")
    add_option(parser, "--err", "standard error, if the job has a file for it")


def _log(context: Context, options: Namespace) -> int:
    manager = find_manager()
    job = manager.jobs(options.job)[0]
    file = OutputFile(job.std_err if options.err else job.std_out)
    if options.follow:
        wait_for_ends(context, manager, [job.name], file.print_new)
        return 0
    try:
        opened = open(file.path, "rb")  # noqa: SIM115 - an error of standard output is another
    except FileNotFoundError as missing:
        if job.state == "PENDING":
            raise Conflict(
                f"job {job.name} waits ({job.reason}), so it has no output yet",
                field="JOB",
                remedy=f"{context.prog} {job.name} -f waits for it; fairbank why {job.name}",
            ) from None
        if job.has_ended:
            raise NotFound(f"{file.path} is not there", field="JOB") from missing
        return 0
    except OSError as error:
        raise translate_os_error(error, f"cannot read {file.path}", field="JOB") from error
    with opened:
        file.print_rest(opened)
    return 0


COMMAND = host_command(
    "print the output of a job",
    ("{} 812301", "{} 812301 -f            while it runs", "{} 812301 --err"),
    _add,
    _log,
)
