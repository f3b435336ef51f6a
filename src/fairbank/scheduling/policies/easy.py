"""EASY backfill (D. A. Lifka, "The ANL/IBM SP Scheduling System", Job Scheduling Strategies for Parallel Processing, 1995).

Jobs start from the head of the queue. When the head does not fit, room is kept for it, and for it alone, from the first instant at which
it will fit if everybody uses the whole time limit. Somebody behind starts now if it fits and delays the head by no second: it ends by
then, or takes what the head leaves over.
"""

from __future__ import annotations

from typing import Any

from fairbank.scheduling.machines.holes import Holes
from fairbank.scheduling.machines.machine import J, P
from fairbank.scheduling.plan import PlannedStart, SchedulePlan, make_plan
from fairbank.scheduling.policies.reserving import plan_with_reservations, start_in_holes
from fairbank.scheduling.snapshot import Snapshot


def easy(snapshot: Snapshot[J, P, Any], now: int, *, fully: bool = False) -> SchedulePlan[J, P]:
    """Start from the head on; keep room for the first who does not fit; fill the gap before it in the order of the queue.

    Where nobody could fill the gap, the place of the head is told only if the plan is to be told `fully`; and where nobody ended since room
    was kept for it, only newcomers are looked at.
    """
    line, machine = snapshot.queue.line(now), snapshot.machine
    if snapshot.left is not None and not fully:
        gaps: Holes[Any] = Holes(snapshot.left, now)
        starts: list[PlannedStart[Any, Any]] = start_in_holes(
            line, gaps, line.first(snapshot.settled, gaps)
        )
        return make_plan(starts, (), {}, gaps.left())
    return plan_with_reservations(
        line,
        machine,
        machine.ahead(snapshot.running, now),
        now,
        most=1,
        fully=fully,
        settled=snapshot.settled,
    )
