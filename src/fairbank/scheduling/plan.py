"""Plan of a scheduling pass: jobs to start now, reservations, and reasons of the jobs that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from fairbank.scheduling.snapshot import RemainingHoles, new_tuple

J = TypeVar("J")
"""Job of the queue, as the scheduler sees it."""
P = TypeVar("P")
"""Placement of a job: a number of identical processors, or nodes."""

RESOURCES, PRIORITY = "Resources", "Priority"
"""Slurm's reasons if too little is free, and if another job is ahead."""
BAD_CONSTRAINTS, NEVER_TESTED = "BadConstraints", "None"
"""Reasons of a job that could never fit, and of one that no pass has tested."""
LICENSES = "Licenses"
"""Reason if too few licenses are free."""


class PlannedStart(NamedTuple, Generic[J, P]):
    """Job that starts now, with its placement."""

    job: J
    placement: P


class JobReservation(NamedTuple, Generic[J, P]):
    """Reservation of a placement for a job, from `at` on.

    It holds if all running jobs use their whole time limit. It is no promise: each pass plans
    again.
    """

    job: J
    at: int
    placement: P


class SchedulePlan(NamedTuple, Generic[J, P]):
    """Result of a pass: starts in the order of the decisions, and reservations in the order of the
    queue.

    `remaining_holes` is what the plan leaves of the machine, if the next pass may continue from it
    (`Snapshot.remaining_holes`). `reasons` has Slurm's reason of each job, by its number, of which
    a pass over nodes knows more than `default_reason`, the reason of all others: a pass that tests
    few of thousands of jobs does not list all. `backfilled` are the numbers of the jobs that a pass
    of backfill starts, where a plan is of both passes.
    """

    starts: Sequence[PlannedStart[J, P]] = ()
    reservations: Sequence[JobReservation[J, P]] = ()
    reasons: Mapping[int, str] = {}
    default_reason: str = PRIORITY
    remaining_holes: RemainingHoles | None = None
    backfilled: frozenset[int] = frozenset()

    def reason(self, number: int) -> str:
        """Return Slurm's reason why a job that does not start waits."""
        return self.reasons.get(number, self.default_reason)


def make_plan(
    starts: Sequence[PlannedStart[J, P]],
    reservations: Sequence[JobReservation[J, P]],
    remaining_holes: RemainingHoles | None = None,
) -> SchedulePlan[J, P]:
    """Return a plan in half of the time of `SchedulePlan(...)`: one at nearly each event.

    Args:
        starts: jobs that start now, in the order of the decisions.
        reservations: reservations in the order of the queue.
        remaining_holes: holes that the plan leaves, if the next pass may continue from them.
    """
    return new_tuple(
        SchedulePlan, (starts, reservations, {}, PRIORITY, remaining_holes, frozenset())
    )
