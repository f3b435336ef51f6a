"""Who decides in a simulation: the queue that suits a policy, and which passes are due when."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from fairbank.scheduling.machines.machine import FOR_EVER, RunningJob
from fairbank.scheduling.machines.processors import Processors
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.snapshot import PendingQueue, QueueOrder, Snapshot
from fairbank.simulator.traces.workload import TraceJob

OnProcessors = Snapshot[TraceJob, int, Processors[TraceJob]]
Pass = Callable[[OnProcessors, int], SchedulePlan[TraceJob, int]]


class JobQueue(PendingQueue[TraceJob], Protocol):
    """A queue that knows when a pass would be in vain."""

    @property
    def narrowest(self) -> int:
        """Nobody who waits wants fewer processors."""
        ...


class SimulationScheduler(Protocol):
    """One of these is made for each simulation, and may remember."""

    @property
    def queue(self) -> JobQueue: ...

    @property
    def attends(self) -> bool:
        """Whether it is to be told of ends and woken. Where not, a pass decides by what it sees, and nobody whom it left can start until
        somebody ends."""
        ...

    def line(self, snapshot: OnProcessors, now: int) -> QueueOrder[TraceJob]:
        """Who waits, in the order in which a pass would come to them."""
        ...

    def passes(self, now: int, *, event: bool) -> Iterable[Pass]:
        """Those that are due now, one after the other. `event`: somebody came or ended."""
        ...

    def wake(self, now: int) -> int:
        """When a pass is next due if nothing happens, while somebody waits: after now."""
        ...

    def ended(self, running: RunningJob[TraceJob, int], now: int) -> None: ...

    def admits(self, job: TraceJob, now: int) -> bool:
        """Whether a job that nobody is ahead of may start as it comes; else it is gone. Asked of those that attend."""
        ...

    def turned_away(self) -> int:
        """How many processors those wanted who left the queue in the passes just now, without a start. Asked of those that attend."""
        ...

    def copy(self) -> SimulationScheduler:
        """The same with nobody in its queue."""
        ...


class PassAtEvents:
    """One pass at each event."""

    attends = False

    def __init__(self, queue: Callable[[], JobQueue], pass_: Pass) -> None:
        self.queue = queue()
        self._queue, self._passes = queue, (pass_,)

    def line(self, snapshot: OnProcessors, now: int) -> QueueOrder[TraceJob]:
        return snapshot.queue.line(now)

    def passes(self, now: int, *, event: bool) -> Iterable[Pass]:
        return self._passes

    def wake(self, now: int) -> int:
        return FOR_EVER

    def ended(self, running: RunningJob[TraceJob, int], now: int) -> None: ...

    def admits(self, job: TraceJob, now: int) -> bool:
        return True

    def turned_away(self) -> int:
        return 0

    def copy(self) -> PassAtEvents:
        return PassAtEvents(self._queue, self._passes[0])
