"""The JSON of sacct and squeue since Slurm 23.11 (data v0.0.40 and later): a number says whether it is set, states are lists."""

from __future__ import annotations

import msgspec

from fairbank.core.final_state import REQUEUED
from fairbank.slurm.parsers import json_jobs
from fairbank.slurm.parsers.json_jobs import JsonAssociation, JsonTres, read_each
from fairbank.slurm.parsers.values import AccountingJob, ParsedRows, QueuedJob


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
    """What `sacct --json` said."""
    return read_each("sacct", text, _Job, _job)


def read_queue(text: bytes) -> ParsedRows[QueuedJob]:
    """What `squeue --json` said."""
    return read_each(
        "squeue",
        text,
        _Queued,
        lambda row: json_jobs.queued(
            row.job_id, _value(row.submit_time) or 0, _first(row.job_state)
        ),
    )


def _job(row: _Job) -> AccountingJob:
    start = _value(row.time.start) or 0
    return json_jobs.job(
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
    """Accounting keeps the end of a requeued run as that flag alone; sacct tells it behind PENDING, which stands for no state."""
    return REQUEUED if REQUEUED in states else _first(states)


def _first(states: list[str] | str) -> str:
    """The state proper; flags such as REQUEUED or COMPLETING come behind it."""
    return states if isinstance(states, str) else (states or [""])[0]
