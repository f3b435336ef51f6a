"""Restarts of a job, counted in the records of its executions."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core.final_state import REQUEUED

REQUEUE_SECONDS = 3_600  # a requeued job is submitted again when its epilogs are done


NO_RESTART_STATES = frozenset({"COMPLETED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "DEADLINE"})
"""States after which Slurm restarts no job by itself."""


def restart_count(job: AccountingJob, history: Sequence[AccountingJob]) -> int:
    """Count the restarts of a job before this execution; `history` has all under its job id."""
    if job.restart is not None:
        return job.restart
    count = 0
    before: AccountingJob | None = None
    for execution in sorted(history, key=lambda job: (job.submitted, job.start or 0)):
        restarts = count + 1 if before is not None and _is_next_execution(before, execution) else 0
        if (execution.submitted, execution.start) == (job.submitted, job.start):
            return restarts
        # Slurm 24.11 leaves a record that is pending for ever if a job is requeued in its prolog.
        if execution.start is not None or execution.end is not None:
            count, before = restarts, execution
    return 0


def _is_next_execution(before: AccountingJob, job: AccountingJob) -> bool:
    """Return True if `job` is the next execution of the same job.

    Otherwise slurmctld has started again to count job ids: the same id, but of another owner, much
    later, or after a job that had completed.
    """
    if before.end is None or before.owner != job.owner or before.state in NO_RESTART_STATES:
        return False
    return before.state == REQUEUED or -1 <= job.submitted - before.end <= REQUEUE_SECONDS
