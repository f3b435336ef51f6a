"""Accounting: `sacct` in columns, of any version. No column holds what users may write freely, so nobody can forge a record."""

from __future__ import annotations

from fairbank.core import ids
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.delimited import DELIMITER, read_rows, split_records
from fairbank.slurm.parsers.values import AccountingJob, ParsedRows

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
