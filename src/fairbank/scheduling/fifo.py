"""FIFO with blocking in each partition, as SLURM began (M. Jette and M. Grondona, "SLURM: Simple Linux Utility for Resource Management",
2002): whoever fits starts, but as soon as one job of a partition does not, nobody behind it in that partition is looked at.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

from fairbank.scheduling.plan import RESOURCES, Plan, Start
from fairbank.scheduling.queue import ByPartition
from fairbank.scheduling.snapshot import J, Snapshot


def fifo(snapshot: Snapshot[J, ByPartition[J]], now: int) -> Plan[J, int]:
    """Start the first of all partitions' heads, then the next, until every partition is blocked. The hour makes no difference."""
    starts: list[Start[J, int]] = []
    blocked: dict[int, str] = {}
    free = snapshot.free
    lines = [iter(line) for line in snapshot.queue.lines.values()]
    heads = [(job.number, which, job) for which, job in enumerate(map(next, lines))]
    heapify(heads)
    while heads:
        number, which, job = heads[0]
        if job.processors > free:
            blocked[number] = RESOURCES
            heappop(heads)
            continue
        free -= job.processors
        starts.append(Start(job, job.processors))
        behind = next(lines[which], None)
        if behind is None:
            heappop(heads)
        else:
            heapreplace(heads, (behind.number, which, behind))
    return Plan(starts, (), blocked)
