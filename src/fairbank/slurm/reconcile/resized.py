"""Jobs whose resources changed while they ran.

When a job is resized, slurmdbd ends its record in the state RESIZING and begins another one,
submitted at that second. That one has the start of the job again, and counts its time from there.
The job still is one run, of one submission.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairbank.cluster.accounting_job import RESIZING, AccountingJob
from fairbank.cluster.run_report import RunPiece
from fairbank.core.time import LAST_INSTANT
from fairbank.slurm.parsers.values import is_next_record, seconds_since_change


def join_resized(jobs: Iterable[AccountingJob]) -> list[AccountingJob]:
    """Return one job for each run, the pieces of a resized one joined; by job id and start."""
    joined: list[AccountingJob] = []
    for job in sorted(jobs, key=_order):
        if joined and _is_next_piece(joined[-1], job):
            joined[-1] = _join(joined[-1], job)
        else:
            joined.append(job)
    return joined


def is_later_piece(job: AccountingJob) -> bool:
    """Return True if the job is listed without its first piece, and has its start nevertheless."""
    return job.start is not None and job.start < job.submitted


def _order(job: AccountingJob) -> tuple[int, int, int, bool]:
    """Return the order of records; of those in the same second, a final one comes last."""
    start = job.start or job.submitted
    return job.job_id, start, job.end or LAST_INSTANT, job.state != RESIZING


def _is_next_piece(before: AccountingJob, job: AccountingJob) -> bool:
    return (
        before.state == RESIZING
        and before.job_id == job.job_id
        and before.end is not None
        and job.start is not None
        and is_next_record(before.end, job.submitted, job.start)
    )


def _join(before: AccountingJob, last: AccountingJob) -> AccountingJob:
    seconds = before.elapsed - sum(piece.seconds for piece in before.pieces)
    since_change = seconds_since_change(before.end or 0, last.start or 0, last.elapsed)
    return msgspec.structs.replace(
        last,
        submitted=before.submitted,
        start=before.start,
        elapsed=before.elapsed + since_change,
        restart=before.restart,
        pieces=(*before.pieces, RunPiece(seconds=seconds, tres=before.tres or None)),
        gaps=(*before.gaps, *last.gaps),
    )
