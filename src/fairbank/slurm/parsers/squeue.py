"""What slurmctld still knows: `squeue` in columns, of any version."""

from __future__ import annotations

from fairbank.core import ids
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.delimited import DELIMITER, read, records
from fairbank.slurm.parsers.values import ParsedRows, Queued, QueuedOwner

COLUMNS = ("JobID", "SubmitTime", "State")
FORMAT = DELIMITER.join(("%A", "%V", "%T"))
WAITING_COLUMNS = ("JobID", "Account", "QOS", "SubmitTime")
WAITING_FORMAT = DELIMITER.join(("%A", "%a", "%q", "%V"))


def read_queue(text: str) -> ParsedRows[Queued]:
    """The lines of `squeue --noheader --states=all --format=FORMAT`, times in UTC."""
    return read("squeue", records("squeue", text, COLUMNS), _queued)


def _queued(cells: dict[str, str]) -> Queued:
    return Queued(
        words.number(cells["JobID"], "JobID", most=ids.JOB_ID_MAX),
        words.submitted(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime"),
        words.state(cells["State"], "State"),
    )


def read_waiting(text: str) -> ParsedRows[QueuedOwner]:
    """The lines of `squeue --noheader --states=PENDING --format=WAITING_FORMAT`, times in UTC."""
    return read("squeue", records("squeue", text, WAITING_COLUMNS), _waiting)


def _waiting(cells: dict[str, str]) -> QueuedOwner:
    return QueuedOwner(
        words.number(cells["JobID"], "JobID", most=ids.JOB_ID_MAX),
        ids.name(cells["Account"], field="Account"),
        ids.name(cells["QOS"], field="QOS"),
        words.submitted(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime"),
    )
