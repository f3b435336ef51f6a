"""First come, first served: nobody starts before all ahead have started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairbank.scheduling.machines.machine import (J, Machine, P)
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, Plan, Start
from fairbank.scheduling.snapshot import Line, Snapshot


def fcfs(snapshot: Snapshot[J, P, Any], now: int) -> Plan[J, P]:
    """Start from the head on until one does not fit. Nothing is planned for later. Whoever could never fit is in nobody's way."""
    return from_the_head(snapshot.queue.line(now), snapshot.machine.copy(), now)


def from_the_head(
    line: Line[J], machine: Machine[J, P], now: int, holds_up: Callable[[J], bool] | None = None
) -> Plan[J, P]:
    """The same for any line. What starts is taken from `machine`. `holds_up`: whether those behind wait for a job that does not fit."""
    starts: list[Start[J, P]] = []
    reasons = dict(line.reasons)
    for _, job in line:
        placement = machine.place(job, now)
        if placement is not None:
            machine.take(placement)
            starts.append(Start(job, placement))
        elif machine.ever(job):
            reasons[job.number] = RESOURCES
            if holds_up is None or holds_up(job):
                break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    return Plan(starts, (), reasons)
