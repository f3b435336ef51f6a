"""JSON of sacct and squeue since Slurm 23.11 (data v0.0.40 and later).

Each job is read by itself, so that a strange one spoils no other. A number may be an object that
tells whether it is set; states are lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import REQUEUED
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.values import AccountingJob, ParsedRows, QueuedJob, UnreadableLine

Row = TypeVar("Row")
Value = TypeVar("Value")

NOT_COUNTED = (None, -2)
"""Count of energy on nodes without a meter: 22.05 prints null, 24.11 NO_VAL64 of slurmctld."""


class _Jobs(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


class _Number(msgspec.Struct, frozen=True):
    set: bool = True
    infinite: bool = False
    number: float = 0


_OneNumber = _Number | int | None  # which of the times are plain differs from release to release


class _Times(msgspec.Struct, frozen=True):
    submission: _OneNumber
    start: _OneNumber = None
    end: _OneNumber = None
    elapsed: _OneNumber = None
    limit: _OneNumber = None


class _State(msgspec.Struct, frozen=True):
    current: list[str] | str


class _Amount(msgspec.Struct, frozen=True):
    """Amount of a TRES; memory in MiB."""

    type: str
    name: str | None
    count: int | None


class _Tres(msgspec.Struct, frozen=True):
    allocated: list[_Amount] = []
    requested: list[_Amount] = []


class _Owner(msgspec.Struct, frozen=True):
    user: str | None = None


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    job_id: int
    account: str
    partition: str
    qos: str | None = None
    user: str | None = None
    association: _Owner = _Owner()
    time: _Times
    state: _State
    tres: _Tres
    restart_cnt: _OneNumber = None


class _Queued(msgspec.Struct, frozen=True):
    job_id: int
    submit_time: _OneNumber
    job_state: list[str] | str


def read_jobs(text: bytes) -> ParsedRows[AccountingJob]:
    """Read `sacct --json`. Raises InvalidInput if the text is something else."""
    return _read_each("sacct", text, _Job, _accounting_job)


def read_queue(text: bytes) -> ParsedRows[QueuedJob]:
    """Read `squeue --json`. Raises InvalidInput if the text is something else."""
    return _read_each("squeue", text, _Queued, _queued_job)


def _read_each(
    command: str, text: bytes, shape: type[Row], reader: Callable[[Row], Value]
) -> ParsedRows[Value]:
    try:
        jobs = msgspec.json.decode(text, type=_Jobs).jobs
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"{command} --json: {error}",
            field=command,
            remedy="is it Slurm's, and built with JSON?",
        ) from error
    rows: list[Value] = []
    unreadable: list[UnreadableLine] = []
    decode = msgspec.json.Decoder(shape).decode
    for number, raw in enumerate(jobs, 1):
        try:
            rows.append(reader(decode(raw)))
            continue
        except InvalidInput as error:
            field, why = error.field or "", error.message
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            why, _, where = str(error).partition(" - at `")
            field = where.rstrip("`").removeprefix("$.") or "job"
        unreadable.append(UnreadableLine(f"{command} --json", number, field, why))
    return ParsedRows(tuple(rows), tuple(unreadable))


def _accounting_job(row: _Job) -> AccountingJob:
    time, limit = row.time, _value(row.time.limit)
    start = words.epoch(_value(time.start) or 0, "time.start")
    tres = row.tres.allocated or ([] if start else row.tres.requested)
    states = row.state.current
    return AccountingJob(
        job_id=_within(row.job_id, 1, ids.JOB_ID_MAX, "job_id"),
        submitted=_submission(time.submission, "time.submission"),
        start=start,
        end=words.epoch(_value(time.end) or 0, "time.end"),
        elapsed=_within(_value(time.elapsed) or 0, 0, 10**10, "time.elapsed"),
        # Of a requeued run accounting stores only that flag; sacct prints PENDING before it.
        state=REQUEUED if REQUEUED in states else words.state(_first(states), "state"),
        # Without `user`, accounting still knows the association.
        user=row.user or row.association.user or "",
        owner=None,
        account=words.name(row.account, "account"),
        partition=row.partition and words.name(row.partition, "partition"),
        qos=words.name(row.qos, "qos") if row.qos else None,
        limit_seconds=None if limit is None else _within(limit, 0, 10**9, "time.limit") * 60,
        tres=words.tres(
            ",".join(
                f"{each.type}{f'/{each.name}' if each.name else ''}={each.count}"
                for each in tres
                if each.count not in NOT_COUNTED
            ),
            "tres",
        ),
        restart=_value(row.restart_cnt),
    )


def _queued_job(row: _Queued) -> QueuedJob:
    return QueuedJob(
        _within(row.job_id, 1, ids.JOB_ID_MAX, "job_id"),
        _submission(row.submit_time, "submit_time"),
        words.state(_first(row.job_state), "job_state"),
    )


def _submission(number: _OneNumber, field: str) -> int:
    return words.required_instant(words.epoch(_value(number) or 0, field), field)


def _value(number: _OneNumber) -> int | None:
    if not isinstance(number, _Number):
        return number
    return int(number.number) if number.set and not number.infinite else None


def _first(states: list[str] | str) -> str:
    """Return the state itself; flags such as REQUEUED or COMPLETING follow it."""
    return states if isinstance(states, str) else (states or [""])[0]


def _within(value: int, low: int, high: int, field: str) -> int:
    if low <= value <= high:
        return value
    raise InvalidInput(f"{value} is not from {low} to {high}", field=field)
