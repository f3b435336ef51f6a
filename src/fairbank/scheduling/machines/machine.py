"""Interface between policies and machines: identical processors (`processors`) or nodes (`nodes`).

J is a job as the machine knows it. P is the placement of such a job: a number of processors, or
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar


class NumberedJob(Protocol):
    """Attributes of a job that every policy needs."""

    @property
    def number(self) -> int:
        """Return the number, which no other job has."""
        ...

    @property
    def submitted(self) -> int:
        """Return the submit time in seconds."""
        ...


J = TypeVar("J", bound=NumberedJob)
P = TypeVar("P")
J_contra = TypeVar("J_contra", bound=NumberedJob, contravariant=True)

FOR_EVER = 1 << 62
"""Time later than all others."""

Hole = tuple[int, int]
"""Number of processors that are free, and for how many seconds from now on."""


class TimeSlot(NamedTuple, Generic[P]):
    """Placement of a job from `begin` until just before `end`."""

    begin: int
    end: int
    placement: P


class RunningJob(NamedTuple, Generic[J, P]):
    """Job that runs since `started` and until `ends` at the latest. Lists of them are in the order
    of these ends.
    """

    ends: int
    number: int
    placement: P
    job: J
    started: int


class Machine(Protocol[J, P]):
    """Free resources now. Times are seconds from an origin that the snapshot chooses."""

    def place(self, job: J, now: int) -> P | None:
        """Return the placement if the job started now, for its whole time limit; None if it does
        not fit.
        """
        ...

    def can_ever_fit(self, job: J) -> bool:
        """Return True if the job would fit on the empty machine."""
        ...

    def seconds(self, job: J, placement: P) -> int:
        """Return how long the job may keep the placement, at least 1 s."""
        ...

    def take(self, placement: P) -> None:
        """Allocate a placement, which must be free."""
        ...

    def give(self, placement: P) -> None:
        """Free a placement."""
        ...

    def copy(self) -> Self:
        """Return a copy that can be changed by itself."""
        ...

    def profile(self, running: Sequence[RunningJob[J, P]], now: int) -> Profile[J, P]:
        """Return the machine over time if all running jobs use their whole limit. `running` is in
        the order of the ends.
        """
        ...


class SlotsNow(Protocol[J_contra, P]):
    """Slots that start now and delay no reservation."""

    def slot_now(self, job: J_contra) -> TimeSlot[P] | None:
        """Return the slot if the job starts now; None if it does not fit, or would delay a
        reservation.
        """
        ...

    def take(self, job: J_contra, slot: TimeSlot[P]) -> None:
        """Reserve a slot, which must be free, for the job."""
        ...

    def holes(self) -> Sequence[Hole] | None:
        """Return the free holes from now on, the narrowest and longest first, which may last for
        ever.

        None if two numbers cannot describe them. Each job must then be tested by itself.
        """
        ...


class Profile(SlotsNow[J_contra, P], Protocol[J_contra, P]):
    """Machine over time, as running jobs end and reservations begin.

    A job that should have ended already is expected to end within the next second, or when Slurm
    will have killed it. Its resources are not free until then.
    """

    def earliest_slot(self, job: J_contra) -> TimeSlot[P] | None:
        """Return the earliest slot of the job; now only if `slot_now` has it. None if there is none
        at any time.
        """
        ...


class RemainingHoles(NamedTuple):
    """Holes that a plan left of a machine, as they were at the time `at`."""

    at: int
    holes: Sequence[Hole]
