"""First come, first served: no job starts before all ahead have started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairbank.scheduling.machines.machine import J, Machine, P
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, PlannedStart, SchedulePlan
from fairbank.scheduling.snapshot import QueueOrder, Snapshot


def fcfs(snapshot: Snapshot[J, P, Any], now: int) -> SchedulePlan[J, P]:
    """Start jobs from the head on until one does not fit. A job that could never fit blocks none.
    There are no reservations.
    """
    return start_in_order(snapshot.queue.order(now), snapshot.machine.copy(), now)


def start_in_order(
    order: QueueOrder[J],
    machine: Machine[J, P],
    now: int,
    is_blocking: Callable[[J], bool] | None = None,
) -> SchedulePlan[J, P]:
    """Start jobs in order until a blocking one does not fit.

    Args:
        order: pending jobs in order.
        machine: machine that loses what the started jobs take.
        now: time in seconds.
        is_blocking: function that returns True for a job that blocks those behind if it does not
            fit; None: each does.
    """
    starts: list[PlannedStart[J, P]] = []
    reasons = dict(order.reasons)
    for _, job in order:
        placement = machine.place(job, now)
        if placement is not None:
            machine.take(placement)
            starts.append(PlannedStart(job, placement))
        elif machine.can_ever_fit(job):
            reasons[job.number] = RESOURCES
            if is_blocking is None or is_blocking(job):
                break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    return SchedulePlan(starts, (), reasons)
