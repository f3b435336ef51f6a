"""Conservative backfill: each job has a reservation, and no job delays one before it.

Each pass plans again in the order of the queue: a job gets the earliest slot that those ahead
leave. The plan depends only on the pending and running jobs, not on earlier plans. (A. W. Mu'alem
and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, compare it with EASY.
They keep the slot of a job from one pass to the next, unless it can move forward.)
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
    """Plan in the order of the queue, and start each job whose slot is now.

    The plan ends where no job behind can start now; with `fully` it goes on until all jobs have a
    reservation.
    """
    line, machine = snapshot.queue.order(now), snapshot.machine
    return plan_with_reservations(
        line,
        machine,
        machine.ahead(snapshot.running, now),
        now,
        max_reservations=None,
        is_complete=fully,
        unchanged_up_to=snapshot.unchanged_up_to,
    )
