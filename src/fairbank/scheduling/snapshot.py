"""Input of a scheduling pass: machine, queue and running jobs.

A pass reads the snapshot and changes nothing: its plan depends only on the snapshot and the time.
The caller that applies the plan updates the snapshot, event by event, so that no pass collects it
again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import (
    J,
    Machine,
    NumberedJob,
    P,
    RemainingHoles,
    RunningJob,
    SlotsNow,
)

J_co = TypeVar("J_co", bound=NumberedJob, covariant=True)


class QueueOrder(Protocol[J_co]):
    """Pending jobs that may start, in the order of the queue, each with its position. Lower
    positions go first.
    """

    @property
    def reasons(self) -> Mapping[int, str]:
        """Return Slurm's reason of each job that may not start, by its number."""
        ...

    def __iter__(self) -> Iterator[tuple[int, J_co]]: ...

    def by_partition(self) -> Iterable[Iterator[tuple[int, J_co]]]:
        """Return the order of each partition. A job that may run in several is in the order of
        each, as a job of that partition only.
        """
        ...

    def first_that_fits(self, after: int, profile: SlotsNow[J_co, Any]) -> tuple[int, J_co] | None:
        """Return the first job behind position `after` that could start now without delaying a
        reservation.
        """
        ...


class PendingQueue(Protocol[J]):
    """Pending jobs in a data structure that suits the policy."""

    def add(self, job: J) -> None:
        """Add a job that arrives."""
        ...

    def remove(self, job: J) -> None:
        """Remove a job that starts or was cancelled."""
        ...

    def __len__(self) -> int: ...

    def jobs(self) -> Iterator[J]:
        """Return all jobs, also those that may not start."""
        ...

    def order(self, now: int) -> QueueOrder[J]:
        """Return the jobs that may start now, in order."""


M = TypeVar("M", bound=Machine[Any, Any])


class Snapshot(Generic[J, P, M]):
    """State of a machine: free resources, pending jobs, and running jobs in the order of their
    latest ends.

    `unchanged_up_to`: no job up to this position can start, because a pass left them waiting and no
    job ended since. -1 if positions change from pass to pass, as with priorities.
    `remaining_holes`: what that pass left of the machine beside its reservations, so that the next
    pass looks at new jobs only. None: the next pass plans from the start.
    """

    __slots__ = ("machine", "queue", "remaining_holes", "running", "unchanged_up_to")

    def __init__(self, machine: M, queue: PendingQueue[J]) -> None:
        self.machine = machine
        self.queue = queue
        self.running: list[RunningJob[J, P]] = []
        self.unchanged_up_to = -1
        self.remaining_holes: RemainingHoles | None = None

    def start(self, job: J, placement: P, now: int) -> RunningJob[J, P]:
        """Start a job of the queue. Return what `end` needs."""
        self.queue.remove(job)
        return self.begin(job, placement, now)

    def begin(self, job: J, placement: P, now: int) -> RunningJob[J, P]:
        """Start a job that never was in the queue."""
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
