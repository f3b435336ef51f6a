"""FIFO with blocking in each partition, as SLURM began (M. Jette and M. Grondona, "SLURM: Simple Linux Utility for Resource Management",
2002): whoever fits starts, but as soon as one job of a partition does not, nobody behind it in that partition is looked at.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import Any

from fairbank.scheduling.machines.machine import J, P
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, PlannedStart, SchedulePlan
from fairbank.scheduling.snapshot import Snapshot


def fifo(snapshot: Snapshot[J, P, Any], now: int) -> SchedulePlan[J, P]:
    """Start the first of all partitions' heads, then the next, until every partition is blocked. Whoever could never fit blocks none."""
    machine, line = snapshot.machine.copy(), snapshot.queue.line(now)
    starts: list[PlannedStart[J, P]] = []
    begun: set[int] = set()
    reasons = dict(line.reasons)
    lines = list(line.lines())
    heads = [(turn, which, job) for which, each in enumerate(lines) for turn, job in (next(each),)]
    heapify(heads)
    while heads:
        _, which, job = heads[0]
        if job.number not in begun:  # from the line of another of its partitions
            placement = machine.place(job, now)
            if placement is not None:
                machine.take(placement)
                starts.append(PlannedStart(job, placement))
                begun.add(job.number)
                reasons.pop(job.number, None)
            elif machine.ever(job):
                reasons[job.number] = RESOURCES
                heappop(heads)
                continue
            else:
                reasons.setdefault(job.number, BAD_CONSTRAINTS)
        behind = next(lines[which], None)
        if behind is None:
            heappop(heads)
        else:
            heapreplace(heads, (behind[0], which, behind[1]))
    return SchedulePlan(starts, (), reasons)
