"""What a pass may look at: who waits, who runs until when, and what is free. Here of identical processors; nodes are another machine.

A pass reads the snapshot and changes nothing: its plan is a function of what the snapshot holds and of the time. Whoever carries
the plan out tells the snapshot, from event to event, so that nothing is gathered anew for each pass.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar


class Waiting(Protocol):
    """A job that waits for identical processors. How long it will really run is for nobody to know."""

    @property
    def number(self) -> int:
        """Its place in the order of the queue: less goes first. No two jobs have the same."""
        ...

    @property
    def processors(self) -> int: ...

    @property
    def limit(self) -> int:
        """Seconds that it may run, at least 1."""
        ...

    @property
    def partition(self) -> int: ...


J = TypeVar("J", bound=Waiting)


class Queue(Protocol[J]):
    """The waiting jobs, kept in a manner that suits the policy."""

    def add(self, job: J) -> None:
        """Somebody comes; in the order of the queue behind all that were here before."""
        ...

    def remove(self, job: J) -> None:
        """It starts, or was taken back."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[J]:
        """In the order of the queue."""
        ...


Q = TypeVar("Q", bound=Queue[Any])

Running = tuple[int, int, int]
"""When a job is expected to end (its start and its limit), how many processors it has, its number."""


class Snapshot(Generic[J, Q]):
    """`size` identical processors, how many of them are `free`, the `queue`, and the `running` jobs in the order of their expected ends.

    `settled`: nobody up to this number can start, since a pass left them waiting and nobody ended since.
    """

    __slots__ = ("free", "queue", "running", "settled", "size")

    def __init__(self, size: int, queue: Q) -> None:
        self.size = self.free = size
        self.queue = queue
        self.running: list[Running] = []
        self.settled = -1

    def start(self, job: J, now: int) -> Running:
        """Somebody who waited runs. Returns what `end` is to be told."""
        self.queue.remove(job)
        running = (now + job.limit, job.processors, job.number)
        insort(self.running, running)
        self.free -= job.processors
        return running

    def end(self, running: Running) -> None:
        """It ended, whenever it was expected to."""
        del self.running[bisect_left(self.running, running)]
        self.free += running[1]
        self.settled = -1
