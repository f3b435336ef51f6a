"""Backfilling: room is kept for the first jobs that cannot start now, and whoever is in nobody's way starts before them.

For how many it is kept is all that EASY (`easy`) and conservative backfill (`conservative`) differ in.
"""

from __future__ import annotations

from itertools import chain

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import J, Machine, P, Profile, RemainingHoles, StartsNow
from fairbank.scheduling.plan import (
    BAD_CONSTRAINTS,
    RESOURCES,
    PlannedStart,
    Reservation,
    SchedulePlan,
    make_plan,
)
from fairbank.scheduling.snapshot import QueueOrder


def plan_with_reservations(
    line: QueueOrder[J],
    machine: Machine[J, P],
    ahead: Profile[J, P],
    now: int,
    *,
    most: int | None,
    fully: bool = False,
    settled: int = -1,
) -> SchedulePlan[J, P]:
    """Plan in the order of the line: each job gets the earliest place that those leave for whom room is kept, and starts if that is now.

    Room is kept for `most` of those who wait; None: for all. It ends where nobody behind can start now, whatever becomes of the others;
    with `fully` it goes on until all places are told. Whoever could never fit is in nobody's way.
    """
    starts: list[PlannedStart[J, P]] = []
    planned: list[Reservation[J, P]] = []
    reasons = dict(line.reasons)
    coming = iter(line)
    for head in coming:
        turn, job = head
        if (slot := ahead.now(job)) is not None:
            ahead.take(job, slot)
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        elif machine.ever(job):
            break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    else:
        return make_plan(starts, planned, reasons)
    reasons[job.number] = RESOURCES
    hope = line.first(max(turn, settled), ahead)
    if hope is None and not fully:
        return make_plan(starts, planned, reasons)
    for turn, job in chain((head,), coming):
        if (slot := ahead.earliest(job)) is None:
            reasons[job.number] = RESOURCES if machine.ever(job) else BAD_CONSTRAINTS
            continue
        ahead.take(job, slot)
        if slot.begin == now:
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        else:
            planned.append(new_tuple(Reservation, (job, slot.begin, slot.placement)))
            if len(planned) == most:
                break
        # What is kept only grows, so nobody before the hope can start, nor the hope itself once it cannot.
        if hope is not None and (turn == hope[0] or ahead.now(hope[1]) is None):
            hope = line.first(hope[0], ahead)
        if hope is None and not fully:
            return make_plan(starts, planned, reasons)
    starts += start_in_holes(
        line, ahead, hope
    )  # it was found when less was kept: nobody before it can start
    gaps = ahead.gaps() if len(planned) == most else None
    return make_plan(
        starts, planned, reasons, None if gaps is None else new_tuple(RemainingHoles, (now, gaps))
    )


def start_in_holes(
    line: QueueOrder[J], ahead: StartsNow[J, P], hope: tuple[int, J] | None
) -> list[PlannedStart[J, P]]:
    """Who starts beside all for whom room is kept: the hope, if it can, and whoever is behind it."""
    starts: list[PlannedStart[J, P]] = []
    while hope is not None:
        turn, job = hope
        if (slot := ahead.now(job)) is not None:
            ahead.take(job, slot)
            starts.append(new_tuple(PlannedStart, (job, slot.placement)))
        hope = line.first(turn, ahead)
    return starts
