"""Conservative backfill: room is kept for everybody, and nobody is delayed by somebody behind.

Each pass plans afresh in the order of the queue: a job gets the earliest place that those ahead leave. So the plan is a function of who
waits and who runs, and of nothing that was planned before. (A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed
Systems 12(6), 2001, compare it with EASY; they keep a job's place from one pass to the next, unless it can be moved forward.)
"""

from __future__ import annotations

from typing import Any

from fairbank.scheduling.machines.machine import J, P
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.policies.reserving import plan_with_reservations
from fairbank.scheduling.snapshot import Snapshot


def conservative(
    snapshot: Snapshot[J, P, Any], now: int, *, fully: bool = False
) -> SchedulePlan[J, P]:
    """Plan in the order of the queue, and start whoever has a place now.

    It ends where nobody behind can start now, whatever becomes of the others; with `fully` it plans them all.
    """
    line, machine = snapshot.queue.line(now), snapshot.machine
    return plan_with_reservations(
        line,
        machine,
        machine.ahead(snapshot.running, now),
        now,
        most=None,
        fully=fully,
        settled=snapshot.settled,
    )
