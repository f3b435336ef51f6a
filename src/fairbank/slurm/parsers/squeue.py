"""What slurmctld still knows: `squeue` in columns, of any version."""

from __future__ import annotations

from fairbank.core import ids
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.delimited import DELIMITER, read_rows, split_records
from fairbank.slurm.parsers.values import ParsedRows, QueuedJob, PendingOwner

COLUMNS = ("JobID", "SubmitTime", "State")
FORMAT = DELIMITER.join(("%A", "%V", "%T"))
WAITING_COLUMNS = ("JobID", "Account", "QOS", "SubmitTime")
WAITING_FORMAT = DELIMITER.join(("%A", "%a", "%q", "%V"))


def read_queue(text: str) -> ParsedRows[QueuedJob]:
    """The lines of `squeue --noheader --states=all --format=FORMAT`, times in UTC."""
    return read_rows("squeue", split_records("squeue", text, COLUMNS), _queued)


def _queued(cells: dict[str, str]) -> QueuedJob:
    return QueuedJob(
        words.number(cells["JobID"], "JobID", most=ids.JOB_ID_MAX),
        words.required_instant(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime"),
        words.state(cells["State"], "State"),
    )


def read_waiting(text: str) -> ParsedRows[PendingOwner]:
    """The lines of `squeue --noheader --states=PENDING --format=WAITING_FORMAT`, times in UTC."""
    return read_rows("squeue", split_records("squeue", text, WAITING_COLUMNS), _waiting)


def _waiting(cells: dict[str, str]) -> PendingOwner:
    return PendingOwner(
        words.number(cells["JobID"], "JobID", most=ids.JOB_ID_MAX),
        ids.name(cells["Account"], field="Account"),
        ids.name(cells["QOS"], field="QOS"),
        words.required_instant(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime"),
    )
