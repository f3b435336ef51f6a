"""Accounting: `sacct` in columns, of any version. No column holds what users may write freely, so nobody can forge a record."""

from __future__ import annotations

import re

from fairbank.core import ids
from fairbank.core.errors import Malformed
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import DELIMITER, read_rows, split_records
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
"""Not JobName, Comment or WorkDir: those are their owners' to write, pipes and line ends included."""


def read_jobs(
    text: str, columns: tuple[str, ...] = COLUMNS, delimiter: str = DELIMITER
) -> ParsedRows[AccountingJob]:
    """The lines of `sacct --noheader --parsable2 --allocations --duplicates`, times in UTC. Other columns than ours are passed over."""
    return read_rows("sacct", split_records("sacct", text, columns, delimiter), _job)


def _job(cells: dict[str, str]) -> AccountingJob:
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
    """Half a record, of whose start slurmdbd has not heard, has its user's name from the association, and 0 where the number would be."""
    told = words.number(cells["UID"], "UID", most=ids.UID_MAX)
    return told if told or cells["Partition"] else None


END_COLUMNS = ("JobIDRaw", "Submit", "ExitCode", "TotalCPU")
"""Without steps TotalCPU is always 0, sacct(1) says. Nothing of this is for users to write."""

_EXIT = re.compile(r"(\d{1,3}):(\d{1,3})", re.ASCII)
_TIME = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d{2})(?:\.(\d{3}))?", re.ASCII)


def read_job_ends(text: str, delimiter: str = DELIMITER) -> ParsedRows[JobEnd]:
    """The lines of `sacct --noheader --parsable2 --duplicates`, times in UTC; those of steps are passed over."""
    return read_rows("sacct", split_records("sacct", text, END_COLUMNS, delimiter), _job_end)


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
    """Exit code and signal. Raises Malformed."""
    match = _EXIT.fullmatch(text)
    if match is None or int(match[1]) > 255 or int(match[2]) > 127:
        if not text:
            return None
        raise Malformed(f"{words.quoted(text)} is no exit code", field="ExitCode")
    return int(match[1]), int(match[2])


def _cpu_seconds(text: str) -> int | None:
    """A part of a second counts as one. None for no time at all: that is what a Slurm says that does not gather it. Raises Malformed."""
    match = _TIME.fullmatch(text)
    if match is None:
        if not text:
            return None
        raise Malformed(f"{words.quoted(text)} is no time", field="TotalCPU")
    days, hours, minutes, seconds, thousandths = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + (thousandths > 0) or None
