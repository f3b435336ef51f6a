"""What a pass decides: which jobs start and where, for whom room is kept and when, and why each other one waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import RemainingHoles

J = TypeVar("J")
"""A job of the queue, as the scheduler sees it."""
P = TypeVar("P")
"""What is given to a job: a number of identical processors, or nodes."""

RESOURCES, PRIORITY = "Resources", "Priority"
"""Slurm's words for the two reasons that every policy has: too little is free; somebody is ahead."""
BAD_CONSTRAINTS, NEVER_TESTED = "BadConstraints", "None"
"""And for a job that could never fit, and for one that no pass has come to."""
LICENCES = "Licenses"
"""Too few licences are free."""


class PlannedStart(NamedTuple, Generic[J, P]):
    """A job starts now, on its placement."""

    job: J
    placement: P


class Reservation(NamedTuple, Generic[J, P]):
    """Room is kept for a job from `at` on, if everybody who runs uses the whole time limit. No promise: each pass plans afresh."""

    job: J
    at: int
    placement: P


class SchedulePlan(NamedTuple, Generic[J, P]):
    """The outcome of a pass: starts in the order in which they were decided, and planned jobs in the order of the queue.

    `left` is what that leaves of the machine, where the next pass may go on from it (`Snapshot.left`).

    `reasons` has the reason, in Slurm's word, of each job (by its number) that a pass can say more of than `otherwise`, which is
    why all the others wait: a queue may be thousands deep, and a pass that looks at few of them is not to write of all.
    """

    starts: Sequence[PlannedStart[J, P]] = ()
    planned: Sequence[Reservation[J, P]] = ()
    reasons: Mapping[int, str] = {}
    otherwise: str = PRIORITY
    left: RemainingHoles | None = None

    def why(self, number: int) -> str:
        """Why a job waits that does not start."""
        return self.reasons.get(number, self.otherwise)


def make_plan(
    starts: Sequence[PlannedStart[J, P]],
    planned: Sequence[Reservation[J, P]],
    reasons: Mapping[int, str],
    left: RemainingHoles | None = None,
) -> SchedulePlan[J, P]:
    """A plan with these, in half of the time: a simulation makes one at nearly each event."""
    return new_tuple(SchedulePlan, (starts, planned, reasons, PRIORITY, left))
