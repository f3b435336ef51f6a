"""First come, first served: nobody starts before all ahead have started."""

from __future__ import annotations

from typing import Any

from fairbank.scheduling.machine import J, P
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, Plan, Start
from fairbank.scheduling.snapshot import Snapshot


def fcfs(snapshot: Snapshot[J, P, Any], now: int) -> Plan[J, P]:
    """Start from the head on until one does not fit. Nothing is planned for later. Whoever could never fit is in nobody's way."""
    machine, line = snapshot.machine.copy(), snapshot.queue.line(now)
    starts: list[Start[J, P]] = []
    reasons = dict(line.reasons)
    for _, job in line:
        placement = machine.place(job, now)
        if placement is not None:
            machine.take(placement)
            starts.append(Start(job, placement))
        elif machine.ever(job):
            reasons[job.number] = RESOURCES
            break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    return Plan(starts, (), reasons)
