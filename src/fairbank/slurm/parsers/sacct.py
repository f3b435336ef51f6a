"""Output of `sacct` in columns, of any version.

No column holds text that users write freely, so nobody can forge a record.
"""

from __future__ import annotations

import re

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Cells, Table
from fairbank.slurm.parsers.values import AccountingJob, JobEnd


def read_job(cells: Cells) -> AccountingJob:
    """Read one execution of a job from at least the cells of JOBS."""
    start = cells.read("Start", words.instant)
    partition = cells.read("Partition", words.blank_or(words.name))
    uid = cells.read("UID", _uid)
    return AccountingJob(
        job_id=cells.read("JobIDRaw", words.job_id),
        submitted=cells.read("Submit", words.known_instant),
        start=start,
        end=cells.read("End", words.instant),
        elapsed=cells.read("ElapsedRaw", words.number),
        state=cells.read("State", words.state),
        user=cells["User"],
        # Before slurmdbd has received the start of a job, it knows the user's name from the
        # association, and 0 as the uid.
        owner=uid if uid or partition else None,
        account=cells.read("Account", words.name),
        partition=partition,
        qos=cells.read("QOS", words.optional(words.name)),
        limit_seconds=cells.read("TimelimitRaw", words.minutes),
        tres=cells.read(
            "AllocTRES" if cells["AllocTRES"] or start is not None else "ReqTRES", words.tres
        ),
    )


JOBS = Table(
    "sacct",
    (
        "JobIDRaw",
        "Submit",
        "Start",
        "End",
        "ElapsedRaw",
        "State",
        "UID",
        "User",
        "Account",
        "Partition",
        "QOS",
        "TimelimitRaw",
        "AllocTRES",
        "ReqTRES",
    ),
    read_job,
)
"""Output of `--allocations --duplicates`, with times in UTC.

Not JobName, Comment or WorkDir: their owners write them, with pipes and line ends.
"""


def _uid(text: str, field: str) -> int:
    return words.number(text, field, most=ids.UID_MAX)


_EXIT = re.compile(r"(\d{1,3}):(\d{1,3})", re.ASCII)
_TIME = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d{2})(?:\.(\d{3}))?", re.ASCII)


def _job_end(cells: Cells) -> JobEnd | None:
    if "." in cells["JobIDRaw"]:
        return None  # a step
    return JobEnd(
        job_id=cells.read("JobIDRaw", words.job_id),
        submitted=cells.read("Submit", words.known_instant),
        exit_code=cells.read("ExitCode", words.optional(_exit_code)),
        cpu_seconds=cells.read("TotalCPU", words.optional(_cpu_seconds)),
    )


JOB_ENDS = Table("sacct", ("JobIDRaw", "Submit", "ExitCode", "TotalCPU"), _job_end)
"""Output of `--duplicates`, with times in UTC. Without steps TotalCPU is always 0 (sacct(1)), so
these are read for few jobs.
"""


def _exit_code(text: str, field: str) -> tuple[int, int]:
    """Return exit code and signal."""
    match = _EXIT.fullmatch(text)
    if match is None or int(match[1]) > 255 or int(match[2]) > 127:
        raise InvalidInput(f"{words.quoted(text)} is no exit code", field=field)
    return int(match[1]), int(match[2])


def _cpu_seconds(text: str, field: str) -> int | None:
    """Return seconds, rounded up; None for no time, which a Slurm prints that gathers none."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{words.quoted(text)} is no time", field=field)
    days, hours, minutes, seconds, thousandths = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + (thousandths > 0) or None
