"""What a pass may look at: a machine, who waits, and who runs there until when.

A pass reads the snapshot and changes nothing: its plan is a function of what the snapshot holds and of the time. Whoever carries
the plan out tells the snapshot, from event to event, so that nothing is gathered anew for each pass.
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
    StartsNow,
)

J_co = TypeVar("J_co", bound=NumberedJob, covariant=True)


class QueueOrder(Protocol[J_co]):
    """Those of the waiting jobs that may start, in the order of the queue, each with its turn: who goes first has the lesser one."""

    @property
    def reasons(self) -> Mapping[int, str]:
        """Why each other one may not, in Slurm's word, by the job's number."""
        ...

    def __iter__(self) -> Iterator[tuple[int, J_co]]: ...

    def lines(self) -> Iterable[Iterator[tuple[int, J_co]]]:
        """The same, for each partition its own. A job that may run in several is in the line of each, as one that wants that partition."""
        ...

    def first(self, after: int, ahead: StartsNow[J_co, Any]) -> tuple[int, J_co] | None:
        """The first behind turn `after` that could start now beside all for whom something is kept."""
        ...


class PendingQueue(Protocol[J]):
    """The waiting jobs, kept in a manner that suits the policy."""

    def add(self, job: J) -> None:
        """Somebody comes."""
        ...

    def remove(self, job: J) -> None:
        """It starts, or was taken back."""
        ...

    def __len__(self) -> int: ...

    def jobs(self) -> Iterator[J]:
        """Everybody, whether they may start or not."""
        ...

    def line(self, now: int) -> QueueOrder[J]: ...


M = TypeVar("M", bound=Machine[Any, Any])


class Snapshot(Generic[J, P, M]):
    """`machine` is what is free, `queue` who waits, `running` who runs, in the order of their ends.

    `settled`: nobody up to this turn can start, since a pass left them waiting and nobody ended since. -1 where turns change from pass
    to pass, as those of priorities do. `left`: what that pass left of the machine, with room for all for whom the policy keeps any, so
    that only newcomers are to be looked at. None: a pass plans afresh.
    """

    __slots__ = ("left", "machine", "queue", "running", "settled")

    def __init__(self, machine: M, queue: PendingQueue[J]) -> None:
        self.machine = machine
        self.queue = queue
        self.running: list[RunningJob[J, P]] = []
        self.settled = -1
        self.left: RemainingHoles | None = None

    def start(self, job: J, placement: P, now: int) -> RunningJob[J, P]:
        """Somebody who waited runs. Returns what `end` is to be told."""
        self.queue.remove(job)
        return self.begin(job, placement, now)

    def begin(self, job: J, placement: P, now: int) -> RunningJob[J, P]:
        """Somebody runs who never waited."""
        running = new_tuple(
            RunningJob,
            (now + self.machine.seconds(job, placement), job.number, placement, job, now),
        )
        insort(self.running, running)
        self.machine.take(placement)
        return running

    def end(self, running: RunningJob[J, P]) -> None:
        """It ended, whenever it was expected to."""
        del self.running[bisect_left(self.running, running)]
        self.machine.give(running.placement)
        self.settled, self.left = -1, None
