"""What a policy needs of a machine, whatever it is made of: processors that are all alike (`processors`), or nodes (`nodes`).

J is a job as the machine knows it, P what such a job is given: a number of processors, or a placement on nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar


class NumberedJob(Protocol):
    """All that every policy asks of a job."""

    @property
    def number(self) -> int:
        """No two jobs have the same."""
        ...

    @property
    def submitted(self) -> int:
        """Submit time in seconds."""
        ...


J = TypeVar("J", bound=NumberedJob)
P = TypeVar("P")
J_contra = TypeVar("J_contra", bound=NumberedJob, contravariant=True)

FOR_EVER = 1 << 62
"""Later than any instant."""

Gap = tuple[int, int]
"""So many processors are free for so many seconds from now on."""


class TimeSlot(NamedTuple, Generic[P]):
    """Something is a job's from `begin` until just before `end`."""

    begin: int
    end: int
    placement: P


class RunningJob(NamedTuple, Generic[J, P]):
    """A job that runs, since `started` and until `ends` at the latest. They are kept in the order of these ends."""

    ends: int
    number: int
    placement: P
    job: J
    started: int


class Machine(Protocol[J, P]):
    """What is free now. Instants are seconds since whatever the snapshot counts from."""

    def place(self, job: J, now: int) -> P | None:
        """What the job would be given if it started now, for all the time that it may run; None where it does not fit."""
        ...

    def ever(self, job: J) -> bool:
        """Whether it would fit if nobody else were there."""
        ...

    def seconds(self, job: J, placement: P) -> int:
        """How long the job may keep it, at least 1."""
        ...

    def take(self, placement: P) -> None:
        """It is somebody's. It must be free: whoever takes asks `place` first."""
        ...

    def give(self, placement: P) -> None:
        """It is nobody's any more."""
        ...

    def copy(self) -> Self:
        """The same, to be played with."""
        ...

    def ahead(self, running: Sequence[RunningJob[J, P]], now: int) -> Profile[J, P]:
        """The machine from now on, if those who run use all their time. `running` comes in the order of their ends."""
        ...


class StartsNow(Protocol[J_contra, P]):
    """Who could start now, beside all for whom room is kept later."""

    def now(self, job: J_contra) -> TimeSlot[P] | None:
        """What the job gets if it starts now, and nobody is in its way until it ends; None where somebody is."""
        ...

    def take(self, job: J_contra, slot: TimeSlot[P]) -> None:
        """Keep it for the job. It must be free: whoever takes asks for it first."""
        ...

    def gaps(self) -> Sequence[Gap] | None:
        """What may be had from now on, the narrowest and longest gap first, which may last for ever.

        None where it takes more than two numbers to say that: then every job must be asked for by itself.
        """
        ...


class Profile(StartsNow[J_contra, P], Protocol[J_contra, P]):
    """A machine from now on: who runs ends by and by, and what is kept for somebody is nobody else's.

    Whoever should have ended by now is expected to do so within the next second, or when Slurm will have killed it: what it holds is not
    free.
    """

    def earliest(self, job: J_contra) -> TimeSlot[P] | None:
        """What the job gets at the first instant at which it can be had: now only where `now` has it. None where that never comes."""
        ...


class RemainingHoles(NamedTuple):
    """What a plan left of a machine: the gaps as they were `at` that instant."""

    at: int
    gaps: Sequence[Gap]
