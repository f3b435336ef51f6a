"""Policies of the literature on identical processors: FIFO, first come first served, EASY and
conservative backfill.

Jobs start from the head of the queue. With backfill a job that does not fit may get a reservation,
at the first time at which it will fit if all running jobs use their whole time limit. Other jobs
start if they delay no reservation. EASY and conservative backfill differ only in the number of
reservations. No job is wider than the machine: the reader of a trace omits such jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import merge
from itertools import chain, takewhile

from fairbank.scheduling.machines.processor_queue import PartitionQueue, QueueOrder
from fairbank.scheduling.machines.processors import Holes, ProcessorProfile, ProcessorSnapshot, W
from fairbank.scheduling.plan import JobReservation, PlannedStart, SchedulePlan, make_plan
from fairbank.scheduling.snapshot import RemainingHoles, new_tuple

ProcessorPlan = SchedulePlan[W, int]


def fcfs(snapshot: ProcessorSnapshot[W], now: int) -> ProcessorPlan[W]:
    """Start jobs from the head on until one does not fit. There are no reservations."""
    return start_in_order(snapshot.queue.order(now), snapshot.machine.free)


def start_in_order(
    order: Iterable[tuple[int, W]], free: int, is_blocking: Callable[[W], bool] | None = None
) -> ProcessorPlan[W]:
    """Start jobs in order until a blocking one does not fit.

    Args:
        order: pending jobs in order, with positions.
        free: number of free processors.
        is_blocking: function that returns True for a job that blocks those behind if it does not
            fit; None: each does.
    """
    starts: list[PlannedStart[W, int]] = []
    for _, job in order:
        if job.processors <= free:
            free -= job.processors
            starts.append(PlannedStart(job, job.processors))
        elif is_blocking is None or is_blocking(job):
            break
    return make_plan(starts, ())


def fifo(snapshot: ProcessorSnapshot[W], now: int) -> ProcessorPlan[W]:
    """Start the first job of all partitions, then the next, until each partition is blocked.

    This is how SLURM began (M. Jette and M. Grondona, "SLURM: Simple Linux Utility for Resource
    Management", 2002): when a job of a partition does not fit, no job behind it in that partition
    is tested.
    """
    free, order = snapshot.machine.free, snapshot.queue.order(now)
    starts: list[PlannedStart[W, int]] = []
    blocked: set[int] = set()
    lines = order.by_partition() if isinstance(order, PartitionQueue) else _by_partition(order)
    # `merge` takes the next job of a line only after the last one was tested, so that the line of a
    # blocked partition ends there: the jobs behind cost nothing.
    unblocked = (takewhile(lambda item: item[1].partition not in blocked, line) for line in lines)
    for _, job in merge(*unblocked):
        if job.processors <= free:
            free -= job.processors
            starts.append(PlannedStart(job, job.processors))
        else:
            blocked.add(job.partition)
    return make_plan(starts, ())


def _by_partition(order: Iterable[tuple[int, W]]) -> Iterable[list[tuple[int, W]]]:
    lines: dict[int, list[tuple[int, W]]] = {}
    for item in order:
        lines.setdefault(item[1].partition, []).append(item)
    return lines.values()


def plan_with_reservations(
    order: QueueOrder[W],
    profile: ProcessorProfile[W],
    now: int,
    *,
    max_reservations: int | None,
    is_complete: bool = False,
    unchanged_up_to: int = -1,
) -> ProcessorPlan[W]:
    """Plan in order: each job gets the earliest slot that the reservations before it leave, and
    starts if that is now. The plan ends where no job behind can start now.

    Args:
        order: pending jobs in order.
        profile: the machine over time, with running jobs only.
        now: time in seconds.
        max_reservations: number of reservations; None: no limit.
        is_complete: go on until all reservations are in the plan. Else it has none: they would only
            be thrown away.
        unchanged_up_to: position up to which no job can start now (`Snapshot.unchanged_up_to`).
    """
    starts: list[PlannedStart[W, int]] = []
    remaining = iter(order)
    for head in remaining:
        position, job = head
        if (slot := profile.slot_now(job)) is None:
            break
        profile.take(job, slot)
        starts.append(new_tuple(PlannedStart, (job, slot.processors)))
    else:
        return make_plan(starts, ())
    candidate = order.first_that_fits(max(position, unchanged_up_to), profile.holes())
    if candidate is None and not is_complete:
        return make_plan(starts, ())
    reserved, reservations = 0, list[JobReservation[W, int]]()
    until = _first_begin_behind(candidate, profile, now)
    for position, job in chain((head,), remaining):
        slot = profile.earliest_slot(job)
        profile.take(job, slot)
        begin, _, processors = slot
        if begin == now:
            starts.append(new_tuple(PlannedStart, (job, processors)))
        else:
            reserved += 1
            if is_complete:
                reservations.append(new_tuple(JobReservation, (job, begin, processors)))
            if reserved == max_reservations:
                break
        # Reserved resources only grow. So a job that could not start cannot start later in this
        # pass: no job before the candidate can, and the candidate cannot after it has failed once.
        # A reservation that begins after the candidate's end takes nothing from it.
        if candidate is not None and (
            position == candidate[0] or (begin < until and profile.slot_now(candidate[1]) is None)
        ):
            candidate = order.first_that_fits(candidate[0], profile.holes())
            until = _first_begin_behind(candidate, profile, now)
        if candidate is None and not is_complete:
            return make_plan(starts, reservations)
    # The candidate was found when less was reserved, so no job before it can start.
    starts += start_in_holes(order, profile, candidate)
    if reserved != max_reservations:
        return make_plan(starts, reservations)
    return make_plan(starts, reservations, new_tuple(RemainingHoles, (now, profile.holes())))


def _first_begin_behind(
    candidate: tuple[int, W] | None, profile: ProcessorProfile[W], now: int
) -> int:
    """Return the first begin of a reservation that leaves the candidate alone if it starts now."""
    return now if candidate is None else profile.first_begin_after(now + candidate[1].limit)


def start_in_holes(
    order: QueueOrder[W], profile: ProcessorProfile[W] | Holes[W], candidate: tuple[int, W] | None
) -> list[PlannedStart[W, int]]:
    """Start the candidate, if it fits, and each job behind it that fits beside all reservations.

    Args:
        order: pending jobs in order.
        profile: free processors beside all reservations; the starts are taken from it.
        candidate: position and job to test first; None: no job can start.
    """
    starts: list[PlannedStart[W, int]] = []
    while candidate is not None:
        position, job = candidate
        if (slot := profile.slot_now(job)) is not None:
            profile.take(job, slot)
            starts.append(new_tuple(PlannedStart, (job, slot.processors)))
        candidate = order.first_that_fits(position, profile.holes())
    return starts


def easy(snapshot: ProcessorSnapshot[W], now: int, *, fully: bool = False) -> ProcessorPlan[W]:
    """Run a pass of EASY backfill: only the first job that does not fit gets a reservation.

    A job behind starts now if it ends before the reservation, or takes processors that the head
    leaves (D. A. Lifka, "The ANL/IBM SP Scheduling System", Job Scheduling Strategies for Parallel
    Processing, 1995). If no job ended since the reservation was made, only new jobs are tested.

    Args:
        snapshot: processors, running and pending jobs.
        now: time in seconds.
        fully: put the reservation into the plan even if no job could fill the hole.
    """
    if snapshot.remaining_holes is None or fully:
        return _backfill(snapshot, now, max_reservations=1, fully=fully)
    order: QueueOrder[W] = snapshot.queue.order(now)
    left: Holes[W] = Holes(snapshot.remaining_holes, now)
    candidate = order.first_that_fits(snapshot.unchanged_up_to, left.holes())
    return make_plan(start_in_holes(order, left, candidate), (), left.remaining())


def conservative(
    snapshot: ProcessorSnapshot[W], now: int, *, fully: bool = False
) -> ProcessorPlan[W]:
    """Run a pass of conservative backfill: each job that does not fit gets a reservation, and
    delays none before it.

    Each pass plans again, so the plan depends only on the pending and running jobs. (A. W. Mu'alem
    and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, compare it with
    EASY. They keep the slot of a job from one pass to the next, unless it can move forward.)

    Args:
        snapshot: processors, running and pending jobs.
        now: time in seconds.
        fully: go on until all jobs have a reservation. Else the plan ends where no job behind can
            start now.
    """
    return _backfill(snapshot, now, max_reservations=None, fully=fully)


def _backfill(
    snapshot: ProcessorSnapshot[W], now: int, *, max_reservations: int | None, fully: bool
) -> ProcessorPlan[W]:
    return plan_with_reservations(
        snapshot.queue.order(now),
        snapshot.machine.profile(snapshot.running, now),
        now,
        max_reservations=max_reservations,
        is_complete=fully,
        unchanged_up_to=snapshot.unchanged_up_to,
    )
