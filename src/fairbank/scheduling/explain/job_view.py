"""State of a pending job after a plan is applied: all of an explanation follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import NotFound
from fairbank.scheduling.explain.node_filter import FilteredNodes, filter_nodes
from fairbank.scheduling.machines.node_snapshot import OnNodes, apply_plan
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import JobReservation, SchedulePlan
from fairbank.scheduling.slurm.queue_order import (
    QueueEntry,
    entries_in_all_partitions,
    queue_entries,
)


class JobView(NamedTuple):
    """Pending job, and all that it must pass.

    code           Slurm's reason why it waits
    snapshot       machine and running jobs, with those that start now
    is_queued      True if it is in the queue
    filtered       nodes of each partition that accepts it; of each of its partitions if it is not
                   in the queue
    ahead          jobs before it that want nodes that it could use, in order
    names          all jobs of the queue, in order, with squeue's names
    reservations   reservations of the plan
    """

    job: PendingJob
    now: int
    code: str
    snapshot: OnNodes
    is_queued: bool
    filtered: Sequence[tuple[QueueEntry, FilteredNodes]]
    ahead: tuple[int, ...]
    names: Mapping[int, str]
    reservations: Mapping[int, JobReservation[PendingJob, Placement]]

    @property
    def position(self) -> int | None:
        """Return the position in the queue, 1 for the next."""
        return list(self.names).index(self.job.number) + 1 if self.is_queued else None

    @property
    def reservation(self) -> JobReservation[PendingJob, Placement] | None:
        """Return the reservation of the job."""
        return self.reservations.get(self.job.number)


def job_view(
    snapshot: OnNodes, plan: SchedulePlan[PendingJob, Placement], number: int, now: int
) -> JobView:
    """Return the view of a job. Raises NotFound for a job that does not wait.

    Args:
        snapshot: machine, queue and running jobs.
        plan: plan that a pass made from the snapshot.
        number: number of the job.
        now: time in seconds since 1970.
    """
    starts = {start.job.number for start in plan.starts}
    job = next((each for each in snapshot.queue.jobs() if each.number == number), None)
    if job is None or number in starts:
        raise NotFound(
            f"job {number} does not wait",
            field="job",
            remedy="look among the jobs that run or have ended",
        )
    after = apply_plan(snapshot, plan, now)
    order = [
        each
        for each in queue_entries(snapshot.machine, snapshot.queue.jobs(), now, by_least_time=True)[
            0
        ]
        if each.job.number not in starts
    ]
    own = [each for each in order if each.job.number == number and not each.with_preference]
    ahead, planned = _ahead(order, own), {each.job.number: each for each in plan.reservations}
    before = [planned[each] for each in ahead if each in planned]
    return JobView(
        job=job,
        now=now,
        code=plan.reason(number),
        snapshot=after,
        is_queued=bool(own),
        filtered=[
            (entry, filter_nodes(after.machine, entry, before, now))
            for entry in own or entries_in_all_partitions(after.machine, job)
        ],
        ahead=ahead,
        names={each.job.number: each.job.name for each in order},
        reservations=planned,
    )


def _ahead(order: list[QueueEntry], mine: list[QueueEntry]) -> tuple[int, ...]:
    """Return the jobs before its last entry that want nodes that it could use."""
    if not mine:
        return ()
    nodes = mine[0].nodes
    for entry in mine[1:]:
        nodes |= entry.nodes
    upto, own = order.index(mine[-1]), mine[0].job.number
    return tuple(
        dict.fromkeys(
            each.job.number
            for each in order[:upto]
            if each.nodes & nodes and each.job.number != own
        )
    )
