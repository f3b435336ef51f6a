"""Backfill with reservations: for the first jobs that cannot start now, or for all. Other jobs
start if they delay no reservation.

EASY (`easy`) and conservative backfill (`conservative`) differ only in the number of reservations.
"""

from __future__ import annotations

from itertools import chain

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import J, Machine, P, Profile, RemainingHoles, SlotsNow
from fairbank.scheduling.plan import (
    BAD_CONSTRAINTS,
    RESOURCES,
    JobReservation,
    PlannedStart,
    SchedulePlan,
    make_plan,
)
from fairbank.scheduling.snapshot import QueueOrder


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
    planned: list[JobReservation[J, P]] = []
    reasons = dict(order.reasons)
    coming = iter(order)
    for head in coming:
        position, job = head
        if (slot := profile.slot_now(job)) is not None:
            profile.take(job, slot)
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        elif machine.can_ever_fit(job):
            break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    else:
        return make_plan(starts, planned, reasons)
    reasons[job.number] = RESOURCES
    candidate = order.first_that_fits(max(position, unchanged_up_to), profile)
    if candidate is None and not is_complete:
        return make_plan(starts, planned, reasons)
    for position, job in chain((head,), coming):
        if (slot := profile.earliest_slot(job)) is None:
            reasons[job.number] = RESOURCES if machine.can_ever_fit(job) else BAD_CONSTRAINTS
            continue
        profile.take(job, slot)
        if slot.begin == now:
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        else:
            planned.append(new_tuple(JobReservation, (job, slot.begin, slot.placement)))
            if len(planned) == max_reservations:
                break
        # What is kept only grows, so nobody before the hope can start, nor the hope itself once it
        # cannot.
        if candidate is not None and (
            position == candidate[0] or profile.slot_now(candidate[1]) is None
        ):
            candidate = order.first_that_fits(candidate[0], profile)
        if candidate is None and not is_complete:
            return make_plan(starts, planned, reasons)
    starts += start_in_holes(
        order, profile, candidate
    )  # it was found when less was kept: nobody before it can start
    gaps = profile.holes() if len(planned) == max_reservations else None
    return make_plan(
        starts, planned, reasons, None if gaps is None else new_tuple(RemainingHoles, (now, gaps))
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
