"""EASY backfill (D. A. Lifka, "The ANL/IBM SP Scheduling System", Job Scheduling Strategies for Parallel Processing, 1995).

Jobs start from the head of the queue. When the head does not fit, room is kept for it, and for it alone, from the first instant
(`shadow`) at which enough processors will be free if everybody uses the whole time limit; whatever of them it leaves over is
spare. Somebody behind starts now if it fits and delays the head by no second: it ends by then, or takes spare processors only.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge

from fairbank.scheduling.fcfs import from_the_head
from fairbank.scheduling.plan import RESOURCES, Plan, Planned, Start
from fairbank.scheduling.queue import ByWidth
from fairbank.scheduling.snapshot import J, Running, Snapshot


def easy(snapshot: Snapshot[J, ByWidth[J]], now: int) -> Plan[J, int]:
    """Start from the head on; keep room for the first who does not fit; fill the gap before it in the order of the queue."""
    starts, head = from_the_head(snapshot.queue, snapshot.free)
    if head is None:
        return Plan(starts)
    free = snapshot.free - sum(start.placement for start in starts)
    begun = sorted((now + start.job.limit, start.placement, start.job.number) for start in starts)
    running = merge(snapshot.running, begun) if begun else snapshot.running
    shadow, spare = shadow_of(head.processors, free, running)
    after = head.number
    while free and (job := snapshot.queue.fitting(after, free, shadow - now, spare)) is not None:
        after = job.number
        free -= job.processors
        if now + job.limit > shadow:
            spare -= job.processors
        starts.append(Start(job, job.processors))
    return Plan(starts, [Planned(head, shadow, head.processors)], {head.number: RESOURCES})


def shadow_of(wanted: int, free: int, running: Iterable[Running]) -> tuple[int, int]:
    """When so many processors are free, and how many more then are: all who are expected to end at that very second made room.

    `running` comes in the order of the expected ends, and ends with an empty machine, on which everybody fits.
    """
    shadow = 0
    for end, processors, _ in running:
        if free >= wanted and end > shadow:
            break
        free += processors
        shadow = end
    return shadow, free - wanted
