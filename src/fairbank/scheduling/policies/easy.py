"""EASY backfill (D. A. Lifka, "The ANL/IBM SP Scheduling System", Job Scheduling Strategies for
Parallel Processing, 1995).

Jobs start from the head of the queue. A head that does not fit gets the only reservation, at the
first time at which it will fit if all running jobs use their whole time limit. A job behind starts
now if it fits and does not delay the head: it ends before the reservation, or takes processors that
the head leaves.
"""

from __future__ import annotations

from typing import Any

from fairbank.scheduling.machines.holes import Holes
from fairbank.scheduling.machines.machine import J, P
from fairbank.scheduling.plan import PlannedStart, SchedulePlan, make_plan
from fairbank.scheduling.policies.reserving import plan_with_reservations, start_in_holes
from fairbank.scheduling.snapshot import Snapshot


def easy(snapshot: Snapshot[J, P, Any], now: int, *, fully: bool = False) -> SchedulePlan[J, P]:
    """Start jobs from the head on, reserve for the first that does not fit, and fill the hole
    before it in the order of the queue.

    If no job could fill the hole, the reservation is in the plan only with `fully`. If no job ended
    since the reservation was made, only new jobs are tested.
    """
    line, machine = snapshot.queue.order(now), snapshot.machine
    if snapshot.remaining_holes is not None and not fully:
        gaps: Holes[Any] = Holes(snapshot.remaining_holes, now)
        starts: list[PlannedStart[Any, Any]] = start_in_holes(
            line, gaps, line.first_that_fits(snapshot.unchanged_up_to, gaps)
        )
        return make_plan(starts, (), {}, gaps.remaining())
    return plan_with_reservations(
        line,
        machine,
        machine.ahead(snapshot.running, now),
        now,
        max_reservations=1,
        is_complete=fully,
        unchanged_up_to=snapshot.unchanged_up_to,
    )
