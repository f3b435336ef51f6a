"""Conservative backfill: room is kept for everybody, and nobody is delayed by somebody behind.

Each pass plans afresh in the order of the queue: a job gets the earliest place that those ahead leave. So the plan is a function of who
waits and who runs, and of nothing that was planned before. (A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed
Systems 12(6), 2001, compare it with EASY; they keep a job's place from one pass to the next, unless it can be moved forward.)
"""

from __future__ import annotations

from fairbank.scheduling.plan import RESOURCES, Plan, Planned, Start
from fairbank.scheduling.profile import FOR_EVER, Processors
from fairbank.scheduling.queue import ByWidth
from fairbank.scheduling.snapshot import J, Snapshot


def conservative(snapshot: Snapshot[J, ByWidth[J]], now: int, *, fully: bool = False) -> Plan[J, int]:
    """Plan in the order of the queue, and start whoever has a place now.

    It ends where nobody behind can start now, whatever becomes of the others; with `fully` it plans them all.
    """
    machine = Processors(snapshot.size, now, ((end, processors) for end, processors, _ in snapshot.running))
    starts: list[Start[J, int]] = []
    planned: list[Planned[J, int]] = []
    hope = _next_hope(snapshot.queue, machine, snapshot.settled)
    for job in snapshot.queue if fully or hope is not None else ():
        at, _ = machine.earliest(job.processors, job.limit, now) or (FOR_EVER, 0)
        machine.take(job.processors, at, at + job.limit)
        if at == now:
            starts.append(Start(job, job.processors))
        else:
            planned.append(Planned(job, at, job.processors))
        if job is hope:
            hope = _next_hope(snapshot.queue, machine, job.number)
            if hope is None and not fully:
                break
    return Plan(starts, planned, {each.job.number: RESOURCES for each in planned[:1]})


def _next_hope(queue: ByWidth[J], machine: Processors, after: int) -> J | None:
    """The first job behind number `after` that could start now beside those that run or have a place already."""
    gaps = machine.gaps()
    return queue.fitting(after, gaps) if gaps else None
