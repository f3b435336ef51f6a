"""Output of `sacct` in columns, of any version.

No column holds text that users write freely, so nobody can forge a record.
"""

from __future__ import annotations

import re

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import read_rows, split_records
from fairbank.slurm.parsers.values import AccountingJob, JobEnd, ParsedRows

COLUMNS = (
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
)
"""Not JobName, Comment or WorkDir: their owners write them, with pipes and line ends."""


def read_jobs(text: str) -> ParsedRows[AccountingJob]:
    """Read `sacct --noheader --parsable2 --allocations --duplicates`, with times in UTC."""
    return read_rows("sacct", split_records("sacct", text, COLUMNS), read_job)


def read_job(cells: dict[str, str]) -> AccountingJob:
    """Read one execution of a job from at least the cells of COLUMNS."""
    start = words.instant(cells["Start"], "Start")
    held = "AllocTRES" if cells["AllocTRES"] or start is not None else "ReqTRES"
    return AccountingJob(
        job_id=words.number(cells["JobIDRaw"], "JobIDRaw", most=ids.JOB_ID_MAX),
        submitted=words.required_instant(words.instant(cells["Submit"], "Submit"), "Submit"),
        start=start,
        end=words.instant(cells["End"], "End"),
        elapsed=words.number(cells["ElapsedRaw"], "ElapsedRaw"),
        state=words.state(cells["State"], "State"),
        user=cells["User"],
        owner=_owner(cells),
        account=ids.name(cells["Account"], field="Account"),
        partition=cells["Partition"] and ids.name(cells["Partition"], field="Partition"),
        qos=ids.name(cells["QOS"], field="QOS") if cells["QOS"] else None,
        limit_seconds=words.minutes(cells["TimelimitRaw"], "TimelimitRaw"),
        tres=words.tres(cells[held], held),
    )


def _owner(cells: dict[str, str]) -> int | None:
    """Return the uid of the owner.

    A record whose start slurmdbd has not received has the user's name from the association, and 0
    as the uid.
    """
    uid = words.number(cells["UID"], "UID", most=ids.UID_MAX)
    return uid if uid or cells["Partition"] else None


END_COLUMNS = ("JobIDRaw", "Submit", "ExitCode", "TotalCPU")
"""Without steps TotalCPU is always 0 (sacct(1)), so these are read for few jobs."""

_EXIT = re.compile(r"(\d{1,3}):(\d{1,3})", re.ASCII)
_TIME = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d{2})(?:\.(\d{3}))?", re.ASCII)


def read_job_ends(text: str) -> ParsedRows[JobEnd]:
    """Read `sacct --noheader --parsable2 --duplicates`, with times in UTC. Steps are left out."""
    return read_rows("sacct", split_records("sacct", text, END_COLUMNS), _job_end)


def _job_end(cells: dict[str, str]) -> JobEnd | None:
    if "." in cells["JobIDRaw"]:
        return None
    return JobEnd(
        job_id=words.number(cells["JobIDRaw"], "JobIDRaw", most=ids.JOB_ID_MAX),
        submitted=words.required_instant(words.instant(cells["Submit"], "Submit"), "Submit"),
        exit_code=_exit_code(cells["ExitCode"]),
        cpu_seconds=_cpu_seconds(cells["TotalCPU"]),
    )


def _exit_code(text: str) -> tuple[int, int] | None:
    """Return exit code and signal. Raises InvalidInput."""
    match = _EXIT.fullmatch(text)
    if match is None or int(match[1]) > 255 or int(match[2]) > 127:
        if not text:
            return None
        raise InvalidInput(f"{words.quoted(text)} is no exit code", field="ExitCode")
    return int(match[1]), int(match[2])


def _cpu_seconds(text: str) -> int | None:
    """Return seconds, rounded up; None for no time, which a Slurm prints that gathers none."""
    match = _TIME.fullmatch(text)
    if match is None:
        if not text:
            return None
        raise InvalidInput(f"{words.quoted(text)} is no time", field="TotalCPU")
    days, hours, minutes, seconds, thousandths = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + (thousandths > 0) or None
