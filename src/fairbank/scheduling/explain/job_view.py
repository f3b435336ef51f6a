"""How a job that waits stands, once what a pass decided is carried out: all that there is to tell of it follows from this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import NotFound
from fairbank.scheduling.explain.node_filter import FilteredNodes, filter_nodes
from fairbank.scheduling.machines.node_snapshot import OnNodes, apply_plan
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import Reservation, SchedulePlan
from fairbank.scheduling.slurm.queue_order import (
    QueueEntry,
    entries_in_all_partitions,
    queue_entries,
)


class JobView(NamedTuple):
    """A job, and what it would have to get past.

    code       why it waits, in Slurm's word
    there      the machine and who runs, with those who start now
    queued     it has a place among those who wait
    sifted     the nodes of each partition that takes it; of each of its partitions where it has no place
    ahead      who is before it and wants nodes that it could have, in order
    names      of all who have a place, in order, as squeue has them
    planned    for whom room is kept
    """

    job: PendingJob
    now: int
    code: str
    there: OnNodes
    queued: bool
    sifted: Sequence[tuple[QueueEntry, FilteredNodes]]
    ahead: tuple[int, ...]
    names: Mapping[int, str]
    planned: Mapping[int, Reservation[PendingJob, Placement]]

    @property
    def position(self) -> int | None:
        """One for the next."""
        return list(self.names).index(self.job.number) + 1 if self.queued else None

    @property
    def kept(self) -> Reservation[PendingJob, Placement] | None:
        """The room that is kept for it."""
        return self.planned.get(self.job.number)


def job_view(
    snapshot: OnNodes, plan: SchedulePlan[PendingJob, Placement], number: int, now: int
) -> JobView:
    """`plan` is what a pass made of the snapshot. Raises NotFound for a job that does not wait there."""
    starts = {start.job.number for start in plan.starts}
    job = next((each for each in snapshot.queue.jobs() if each.number == number), None)
    if job is None or number in starts:
        raise NotFound(
            f"job {number} does not wait",
            field="job",
            remedy="look among the jobs that run or have ended",
        )
    there = apply_plan(snapshot, plan, now)
    order = [
        each
        for each in queue_entries(snapshot.machine, snapshot.queue.jobs(), now, shortest=True)[0]
        if each.job.number not in starts
    ]
    mine = [each for each in order if each.job.number == number and not each.soft]
    ahead, planned = _ahead(order, mine), {each.job.number: each for each in plan.planned}
    before = [planned[each] for each in ahead if each in planned]
    return JobView(
        job=job,
        now=now,
        code=plan.why(number),
        there=there,
        queued=bool(mine),
        sifted=[
            (entry, filter_nodes(there.machine, entry, before, now))
            for entry in mine or entries_in_all_partitions(there.machine, job)
        ],
        ahead=ahead,
        names={each.job.number: each.job.name for each in order},
        planned=planned,
    )


def _ahead(order: list[QueueEntry], mine: list[QueueEntry]) -> tuple[int, ...]:
    """Whoever stands before its last entry and wants nodes that it could have."""
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
