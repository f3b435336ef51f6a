"""Both passes, one after the other, as when both are due at the same time: the main pass first,
so that backfill gets only what the order of priorities leaves.
"""

from __future__ import annotations

from fairbank.scheduling.machines.node_snapshot import OnNodes, apply_plan
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.backfill import backfill
from fairbank.scheduling.slurm.main_pass import main_pass
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.queue_order import queue_entries


def run_passes(
    snapshot: OnNodes, parameters: SchedulerParameters, now: int, *, full: bool = True
) -> SchedulePlan[PendingJob, Placement]:
    """Return the starts of the main pass, and the starts and reservations of backfill. A reason of
    backfill replaces that of the main pass.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        now: time of the passes in seconds.
        full: the main pass tests the whole queue, as each sched_interval.
    """
    entries, reasons = queued = queue_entries(snapshot.machine, snapshot.queue.jobs(), now)
    first = main_pass(snapshot, parameters, now, full=full, queued=queued)
    begun_now = {start.job.number for start in first.starts}
    remaining = (
        None
        if _has_shrinkable_job(snapshot)
        else ([entry for entry in entries if entry.job.number not in begun_now], reasons)
    )
    second = backfill(
        apply_plan(snapshot, first, now), parameters, now, queued=remaining, begun_now=begun_now
    )
    reasons_of_both = {**first.reasons, **second.reasons}
    for start in second.starts:
        reasons_of_both.pop(start.job.number, None)
    return SchedulePlan(
        [*first.starts, *second.starts],
        second.reservations,
        reasons_of_both,
        first.default_reason,
        backfilled=frozenset(start.job.number for start in second.starts),
    )


def _has_shrinkable_job(snapshot: OnNodes) -> bool:
    """Return True if a job accepts a shorter limit, so that backfill may accept more jobs."""
    return any(job.time_min is not None for job in snapshot.queue.jobs())
