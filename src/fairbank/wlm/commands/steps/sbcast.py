"""sbcast: copy a file to the nodes of a job. They are on this host, so one copy is enough."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Sequence

from fairbank.core.errors import Conflict, InvalidInput, NotFound
from fairbank.report.slurm.job_rows import JobLine
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import CommandOption, read_command_line
from fairbank.wlm.commands.tables.rows import fetch

OPTIONS = (
    CommandOption("compress", "C", "[LIBRARY]", "has no effect", "SBCAST_COMPRESS"),
    CommandOption("fanout", "F", "NUMBER", "has no effect", "SBCAST_FANOUT"),
    CommandOption("force", "f", "", "replace a file that exists", "SBCAST_FORCE"),
    CommandOption("jobid", "j", "JOB", "job whose nodes get the file", "SLURM_JOB_ID"),
    CommandOption("preserve", "p", "", "keep the times and the mode", "SBCAST_PRESERVE"),
    CommandOption("size", "s", "BYTES", "has no effect", "SBCAST_SIZE"),
    CommandOption("timeout", "t", "SECONDS", "has no effect", "SBCAST_TIMEOUT"),
    CommandOption("verbose", "v", "", "name the files"),
)
_NO_SOURCE_CODE = 255


def run(name: str, words: Sequence[str]) -> int:
    """Run the command and return its exit code: that of the system's error, as in Slurm."""
    line = read_command_line(name, "[OPTIONS] SOURCE DESTINATION", OPTIONS, words)
    if line is None:
        return 0
    if len(line.words) != 2:
        what = f"Need two file names, have {len(line.words)} names"
        raise InvalidInput(what, field="file", remedy=f'Try "{name} --help" for more information')
    _check_job(line.options.get("jobid", ""))
    source, destination = line.words
    if destination.endswith("/"):
        destination += os.path.basename(source)
    if "verbose" in line.options:
        print(f"{name}: {source} to {destination}", file=sys.stderr)
    try:
        file = open(source, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        print(f"{name}: error: Can't open `{source}`: {error.strerror}", file=sys.stderr)
        return _NO_SOURCE_CODE
    try:
        with file:
            _copy(file.fileno(), destination, is_forced="force" in line.options)
        if "preserve" in line.options:
            shutil.copystat(source, destination)
    except OSError as error:
        print(f"{name}: error: {destination}: {error.strerror}", file=sys.stderr)
        return error.errno or errno.EIO
    return 0


def _check_job(job: str) -> None:
    """Raise FairbankError unless the job runs."""
    if not job:
        raise InvalidInput(
            "Need a job id to run this command",
            field="job",
            remedy="Run from within a job, or use the --jobid option",
        )
    with Controller() as controller:
        rows = fetch(controller, "jobs", JobLine, ["state"], {"jobs": [job]}).rows
    if not rows:
        raise NotFound(f"there is no job {job[:40]}", field="job", remedy="squeue lists the jobs")
    if rows[0].state != "RUNNING":
        what = f"job {job[:40]} is {rows[0].state}, and has no nodes"
        raise Conflict(what, field="running", remedy="only a job that is running has nodes")


def _copy(source: int, destination: str, *, is_forced: bool) -> None:
    """Copy a file, completely or not at all. Raises OSError."""
    if not is_forced and os.path.lexists(destination):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    temporary = f"{destination}.{os.getpid()}"
    mode = os.fstat(source).st_mode & 0o777
    target = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(target, "wb") as file, os.fdopen(os.dup(source), "rb") as content:
            shutil.copyfileobj(content, file)
        if is_forced:
            os.rename(temporary, destination)
        else:
            os.link(temporary, destination)  # raises an error if it is there by now
            os.unlink(temporary)
    except OSError:
        os.unlink(temporary)
        raise
