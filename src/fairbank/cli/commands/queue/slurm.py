"""Jobs of Slurm, by its commands."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from fairbank.cli.commands.queue.jobs import QUOTE_SECONDS, JobInfo, unknown_job
from fairbank.core.errors import FairbankError, NotFound, Unavailable
from fairbank.core.time import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context, Row

_FIELD = re.compile(r"(?:^| )([A-Z]\w*)=(\S*)")
_PATH = re.compile(r"^   (StdOut|StdErr)=(.*)$", re.MULTILINE)
_START = re.compile(r"to start at (\S+)")
_STORED = "JobID,User,State,ExitCode,Account,Partition"


class SlurmManager:
    """Slurm whose commands PATH has."""

    def submit(self, options: Sequence[str], script: bytes) -> str:
        """Submit a job, and return its name. Raises the FairbankError that refuses it.

        Args:
            options: words of sbatch.
            script: the batch script.
        """
        answer = _run("sbatch", *options, script=script)
        return answer.stdout.decode(errors="replace").partition(";")[0].strip()

    def expected_start(self, options: Sequence[str], script: bytes) -> int | None:
        """Return when a job would start; None if that is not known. Arguments: `submit`."""
        from fairbank.core.time import parse_instant

        zone = {"TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
        try:
            answer = _run("sbatch", "--test-only", *options, script=script, variables=zone)
        except FairbankError:  # perhaps a job that waits for another reason than its size
            return None
        match = _START.search(answer.stderr.decode(errors="replace"))
        return None if match is None else parse_instant(f"{match[1]}Z")

    def jobs(self, name: str) -> list[JobInfo]:
        """Return a job, or the tasks of an array. Raises NotFound."""
        try:
            text = _text("scontrol", "--all", "show", "job", name)
        except NotFound:  # slurmctld forgets a job some minutes after its end
            rows = _stored_rows(name)
        else:
            rows = [_queued(record) for record in text.split("\n\n") if record.startswith("JobId=")]
        if not rows:
            raise unknown_job(name)
        return rows

    def cancel(self, name: str) -> None:
        """Cancel a job. Raises the FairbankError that refuses it."""
        _run("scancel", name)

    def warn(self, pid: int, number: int, seconds: int) -> tuple[str, int | None]:
        """Raise Unavailable: Slurm signals no single process."""
        raise Unavailable(
            "Slurm has no warning for a single process",
            remedy="submit the job with --signal=USR1@60, or B:USR1@60 for the script alone",
        )

    def quote(self, context: Context, request: Row) -> Row | None:
        """Return the quote of the user's bank; None if there is none. Raises FairbankError."""
        from fairbank.rest.client import Client

        settings = context.settings
        if not settings.is_configured:
            return None
        signer = settings.signer()
        bank = Client(settings.address, signer=signer, timeout_seconds=QUOTE_SECONDS)
        quote: Row = bank.post("/quote", {**request, "cluster": settings.cluster})["data"]
        return quote


def _queued(record: str) -> JobInfo:
    """Return the job of a record of `scontrol show job`."""
    # Users write the name at the end of the first line, and comments and paths after what is read.
    first, *others = record.split("\n")
    values: dict[str, str] = {}
    for line in (first.partition(" JobName=")[0], *others):
        for key, value in _FIELD.findall(line):
            values.setdefault(key, value)
    paths = dict(_PATH.findall(record))
    limit = values["TimeLimit"]
    task = values.get("ArrayTaskId")
    return JobInfo(
        name=values["JobId"] if task is None else f"{values['ArrayJobId']}_{task}",
        user=values["UserId"].partition("(")[0],
        state=values["JobState"],
        exit_code=_exit_code(values["ExitCode"]),
        std_out=paths.get("StdOut"),
        std_err=paths.get("StdErr"),
        account=_known(values["Account"]),
        partition=values["Partition"],
        reason=values["Reason"],
        cpus=int(values["NumCPUs"].partition("-")[0]),
        limit=None if limit == "UNLIMITED" else parse_duration(limit),
        tres=values.get("ReqTRES") or values.get("TRES", ""),
    )


def _stored_rows(name: str) -> list[JobInfo]:
    """Return what accounting has of a job; nothing without accounting."""
    words = ("--noheader", "--parsable2", "--allocations", f"--format={_STORED}", f"--jobs={name}")
    try:
        lines = _text("sacct", *words).splitlines()
    except FairbankError:
        return []
    jobs = []
    for line in lines:
        label, user, state, status, account, partition = line.split("|")
        word = state.partition(" ")[0]  # of `CANCELLED by 1000`
        code = _exit_code(status)
        jobs.append(JobInfo(label, user, word, code, None, None, _known(account), partition))
    return jobs


def _exit_code(text: str) -> tuple[int, int]:
    code, _, signal = text.partition(":")
    return int(code), int(signal)


def _known(text: str) -> str | None:
    return None if text == "(null)" else text


def _text(*words: str) -> str:
    return _run(*words).stdout.decode(errors="replace")


def _run(
    *words: str, script: bytes = b"", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of Slurm. Raises the error that its sentence stands for."""
    from fairbank.wlm.commands.slurm_errors import error_of_sentence

    try:
        process = subprocess.run(
            words,
            input=script,
            env={**os.environ, **(variables or {})},
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise Unavailable(f"cannot run {words[0]}: {error.strerror}", field=words[0]) from error
    if process.returncode:
        raise error_of_sentence(words[0], process.stderr.decode(errors="replace"))
    return process
