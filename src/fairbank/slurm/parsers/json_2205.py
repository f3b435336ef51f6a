"""The JSON of sacct and squeue as Slurm 22.05 writes it (data v0.0.38): plain numbers, one state; 0 also stands for "not set".

It tells neither uid nor restarts of a job in accounting. We ask this version for columns; what others recorded can be read.
"""

from __future__ import annotations

import msgspec

from fairbank.slurm.parsers import json_jobs
from fairbank.slurm.parsers.json_jobs import JsonAssociation, JsonTres, of_each
from fairbank.slurm.parsers.values import AccountingJob, ParsedRows, Queued


class _Times(msgspec.Struct, frozen=True):
    submission: int
    start: int
    end: int
    elapsed: int
    limit: int | None = None


class _State(msgspec.Struct, frozen=True):
    current: str


class _Tres(msgspec.Struct, frozen=True):
    allocated: list[JsonTres]
    requested: list[JsonTres]


class _Job(JsonAssociation, frozen=True, kw_only=True):
    time: _Times
    state: _State
    tres: _Tres


class _Queued(msgspec.Struct, frozen=True):
    job_id: int
    submit_time: int
    job_state: str


def read_jobs(text: bytes) -> ParsedRows[AccountingJob]:
    """What `sacct --json` said."""
    return of_each("sacct", text, _Job, _job)


def read_queue(text: bytes) -> ParsedRows[Queued]:
    """What `squeue --json` said."""
    return of_each(
        "squeue",
        text,
        _Queued,
        lambda row: json_jobs.queued(row.job_id, row.submit_time, row.job_state),
    )


def _job(row: _Job) -> AccountingJob:
    times = row.time
    return json_jobs.job(
        row,
        submitted=times.submission,
        start=times.start,
        end=times.end,
        elapsed=times.elapsed,
        state=row.state.current,
        limit_minutes=times.limit or None,
        tres=row.tres.allocated or ([] if times.start else row.tres.requested),
        restart=None,
    )
