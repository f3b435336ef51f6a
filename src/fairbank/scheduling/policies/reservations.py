"""Policies with reservations: EASY and conservative backfill, which differ only in the number of
reservations.

Jobs start from the head of the queue. A job that does not fit may get a reservation, at the first
time at which it will fit if all running jobs use their whole time limit. Other jobs start if they
delay no reservation.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import J, Machine, P, Profile, RemainingHoles, SlotsNow
from fairbank.scheduling.machines.processors import Holes
from fairbank.scheduling.plan import (
    BAD_CONSTRAINTS,
    RESOURCES,
    JobReservation,
    PlannedStart,
    SchedulePlan,
    make_plan,
)
from fairbank.scheduling.snapshot import QueueOrder, Snapshot


def plan_with_reservations(
    order: QueueOrder[J],
    machine: Machine[J, P],
    profile: Profile[J, P],
    now: int,
    *,
    max_reservations: int | None,
    is_complete: bool = False,
    unchanged_up_to: int = -1,
) -> SchedulePlan[J, P]:
    """Plan in order: each job gets the earliest slot that the reservations before it leave, and
    starts if that is now.

    The plan ends where no job behind can start now. A job that could never fit is ignored.

    Args:
        order: pending jobs in order.
        machine: the machine.
        profile: the machine over time, with running jobs only.
        now: time in seconds.
        max_reservations: number of reservations; None: no limit.
        is_complete: go on until all reservations are in the plan.
        unchanged_up_to: position up to which no job can start now (`Snapshot.unchanged_up_to`).
    """
    starts: list[PlannedStart[J, P]] = []
    reservations: list[JobReservation[J, P]] = []
    reasons = dict(order.reasons)
    remaining = iter(order)
    for head in remaining:
        position, job = head
        if (slot := profile.slot_now(job)) is not None:
            profile.take(job, slot)
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        elif machine.can_ever_fit(job):
            break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    else:
        return make_plan(starts, reservations, reasons)
    reasons[job.number] = RESOURCES
    candidate = order.first_that_fits(max(position, unchanged_up_to), profile)
    if candidate is None and not is_complete:
        return make_plan(starts, reservations, reasons)
    for position, job in chain((head,), remaining):
        if (slot := profile.earliest_slot(job)) is None:
            reasons[job.number] = RESOURCES if machine.can_ever_fit(job) else BAD_CONSTRAINTS
            continue
        profile.take(job, slot)
        if slot.begin == now:
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        else:
            reservations.append(new_tuple(JobReservation, (job, slot.begin, slot.placement)))
            if len(reservations) == max_reservations:
                break
        # Reserved resources only grow, so no job before the candidate can start, nor the candidate
        # itself once it cannot.
        if candidate is not None and (
            position == candidate[0] or profile.slot_now(candidate[1]) is None
        ):
            candidate = order.first_that_fits(candidate[0], profile)
        if candidate is None and not is_complete:
            return make_plan(starts, reservations, reasons)
    starts += start_in_holes(
        order, profile, candidate
    )  # it was found when less was kept: nobody before it can start
    holes = profile.holes() if len(reservations) == max_reservations else None
    return make_plan(
        starts,
        reservations,
        reasons,
        None if holes is None else new_tuple(RemainingHoles, (now, holes)),
    )


def start_in_holes(
    order: QueueOrder[J], profile: SlotsNow[J, P], candidate: tuple[int, J] | None
) -> list[PlannedStart[J, P]]:
    """Start the candidate, if it fits, and each job behind it that fits beside all reservations."""
    starts: list[PlannedStart[J, P]] = []
    while candidate is not None:
        position, job = candidate
        if (slot := profile.slot_now(job)) is not None:
            profile.take(job, slot)
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        candidate = order.first_that_fits(position, profile)
    return starts


def easy(snapshot: Snapshot[J, P, Any], now: int, *, fully: bool = False) -> SchedulePlan[J, P]:
    """Run a pass of EASY backfill: only the first job that does not fit gets a reservation.

    A job behind starts now if it ends before the reservation, or takes processors that the head
    leaves (D. A. Lifka, "The ANL/IBM SP Scheduling System", Job Scheduling Strategies for Parallel
    Processing, 1995).

    If no job could fill the hole, the reservation is in the plan only with `fully`. If no job ended
    since the reservation was made, only new jobs are tested.
    """
    order, machine = snapshot.queue.order(now), snapshot.machine
    if snapshot.remaining_holes is not None and not fully:
        holes: Holes[Any] = Holes(snapshot.remaining_holes, now)
        starts: list[PlannedStart[Any, Any]] = start_in_holes(
            order, holes, order.first_that_fits(snapshot.unchanged_up_to, holes)
        )
        return make_plan(starts, (), {}, holes.remaining())
    return plan_with_reservations(
        order,
        machine,
        machine.profile(snapshot.running, now),
        now,
        max_reservations=1,
        is_complete=fully,
        unchanged_up_to=snapshot.unchanged_up_to,
    )


def conservative(
    snapshot: Snapshot[J, P, Any], now: int, *, fully: bool = False
) -> SchedulePlan[J, P]:
    """Run a pass of conservative backfill: each job that does not fit gets a reservation, and
    delays none before it.

    Each pass plans again, so the plan depends only on the pending and running jobs. (A. W. Mu'alem
    and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, compare it with
    EASY. They keep the slot of a job from one pass to the next, unless it can move forward.)

    The plan ends where no job behind can start now; with `fully` it goes on until all jobs have a
    reservation.
    """
    order, machine = snapshot.queue.order(now), snapshot.machine
    return plan_with_reservations(
        order,
        machine,
        machine.profile(snapshot.running, now),
        now,
        max_reservations=None,
        is_complete=fully,
        unchanged_up_to=snapshot.unchanged_up_to,
    )
