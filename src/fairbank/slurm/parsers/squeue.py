"""Output of `squeue` in columns, of any version. No column holds text that users write freely."""

from __future__ import annotations

import re

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import (
    DELIMITER,
    fixed_width_cells,
    fixed_width_format,
    read_rows,
    split_records,
)
from fairbank.slurm.parsers.values import ParsedRows, PendingOwner, QueuedJob, UnreadableLine

COLUMNS = ("JobID", "SubmitTime", "State")
FORMAT = DELIMITER.join(("%A", "%V", "%T"))
WAITING_COLUMNS = ("JobID", "Account", "QOS", "SubmitTime")
WAITING_FORMAT = DELIMITER.join(("%A", "%a", "%q", "%V"))


def read_queue(text: str) -> ParsedRows[QueuedJob]:
    """Read `squeue --noheader --states=all --format=FORMAT`, with times in UTC."""
    return read_rows("squeue", split_records("squeue", text, COLUMNS), _queued)


def _queued(cells: dict[str, str]) -> QueuedJob:
    return QueuedJob(
        words.number(cells["JobID"], "JobID", most=ids.JOB_ID_MAX),
        words.required_instant(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime"),
        words.state(cells["State"], "State"),
    )


def read_waiting(text: str) -> ParsedRows[PendingOwner]:
    """Read `squeue --noheader --states=PENDING --format=WAITING_FORMAT`, with times in UTC."""
    return read_rows("squeue", split_records("squeue", text, WAITING_COLUMNS), _waiting)


def _waiting(cells: dict[str, str]) -> PendingOwner:
    return PendingOwner(
        words.number(cells["JobID"], "JobID", most=ids.JOB_ID_MAX),
        ids.name(cells["Account"], field="Account"),
        ids.name(cells["QOS"], field="QOS"),
        words.required_instant(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime"),
    )


_STARTING_WIDTHS = {
    "SubmitTime": 24,
    "StartTime": 24,
    "TimeLimit": 24,
    "BatchFlag": 12,
    "QOS": 64,
    "tres-alloc": 600,
}
STARTING_FORMAT = fixed_width_format(_STARTING_WIDTHS)
"""Argument of `squeue --Format`."""


class StartingJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job in its prolog.

    `limit_seconds` is None without a finite limit, `tres` is what was allocated, `batch`: it is a
    script.
    """

    submitted: int
    start: int
    limit_seconds: int | None
    batch: bool
    qos: str | None
    tres: str


def read_starting_job(text: str) -> StartingJob:
    """Read the only line of the output.

    Raises InvalidInput for none, or one that cannot be read.
    """
    lines = text.splitlines()
    if len(lines) != 1:
        raise InvalidInput(f"squeue printed {len(lines)} jobs instead of one", field="squeue")
    cells = fixed_width_cells(lines[0], _STARTING_WIDTHS)
    submitted = words.required_instant(
        words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime"
    )
    return StartingJob(
        submitted=submitted,
        start=words.instant(cells["StartTime"], "StartTime") or submitted,
        limit_seconds=words.limit_seconds(cells["TimeLimit"], "TimeLimit"),
        batch=cells["BatchFlag"] == "1",
        qos=cells["QOS"] or None,
        tres=words.tres(cells["tres-alloc"], "tres-alloc"),
    )


_HELD_WIDTHS = {
    "JobArrayID": 40,
    "Account": 80,
    "Partition": 80,
    "QOS": 64,
    "TimeLimit": 24,
    "Reason": 64,
    "admin_comment": 12,
    "tres-alloc": 600,
}
HELD_FORMAT = fixed_width_format(_HELD_WIDTHS)
"""Argument of `squeue --Format`."""

REASONS = frozenset({"Allocation_exhausted", "No_allocation", "Allocation_frozen"})
"""Reasons of the plug-in that a deposit, a new allocation or a thaw ends. Caps of users do not."""

COMMENT_PREFIX = "Fairbank: "
"""Start of Fairbank's admin comments; plugins/prep writes the same."""

_NAME = re.compile(r"[1-9][0-9]{0,9}(?:_[0-9]{1,9})?", re.ASCII)


class HeldJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job that the plug-in held; `name` identifies it for Slurm's commands."""

    name: str
    account: str
    partition: str
    qos: str | None
    limit_seconds: int
    tres: str


def read_held_jobs(text: str) -> ParsedRows[HeldJob]:
    """Read the jobs that the plug-in held, by its reason and its comment.

    Parts of heterogeneous jobs and jobs without a limit are left out: their price is unknown.
    """
    rows: list[HeldJob] = []
    unreadable: list[UnreadableLine] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = fixed_width_cells(line, _HELD_WIDTHS)
        if (
            cells["Reason"] not in REASONS
            or not f"{cells['admin_comment']} ".startswith(COMMENT_PREFIX)
            or not _NAME.fullmatch(cells["JobArrayID"])
        ):
            continue
        try:
            limit, tres = (
                words.limit_seconds(cells["TimeLimit"], "TimeLimit"),
                words.tres(cells["tres-alloc"], "tres-alloc"),
            )
        except InvalidInput as error:
            unreadable.append(UnreadableLine("squeue", number, error.field or "", error.message))
            continue
        if limit is not None:
            rows.append(_held_job(cells, limit, tres))
    return ParsedRows(tuple(rows), tuple(unreadable))


def _held_job(cells: dict[str, str], limit: int, tres: str) -> HeldJob:
    return HeldJob(
        name=cells["JobArrayID"],
        account=cells["Account"],
        partition=cells["Partition"],
        qos=cells["QOS"] or None,
        limit_seconds=limit,
        tres=tres,
    )
