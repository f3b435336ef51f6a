"""Clock of a simulation, and its schedulers: the jobs of a trace are replayed on a machine under a
scheduler, which has a queue and says which passes are due.

The passes are those that decide on a cluster. Nothing is random: the same jobs give the same
schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappush
from typing import Protocol

from fairbank.scheduling.event_loop import EventLoop
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
ProcessorPass = Callable[[OnProcessors, int], SchedulePlan[TraceJob, int]]


class SimulationScheduler:
    """Scheduler of one simulation, by default without state.

    A stateful scheduler must be notified of ends and woken. A pass of any other depends on the
    snapshot only: no job that it left waiting can start before a job ends.
    """

    queue: JobQueue
    is_stateful = False

    def order(self, snapshot: OnProcessors, now: int) -> Iterable[tuple[int, TraceJob]]:
        """Return the pending jobs in the order in which a pass would test them."""
        return self.queue.order(now)

    def passes(self, now: int, *, has_event: bool) -> Iterable[ProcessorPass]:
        """Yield the passes that are due now. `has_event`: a job arrived or ended."""
        raise NotImplementedError

    def next_wake(self, now: int) -> int:
        """Return the next time at which a pass is due while jobs wait and nothing happens."""
        return FOR_EVER

    def count_skipped(self, until: int) -> None:
        """Count the passes up to a time that were due and left out because they start nothing."""

    def record_end(self, running: RunningJob[TraceJob, int], now: int) -> None:
        """Record a job that ended now."""

    def approve_start(self, job: TraceJob, now: int) -> bool:
        """Return True if a job with no job ahead may start; else it is removed."""
        return True

    def take_refused_processors(self) -> int:
        """Return the processors of jobs that left the queue without a start since the last call."""
        return 0

    def copy(self) -> SimulationScheduler:
        """Return a copy with an empty queue."""
        raise NotImplementedError


class PassAtEvents(SimulationScheduler):
    """Scheduler with one pass at each event."""

    def __init__(self, queue: Callable[[], JobQueue], pass_: ProcessorPass) -> None:
        self.queue = queue()
        self._queue, self._passes = queue, (pass_,)

    def passes(self, now: int, *, has_event: bool) -> Iterable[ProcessorPass]:
        return self._passes

    def copy(self) -> PassAtEvents:
        return PassAtEvents(self._queue, self._passes[0])


JobStarts = tuple[int, list[TraceJob]]
"""Time, and the jobs that start then: at least one."""


class SimulationClock:
    """Machine of `size` identical processors under a scheduler, from its first job on.

    `lost` counts the processor-seconds in which a processor was idle although the jobs that waited
    wanted as many. `loop` has the events to come.
    """

    def __init__(self, size: int, scheduler: SimulationScheduler) -> None:
        self.scheduler = scheduler
        self.snapshot: OnProcessors = Snapshot(Processors(size), scheduler.queue)
        self.loop = EventLoop(
            self.snapshot, scheduler.record_end if scheduler.is_stateful else None
        )
        self.lost = 0

    def run(
        self, jobs: Iterable[TraceJob], on_arrival: Callable[[TraceJob], None] | None = None
    ) -> Iterator[JobStarts]:
        """Yield the time of each start, in order, with the jobs that start then.

        Args:
            jobs: in the order of their submit times. They are read one ahead, so that memory holds
                only the jobs that wait or run at one time.
            on_arrival: called with each job while only the jobs before it are in the queue.
        """
        snapshot, scheduler, loop = self.snapshot, self.scheduler, self.loop
        machine, queue, attends = snapshot.machine, scheduler.queue, scheduler.is_stateful
        # Bound once: attribute lookups in this loop cost about a tenth of a simulation under EASY.
        # The passes stay in the loop: in a method of their own they cost 4 % more.
        passes, submit, start, ends = scheduler.passes, queue.add, snapshot.start, loop.ends
        wanted = sum(job.processors for job in queue.jobs())
        idle, before, last = 0, 0, -1
        for now, arrived in loop.events(jobs):
            if idle:
                self.lost += idle * (now - before)
            before, narrowest = now, FOR_EVER
            for job in arrived:
                if on_arrival is not None:
                    on_arrival(job)
                last = job.number
                # Only if no other job arrives in the same second: that job might come first in the
                # order of the queue, and the `break` below would leave it out.
                is_alone = not wanted and len(arrived) == 1
                if is_alone and job.processors <= machine.free:
                    # The queue is empty, so the job can delay no other: start it without a pass.
                    if not attends or scheduler.approve_start(job, now):
                        running = snapshot.begin(job, job.processors, now)
                        heappush(ends, (now + job.run, running))
                        yield now, arrived
                    break
                submit(job)
                wanted += job.processors
                if job.processors < narrowest:
                    narrowest = job.processors
            # Without `attends`, a pass is in vain if no job that it would look at fits.
            if wanted and (
                attends
                or (queue.min_processors if snapshot.unchanged_up_to < 0 else narrowest)
                <= machine.free
            ):
                started: list[TraceJob] = []
                for pass_ in passes(now, has_event=loop.has_event):
                    plan = pass_(snapshot, now)
                    if not attends:
                        snapshot.remaining_holes = plan.remaining_holes
                    for job, processors in plan.starts:
                        heappush(ends, (now + job.run, start(job, processors, now)))
                        wanted -= processors
                        started.append(job)
                if started:
                    yield now, started
            if attends:
                wanted -= scheduler.take_refused_processors()
                loop.wake = scheduler.next_wake(now) if wanted else FOR_EVER
            else:
                snapshot.unchanged_up_to = last  # no job up to here can start until a job ends
            idle = min(machine.free, wanted)

    def start_without_later(self, job: TraceJob) -> int:
        """Return when a job that arrives now would start if no job came after it."""
        other = SimulationClock(self.snapshot.machine.size, self.scheduler.copy())
        other.loop.ends = self.loop.ends.copy()
        other.snapshot.running = self.snapshot.running.copy()
        other.snapshot.machine.free = self.snapshot.machine.free
        for waiting in self.snapshot.queue.jobs():
            other.snapshot.queue.add(waiting)
        return next(now for now, starts in other.run((job,)) if job in starts)
