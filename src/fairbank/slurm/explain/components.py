"""Heterogeneous jobs: all pending components start together, in a pass of backfill (slurm-rules.md,
"Heterogeneous jobs"). Each is planned as a job of its own, too, to tell which of them keeps the
others waiting.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairbank.core.time import iso
from fairbank.scheduling.explain.answer import JobCheck
from fairbank.scheduling.explain.explanation import StatedWait
from fairbank.scheduling.machines.node_snapshot import replace_job
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.snapshot import LiveQueue


class Component(NamedTuple):
    """Pending component: squeue's name, and Slurm's reason why it waits; None if a pass would start
    it by itself. `at` is the start that is reserved for it, if any.
    """

    number: int
    name: str
    reason: str | None
    at: int | None = None

    def __str__(self) -> str:
        if self.reason is None:
            return f"{self.name} could start now"
        when = "" if self.at is None else f" until {iso(self.at)}"
        return f"{self.name} waits{when} ({self.reason})"


class Components(NamedTuple):
    """Pending components of a heterogeneous job, of which `of` is one; none of another job.
    `start_now`: a pass would start all of them together.
    """

    of: SlurmJob
    parts: tuple[Component, ...]
    start_now: bool

    def checks(self) -> list[JobCheck]:
        """Return the check that all could start now, together; none for another job."""
        if not self.parts:
            return []
        evidence = f"slurmctld starts them together: {'; '.join(map(str, self.parts))}"
        if not self.start_now and not self.waiting:
            evidence += "; but not all at once, each on nodes of its own"
        return [JobCheck("components of a heterogeneous job", self.start_now, evidence)]

    @property
    def waiting(self) -> list[Component]:
        """Return those that could not start by themselves."""
        return [component for component in self.parts if component.reason is not None]

    def stated_wait(self, reason: str) -> StatedWait | None:
        """Return why a component waits that could start by itself; None for others."""
        waiting = self.waiting
        if all(component.number != self.of.job_id for component in self.parts) or any(
            component.number == self.of.job_id for component in waiting
        ):
            return None
        job = f"heterogeneous job {self.of.het_job}"
        if self.start_now:
            return StatedWait(
                reason, f"waits until a pass of backfill starts all components of {job} together"
            )
        if not waiting:
            clause = (
                f"waits until all components of {job} fit at once: each could start now, but"
                " backfill plans nodes of its own for each"
            )
            return StatedWait(reason, clause, is_simulated=True)
        names = ", ".join(component.name for component in waiting)
        others = f"component{'' if len(waiting) == 1 else 's'} {names}"
        return StatedWait(
            reason, f"waits for {others}, because all components start together", is_simulated=True
        )


def pending_components(
    job: SlurmJob, queue: LiveQueue, plan: SchedulePlan[PendingJob, Placement]
) -> Components:
    """Return the pending components of the job's heterogeneous job; none for another job.

    Args:
        job: one of them.
        plan: the plan of the passes, which start all components or none.
    """
    if job.het_job is None:
        return Components(job, (), start_now=False)
    starting = {start.job.number for start in plan.starts}
    apart = queue.snapshot
    for other in queue.snapshot.queue.jobs():
        if other.het_job == job.het_job:
            apart = replace_job(apart, msgspec.structs.replace(other, het_job=None))
    plan_apart = run_passes(apart, queue.parameters, queue.now)
    starting_apart = {start.job.number for start in plan_apart.starts}
    reserved = {reservation.job.number: reservation.at for reservation in plan_apart.reservations}
    pending = {
        other.job_id: other
        for other in queue.slurm_jobs.values()
        if other.het_job == job.het_job and other.is_pending
    }
    parts = tuple(
        Component(
            number,
            other.squeue_name,
            None if number in starting_apart else plan_apart.reason(number),
            reserved.get(number),
        )
        for number, other in sorted(pending.items(), key=lambda item: item[1].het_offset)
    )
    return Components(job, parts, start_now=all(number in starting for number in pending))
