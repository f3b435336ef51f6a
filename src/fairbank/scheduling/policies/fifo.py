"""FIFO with blocking in each partition, as SLURM began (M. Jette and M. Grondona, "SLURM: Simple
Linux Utility for Resource Management", 2002).

Jobs that fit start. When a job of a partition does not fit, no job behind it in that partition is
tested.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import Any

from fairbank.scheduling.machines.machine import J, P
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, PlannedStart, SchedulePlan
from fairbank.scheduling.snapshot import Snapshot


def fifo(snapshot: Snapshot[J, P, Any], now: int) -> SchedulePlan[J, P]:
    """Start the first of the heads of all partitions, then the next, until each partition is
    blocked. A job that could never fit blocks none.
    """
    machine, line = snapshot.machine.copy(), snapshot.queue.order(now)
    starts: list[PlannedStart[J, P]] = []
    begun: set[int] = set()
    reasons = dict(line.reasons)
    lines = list(line.by_partition())
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
