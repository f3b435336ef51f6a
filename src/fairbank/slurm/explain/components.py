"""Heterogeneous jobs: all pending components start together, in a pass of backfill (slurm-rules.md,
"Heterogeneous jobs").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairbank.core.time import iso
from fairbank.scheduling.explain.answer import JobCheck
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.slurm.parsers.jobs import SlurmJob


class Component(NamedTuple):
    """Pending component: squeue's name, and Slurm's reason why it waits; None if a pass would start
    it by itself. `at` is the start that is reserved for it, if any.
    """

    name: str
    reason: str | None
    at: int | None = None

    def __str__(self) -> str:
        if self.reason is None:
            return f"{self.name} could start now"
        when = "" if self.at is None else f" until {iso(self.at)}"
        return f"{self.name} waits{when} ({self.reason})"


def pending_components(
    job: SlurmJob, slurm_jobs: Iterable[SlurmJob], plan: SchedulePlan[PendingJob, Placement]
) -> tuple[Component, ...]:
    """Return the pending components of the job's heterogeneous job; none for another job.

    Args:
        job: one of them.
        slurm_jobs: all jobs.
        plan: of the passes, in which each component counts as a job of its own.
    """
    if job.het_job is None:
        return ()
    starting = {start.job.number for start in plan.starts}
    reserved = {reservation.job.number: reservation.at for reservation in plan.reservations}
    return tuple(
        Component(
            other.squeue_name,
            None if other.job_id in starting else plan.reason(other.job_id),
            reserved.get(other.job_id),
        )
        for other in sorted(slurm_jobs, key=lambda other: other.het_offset)
        if other.het_job == job.het_job and other.is_pending
    )


def component_check(components: tuple[Component, ...]) -> JobCheck:
    """Check that all components could start now."""
    return JobCheck(
        "components of a heterogeneous job",
        all(component.reason is None for component in components),
        f"slurmctld starts them together: {'; '.join(map(str, components))}",
    )


def describe_wait(job: SlurmJob, components: tuple[Component, ...]) -> str:
    """Return why a component waits that could start by itself, as a clause."""
    waiting = [component.name for component in components if component.reason is not None]
    if not waiting:
        return (
            f"waits until a pass of backfill starts all components of heterogeneous job"
            f" {job.het_job} together"
        )
    others = f"component {waiting[0]}" if len(waiting) == 1 else f"components {', '.join(waiting)}"
    return f"waits for {others}, because all components start together"
