"""Schedulers of a simulation: the queue that suits a policy, and the passes that are due."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from fairbank.scheduling.machines.processor_queue import QueueOrder
from fairbank.scheduling.machines.processors import Processors
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.snapshot import FOR_EVER, PendingQueue, RunningJob, Snapshot
from fairbank.simulator.traces.workload import TraceJob


class JobQueue(PendingQueue[TraceJob], Protocol):
    """Queue that knows when a pass would be in vain."""

    @property
    def min_processors(self) -> int:
        """Return a number of processors that no pending job is below."""
        ...

    def __len__(self) -> int: ...

    def order(self, now: int) -> QueueOrder[TraceJob]:
        """Return the jobs in order."""
        ...


OnProcessors = Snapshot[TraceJob, int, Processors[TraceJob], JobQueue]
Pass = Callable[[OnProcessors, int], SchedulePlan[TraceJob, int]]


class SimulationScheduler(Protocol):
    """Scheduler of one simulation. It may have state."""

    @property
    def queue(self) -> JobQueue: ...

    @property
    def is_stateful(self) -> bool:
        """Return True if the scheduler must be notified of ends and woken.

        A pass of any other depends on the snapshot only: no job that it left waiting can start
        before a job ends.
        """
        ...

    def order(self, snapshot: OnProcessors, now: int) -> QueueOrder[TraceJob]:
        """Return the pending jobs in the order in which a pass would test them."""
        ...

    def passes(self, now: int, *, has_event: bool) -> Iterable[Pass]:
        """Yield the passes that are due now, one after the other. `has_event`: a job arrived or
        ended.
        """
        ...

    def next_wake(self, now: int) -> int:
        """Return the time, after now, at which a pass is due while jobs wait and nothing
        happens.
        """
        ...

    def record_end(self, running: RunningJob[TraceJob, int], now: int) -> None: ...

    def approve_start(self, job: TraceJob, now: int) -> bool:
        """Return True if a job with no job ahead may start as it arrives; else it is removed.
        Called only if `is_stateful`.
        """
        ...

    def take_refused_processors(self) -> int:
        """Return how many processors the jobs wanted that left the queue in the last passes without
        a start. Called only if `is_stateful`.
        """
        ...

    def copy(self) -> SimulationScheduler:
        """Return a copy with an empty queue."""
        ...


class PassAtEvents:
    """Scheduler with one pass at each event."""

    is_stateful = False

    def __init__(self, queue: Callable[[], JobQueue], pass_: Pass) -> None:
        self.queue = queue()
        self._queue, self._passes = queue, (pass_,)

    def order(self, snapshot: OnProcessors, now: int) -> QueueOrder[TraceJob]:
        return snapshot.queue.order(now)

    def passes(self, now: int, *, has_event: bool) -> Iterable[Pass]:
        return self._passes

    def next_wake(self, now: int) -> int:
        return FOR_EVER

    def record_end(self, running: RunningJob[TraceJob, int], now: int) -> None: ...

    def approve_start(self, job: TraceJob, now: int) -> bool:
        return True

    def take_refused_processors(self) -> int:
        return 0

    def copy(self) -> PassAtEvents:
        return PassAtEvents(self._queue, self._passes[0])
