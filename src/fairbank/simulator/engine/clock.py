"""The clock of a simulation: time goes from event to event, and the same pass decides that decides live.

At one instant first all completions, then all arrivals, then one pass. Nothing is drawn: the same jobs give the same schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush

from fairbank.scheduling.machines.machine import FOR_EVER, RunningJob
from fairbank.scheduling.machines.processors import Processors
from fairbank.scheduling.snapshot import Snapshot
from fairbank.simulator.engine.scheduler import OnProcessors, SimulationScheduler
from fairbank.simulator.traces.workload import TraceJob

Moment = tuple[int, list[TraceJob]]
"""An instant, and who starts then: at least one."""


class SimulationClock:
    """A machine of `size` identical processors under a scheduler, from its first job on.

    `lost` are the processor-seconds so far in which a processor was idle although somebody waited who wanted as many.
    """

    def __init__(self, size: int, scheduler: SimulationScheduler) -> None:
        self._scheduler = scheduler
        self._snapshot: OnProcessors = Snapshot(Processors(size), scheduler.queue)
        self._ends: list[tuple[int, RunningJob[TraceJob, int]]] = []
        self.lost = 0

    def run(
        self, jobs: Iterable[TraceJob], arrived: Callable[[TraceJob], None] | None = None
    ) -> Iterator[Moment]:
        """Every instant at which somebody starts, in order. The jobs come in the order of the queue, and are taken as they come: no more
        of them are held than wait or run at one time.

        `arrived` is told of each job when all who came before it are in the queue, and nobody else.
        """
        snapshot, ends, scheduler = self._snapshot, self._ends, self._scheduler
        machine, queue, attends, passes = (
            snapshot.machine,
            scheduler.queue,
            scheduler.attends,
            scheduler.passes,
        )
        submit, start, begin, end = queue.add, snapshot.start, snapshot.begin, snapshot.end
        coming = iter(jobs)
        job = next(coming, None)
        arrival = FOR_EVER if job is None else job.submitted
        wanted, idle, now, last = sum(each.processors for each in queue.jobs()), 0, 0, -1
        wake = FOR_EVER
        while job is not None or ends or wake < FOR_EVER:
            before, now = now, arrival
            if ends and ends[0][0] <= now:
                now = ends[0][0]
            event = now <= wake
            if not event:
                now = wake
            while ends and ends[0][0] == now:
                _, running = heappop(ends)
                end(running)
                if attends:
                    scheduler.ended(running, now)
            if idle:
                self.lost += idle * (now - before)
            narrowest = FOR_EVER
            while job is not None and arrival == now:
                if arrived is not None:
                    arrived(job)
                newcomer, job = job, next(coming, None)
                arrival = FOR_EVER if job is None else job.submitted
                last = newcomer.number
                if (
                    not wanted and arrival > now and newcomer.processors <= machine.free
                ):  # nobody is there whom it could delay
                    if attends and not scheduler.admits(newcomer, now):
                        break
                    heappush(ends, (now + newcomer.run, begin(newcomer, newcomer.processors, now)))
                    yield now, [newcomer]
                    break
                submit(newcomer)
                wanted += newcomer.processors
                if newcomer.processors < narrowest:
                    narrowest = newcomer.processors
            if wanted and (
                attends
                or ((queue.narrowest if snapshot.settled < 0 else narrowest) <= machine.free)
            ):
                begun: list[TraceJob] = []
                for pass_ in passes(now, event=event):
                    plan = pass_(snapshot, now)
                    if not attends:
                        snapshot.left = plan.left
                    for each, processors in plan.starts:
                        heappush(ends, (now + each.run, start(each, processors, now)))
                        wanted -= processors
                        begun.append(each)
                if begun:
                    yield now, begun
            if attends:
                wanted -= scheduler.turned_away()
                wake = scheduler.wake(now) if wanted else FOR_EVER
            else:
                snapshot.settled = last  # nobody can start until somebody ends
            idle = min(machine.free, wanted)

    def start_without_later(self, job: TraceJob) -> int:
        """When a job that arrives now would start if nobody came after it. Nothing changes here."""
        here = self._snapshot
        other = SimulationClock(here.machine.size, self._scheduler.copy())
        other._ends = self._ends.copy()
        other._snapshot.running = here.running.copy()
        other._snapshot.machine.free = here.machine.free
        for each in here.queue.jobs():
            other._snapshot.queue.add(each)
        return next(at for at, starts in other.run((job,)) if job in starts)
