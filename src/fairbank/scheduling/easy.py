"""EASY backfill (D. A. Lifka, "The ANL/IBM SP Scheduling System", Job Scheduling Strategies for Parallel Processing, 1995).

Jobs start from the head of the queue. When the head does not fit, room is kept for it, and for it alone, from the first instant
(`shadow`) at which enough processors will be free if everybody uses the whole time limit; whatever of them it leaves over is
spare. Somebody behind starts now if it fits and delays the head by no second: it ends by then, or takes spare processors only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairbank.scheduling.fcfs import from_the_head
from fairbank.scheduling.plan import RESOURCES, Plan, Planned, Start
from fairbank.scheduling.profile import FOR_EVER, Gap
from fairbank.scheduling.queue import ByWidth
from fairbank.scheduling.snapshot import J, Running, Snapshot


def easy(snapshot: Snapshot[J, ByWidth[J]], now: int, *, fully: bool = False) -> Plan[J, int]:
    """Start from the head on; keep room for the first who does not fit; fill the gap before it in the order of the queue.

    Where nobody could fill the gap, the place of the head is told only if the plan is to be told `fully`.
    """
    starts, free, head = from_the_head(snapshot.queue, snapshot.free)
    if head is None:
        return Plan(starts)
    queue, after = snapshot.queue, max(head.number, snapshot.settled)
    if not (fully or queue.anybody(after, free)):
        return Plan(starts, (), {head.number: RESOURCES})
    running = snapshot.running
    if starts:
        running = sorted([*running, *((now + job.limit, processors, job.number) for job, processors in starts)])
    shadow, spare = shadow_of(head.processors, free, running)
    while free and (job := queue.fitting(after, _gaps(free, shadow - now, spare))) is not None:
        after = job.number
        free -= job.processors
        if now + job.limit > shadow:
            spare -= job.processors
        starts.append(Start(job, job.processors))
    return Plan(starts, (Planned(head, shadow, head.processors),), {head.number: RESOURCES})


def _gaps(free: int, seconds: int, spare: int) -> Sequence[Gap]:
    return ((spare, FOR_EVER), (free, seconds)) if spare < free else ((free, FOR_EVER),)


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
