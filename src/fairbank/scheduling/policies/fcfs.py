"""First come, first served: nobody starts before all ahead have started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairbank.scheduling.machines.machine import J, Machine, P
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, PlannedStart, SchedulePlan
from fairbank.scheduling.snapshot import QueueOrder, Snapshot


def fcfs(snapshot: Snapshot[J, P, Any], now: int) -> SchedulePlan[J, P]:
    """Start from the head on until one does not fit. Nothing is planned for later. Whoever could never fit is in nobody's way."""
    return start_in_order(snapshot.queue.line(now), snapshot.machine.copy(), now)


def start_in_order(
    line: QueueOrder[J],
    machine: Machine[J, P],
    now: int,
    holds_up: Callable[[J], bool] | None = None,
) -> SchedulePlan[J, P]:
    """The same for any line. What starts is taken from `machine`. `holds_up`: whether those behind wait for a job that does not fit."""
    starts: list[PlannedStart[J, P]] = []
    reasons = dict(line.reasons)
    for _, job in line:
        placement = machine.place(job, now)
        if placement is not None:
            machine.take(placement)
            starts.append(PlannedStart(job, placement))
        elif machine.ever(job):
            reasons[job.number] = RESOURCES
            if holds_up is None or holds_up(job):
                break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    return SchedulePlan(starts, (), reasons)
