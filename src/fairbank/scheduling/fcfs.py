"""First come, first served: nobody starts before all ahead have started."""

from __future__ import annotations

from collections.abc import Iterable

from fairbank.scheduling.plan import RESOURCES, Plan, Start
from fairbank.scheduling.queue import InOrder
from fairbank.scheduling.snapshot import J, Snapshot


def fcfs(snapshot: Snapshot[J, InOrder[J]], now: int) -> Plan[J, int]:
    """Start from the head on until one does not fit. Nothing is planned for later, and the hour makes no difference."""
    starts, _, head = from_the_head(snapshot.queue, snapshot.free)
    return Plan(starts) if head is None else Plan(starts, reasons={head.number: RESOURCES})


def from_the_head(queue: Iterable[J], free: int) -> tuple[list[Start[J, int]], int, J | None]:
    """The first jobs that fit all together, what they leave free, and the one that then does not fit; None where everybody does."""
    starts: list[Start[J, int]] = []
    for job in queue:
        if job.processors > free:
            return starts, free, job
        free -= job.processors
        starts.append(Start(job, job.processors))
    return starts, free, None
