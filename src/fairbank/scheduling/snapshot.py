"""Input of a scheduling pass: machine, queue and running jobs.

A pass reads the snapshot and changes nothing: its plan depends only on the snapshot and the time.
The caller that applies the plan updates the snapshot, event by event, so that no pass collects it
again. J is a job as the machine knows it. P is its placement: a number of processors, or nodes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar


class NumberedJob(Protocol):
    """Attributes of a job that every pass needs. No other job has the same number."""

    @property
    def number(self) -> int: ...

    @property
    def submitted(self) -> int: ...


J = TypeVar("J", bound=NumberedJob)
P = TypeVar("P")
J_contra = TypeVar("J_contra", bound=NumberedJob, contravariant=True)
P_contra = TypeVar("P_contra", contravariant=True)

new_tuple = tuple.__new__
"""Create a named tuple from a tuple: `new_tuple(TimeSlot, (begin, end, placement))` takes half of
the time of `TimeSlot(begin, end, placement)`. For loops that create one tuple per job.
"""

FOR_EVER = 1 << 62
"""Larger than each time, number of processors and number of passes."""

Hole = tuple[int, int]
"""Number of processors that are free, and for how many seconds from now on."""


class RemainingHoles(NamedTuple):
    """Holes that a plan left of identical processors, as they were at the time `at`."""

    at: int
    holes: Sequence[Hole]


class RunningJob(NamedTuple, Generic[J, P]):
    """Job that runs since `started`, until `ends` at the latest. Lists are in the order of ends."""

    ends: int
    number: int
    placement: P
    job: J
    started: int


class Machine(Protocol[J_contra, P_contra]):
    """Free resources now: identical processors (`processors`) or nodes (`nodes`)."""

    def seconds(self, job: J_contra, placement: P_contra) -> int:
        """Return how long the job may keep the placement, at least 1 s."""
        ...

    def take(self, placement: P_contra) -> None:
        """Allocate a placement, which must be free."""
        ...

    def give(self, placement: P_contra) -> None:
        """Free a placement."""
        ...


class PendingQueue(Protocol[J]):
    """Pending jobs in a data structure that suits the policy."""

    def add(self, job: J) -> None:
        """Add a job that arrives."""
        ...

    def remove(self, job: J) -> None:
        """Remove a job that starts or was cancelled."""
        ...

    def jobs(self) -> Iterator[J]:
        """Return all jobs, also those that may not start."""
        ...


M = TypeVar("M", bound=Machine[Any, Any])
Q = TypeVar("Q", bound=PendingQueue[Any])


class Snapshot(Generic[J, P, M, Q]):
    """State of a machine: free resources, pending jobs, and running jobs in the order of their
    latest ends.

    `unchanged_up_to`: no job up to this position can start, because a pass left them waiting and no
    job ended since. -1 if positions change from pass to pass, as with priorities.
    `remaining_holes`: what that pass left of the processors beside its reservations, so that the
    next pass looks at new jobs only. None: the next pass plans from the start.
    """

    __slots__ = ("machine", "queue", "remaining_holes", "running", "unchanged_up_to")

    def __init__(self, machine: M, queue: Q) -> None:
        self.machine = machine
        self.queue = queue
        self.running: list[RunningJob[J, P]] = []
        self.unchanged_up_to = -1
        self.remaining_holes: RemainingHoles | None = None

    def start(self, job: J, placement: P, now: int) -> RunningJob[J, P]:
        """Start a job of the queue. Return what `end` needs.

        Args:
            job: job to remove from the queue.
            placement: free resources that it gets.
            now: start in seconds; the job ends after its time limit at the latest.
        """
        self.queue.remove(job)
        return self.begin(job, placement, now)

    def begin(self, job: J, placement: P, now: int) -> RunningJob[J, P]:
        """Start a job that never was in the queue. Return what `end` needs.

        Args:
            job: job that starts.
            placement: free resources that it gets.
            now: start in seconds; the job ends after its time limit at the latest.
        """
        running = new_tuple(
            RunningJob,
            (now + self.machine.seconds(job, placement), job.number, placement, job, now),
        )
        insort(self.running, running)
        self.machine.take(placement)
        return running

    def end(self, running: RunningJob[J, P]) -> None:
        """End a running job, before or at its expected end."""
        del self.running[bisect_left(self.running, running)]
        self.machine.give(running.placement)
        self.unchanged_up_to, self.remaining_holes = -1, None
