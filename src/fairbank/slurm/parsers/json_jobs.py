"""JSON of sacct and squeue since Slurm 23.11 (data v0.0.40 and later).

Each job is read by itself, so that a strange one spoils no other. A number may be an object that
says whether it is set; states are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import REQUEUED
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.values import AccountingJob, ParsedRows, QueuedJob, UnreadableLine

Row = TypeVar("Row")
Value = TypeVar("Value")


NOT_COUNTED = -2
"""NO_VAL64 of slurmctld, which 24.11 prints for energy of nodes without a meter. 22.05 prints
null.
"""


class JsonTres(msgspec.Struct, frozen=True):
    """Amount of a TRES; memory in MiB.

    The count is None for what was not counted, such as energy.
    """

    type: str
    name: str | None
    count: int | None


class _Owner(msgspec.Struct, frozen=True):
    user: str | None = None


class JsonAssociation(msgspec.Struct, frozen=True, kw_only=True):
    """Owner of a job, and its partition. Without `user`, accounting still knows the association."""

    job_id: int
    account: str
    partition: str
    qos: str | None = None
    user: str | None = None
    association: _Owner = _Owner()


class _Jobs(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


def read_each(
    command: str, text: bytes, shape: type[Row], reader: Callable[[Row], Value]
) -> ParsedRows[Value]:
    """Read each job as a value. Raises InvalidInput if the text is not the JSON of this command.

    Args:
        command: that printed it, for errors.
        text: its output.
        shape: of one job.
        reader: returns the value of a job.
    """
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
        except InvalidInput as error:
            unreadable.append(
                UnreadableLine(f"{command} --json", number, error.field or "", error.message)
            )
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            why, _, where = str(error).partition(" - at `")
            unreadable.append(
                UnreadableLine(
                    f"{command} --json", number, where.rstrip("`").removeprefix("$.") or "job", why
                )
            )
    return ParsedRows(tuple(rows), tuple(unreadable))


def job(
    row: JsonAssociation,
    *,
    submitted: int,
    start: int,
    end: int,
    elapsed: int,
    state: str,
    limit_minutes: int | None,
    tres: Sequence[JsonTres],
    restart: int | None,
) -> AccountingJob:
    """Build a job from its parts. Raises InvalidInput, naming the field."""
    return AccountingJob(
        job_id=_within(row.job_id, 1, ids.JOB_ID_MAX, "job_id"),
        submitted=words.required_instant(
            words.epoch(submitted, "time.submission"), "time.submission"
        ),
        start=words.epoch(start, "time.start"),
        end=words.epoch(end, "time.end"),
        elapsed=_within(elapsed, 0, 10**10, "time.elapsed"),
        state=words.state(state, "state"),
        user=row.user or row.association.user or "",
        owner=None,
        account=ids.name(row.account, field="account"),
        partition=row.partition and ids.name(row.partition, field="partition"),
        qos=ids.name(row.qos, field="qos") if row.qos else None,
        limit_seconds=(
            None if limit_minutes is None else _within(limit_minutes, 0, 10**9, "time.limit") * 60
        ),
        tres=words.tres(
            ",".join(_tres_text(each) for each in tres if each.count not in (None, NOT_COUNTED)),
            "tres",
        ),
        restart=restart,
    )


def queued(job_id: int, submitted: int, state: str) -> QueuedJob:
    """Build a job that slurmctld knows. Raises InvalidInput, naming the field."""
    at = words.required_instant(words.epoch(submitted, "submit_time"), "submit_time")
    return QueuedJob(
        _within(job_id, 1, ids.JOB_ID_MAX, "job_id"), at, words.state(state, "job_state")
    )


def _tres_text(each: JsonTres) -> str:
    return f"{each.type}{f'/{each.name}' if each.name else ''}={each.count}"


def _within(value: int, low: int, high: int, field: str) -> int:
    if low <= value <= high:
        return value
    raise InvalidInput(f"{value} is not from {low} to {high}", field=field)


class _Number(msgspec.Struct, frozen=True):
    set: bool = True
    infinite: bool = False
    number: float = 0

    @property
    def value(self) -> int | None:
        return int(self.number) if self.set and not self.infinite else None


_OneNumber = _Number | int | None  # which of the times are plain differs from release to release


class _Times(msgspec.Struct, frozen=True):
    submission: _OneNumber
    start: _OneNumber = None
    end: _OneNumber = None
    elapsed: _OneNumber = None
    limit: _OneNumber = None


class _State(msgspec.Struct, frozen=True):
    current: list[str] | str


class _Tres(msgspec.Struct, frozen=True):
    allocated: list[JsonTres] = []
    requested: list[JsonTres] = []


class _Job(JsonAssociation, frozen=True, kw_only=True):
    time: _Times
    state: _State
    tres: _Tres
    restart_cnt: _OneNumber = None


class _Queued(msgspec.Struct, frozen=True):
    job_id: int
    submit_time: _OneNumber
    job_state: list[str] | str


def read_jobs(text: bytes) -> ParsedRows[AccountingJob]:
    """Read `sacct --json`."""
    return read_each("sacct", text, _Job, _job)


def read_queue(text: bytes) -> ParsedRows[QueuedJob]:
    """Read `squeue --json`."""
    return read_each(
        "squeue",
        text,
        _Queued,
        lambda row: queued(row.job_id, _value(row.submit_time) or 0, _first(row.job_state)),
    )


def _job(row: _Job) -> AccountingJob:
    start = _value(row.time.start) or 0
    return job(
        row,
        submitted=_value(row.time.submission) or 0,
        start=start,
        end=_value(row.time.end) or 0,
        elapsed=_value(row.time.elapsed) or 0,
        state=_ended(row.state.current),
        limit_minutes=_value(row.time.limit),
        tres=row.tres.allocated or ([] if start else row.tres.requested),
        restart=_value(row.restart_cnt),
    )


def _value(number: _OneNumber) -> int | None:
    return number.value if isinstance(number, _Number) else number


def _ended(states: list[str] | str) -> str:
    """Return the state.

    Of a requeued run accounting stores only that flag; sacct prints PENDING first.
    """
    return REQUEUED if REQUEUED in states else _first(states)


def _first(states: list[str] | str) -> str:
    """Return the state itself; flags such as REQUEUED or COMPLETING follow it."""
    return states if isinstance(states, str) else (states or [""])[0]
