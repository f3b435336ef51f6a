"""How a simulation stands at an instant: who waits, who runs, and what had been seen by then; from there it can go on in other ways."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import NamedTuple

from fairbank.core.time import DAY
from fairbank.scheduling.explain.forward_simulation import (
    RunTimeModel,
    SimulatedStart,
    simulate_forward,
    whole_limit,
)
from fairbank.scheduling.explain.run_times import RunTimeHistory, RunTimeSampler
from fairbank.scheduling.machines.machine import FOR_EVER, RunningJob
from fairbank.scheduling.machines.processors import Processors
from fairbank.scheduling.snapshot import QueueOrder, Snapshot
from fairbank.simulator.engine.clock import Moment
from fairbank.simulator.engine.scheduler import JobQueue, OnProcessors, Pass, SimulationScheduler
from fairbank.simulator.traces.workload import TraceJob

HOUR, WEEK = 3_600, 7 * DAY
WEEKS = 8
"""So many weeks of arrivals are remembered."""
_NEWCOMERS = 1 << 40
"""Numbers that no job of a trace has."""


class SimulationState(NamedTuple):
    """Just after the pass at `at`. `running` and `waiting` come in the order of ends and of the queue; `came` are all who came of late."""

    at: int
    size: int
    running: list[RunningJob[TraceJob, int]]
    waiting: list[TraceJob]
    came: list[TraceJob]
    history: RunTimeHistory[int]
    scheduler: SimulationScheduler

    def begin(self, changed: TraceJob | None = None) -> tuple[OnProcessors, SimulationScheduler]:
        """The snapshot, to be used up, and who decides; with `changed` in the place of the job of its number."""
        scheduler = self.scheduler.copy()
        snapshot: OnProcessors = Snapshot(Processors(self.size), scheduler.queue)
        snapshot.running = list(self.running)
        for each in self.running:
            snapshot.machine.take(each.placement)
        for job in self.waiting:
            snapshot.queue.add(
                changed if changed is not None and changed.number == job.number else job
            )
        return snapshot, scheduler

    def in_full(self, job: TraceJob, most: int = FOR_EVER) -> int | None:
        """When this job, which may be changed, starts if everybody uses the whole time limit and nobody comes."""
        return self._rehearse(job, whole_limit, (), most).at

    def drawn(self, job: TraceJob, chance: Random, most: int = FOR_EVER) -> SimulatedStart:
        """The same with run times drawn from users' history, and with the arrivals of one of the last weeks."""
        luck = RunTimeSampler(self.history, chance)
        arrivals = self.arrivals(chance)

        def lasts(job: TraceJob, limit: int, elapsed: int) -> int:
            return luck.lasts(job.user, limit, elapsed)

        return self._rehearse(job, lasts, arrivals, most)

    def _rehearse(
        self,
        job: TraceJob,
        lasts: RunTimeModel[TraceJob],
        coming: Iterable[tuple[int, TraceJob]],
        most: int,
    ) -> SimulatedStart:
        snapshot, scheduler = self.begin(job)
        changed = job not in self.waiting
        return simulate_forward(
            snapshot,
            scheduler,
            self.at,
            job.number,
            lasts=lasts,
            coming=coming,
            event=changed,
            most=most,
        )

    def arrivals(self, chance: Random) -> Iterator[tuple[int, TraceJob]]:
        """Whoever came since this hour of this weekday in one of the last weeks comes again, and again. Where no whole week was seen, it is
        days; where no day was, hours."""
        spans = self._spans()
        if not spans:
            return
        span = chance.choice(spans)
        again = self.came[bisect_right(self.came, self.at - span, key=_submitted) :]
        if not again:
            return
        for turn in count():
            later, which = divmod(turn, len(again))
            job = again[which]
            at = job.submitted + (later + 1) * span
            yield at, job._replace(number=_NEWCOMERS + turn, submitted=at)

    def _spans(self) -> Sequence[int]:
        seen = self.at - (self.came[0].submitted if self.came else self.at)
        for unit, most in ((WEEK, WEEKS), (DAY, 6), (HOUR, 23)):
            if whole := min(seen // unit, most):
                return range(unit, (whole + 1) * unit, unit)
        return ()


def _submitted(job: TraceJob) -> int:
    return job.submitted


class StateTracker:
    """Follows a simulation from moment to moment. It holds no more jobs than wait, run, or came within eight weeks."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, int, RunningJob[TraceJob, int]]] = []
        self._waiting: dict[int, TraceJob] = {}
        self._came: deque[TraceJob] = deque()
        self._history: RunTimeHistory[int] = RunTimeHistory()

    def coming(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        """The same jobs, each remembered as it is asked for."""
        for job in jobs:
            self._waiting[job.number] = job
            self._came.append(job)
            while self._came[0].submitted < job.submitted - WEEKS * WEEK - DAY:
                self._came.popleft()
            yield job

    def take(self, moment: Moment) -> None:
        """Somebody starts."""
        now, starts = moment
        self._end(now)
        for job in starts:
            del self._waiting[job.number]
            running = RunningJob(now + job.limit, job.number, job.processors, job, now)
            heappush(self._ends, (now + job.run, job.number, running))

    def at(self, instant: int, size: int, scheduler: SimulationScheduler) -> SimulationState:
        """How it stands at an instant that is not before the last moment, and before the next one."""
        self._end(instant)
        waiting = [job for job in self._waiting.values() if job.submitted <= instant]
        came = [job for job in self._came if job.submitted <= instant]
        running = sorted(running for _, _, running in self._ends)
        return SimulationState(
            instant, size, running, waiting, came, self._history.copy(), scheduler
        )

    def _end(self, now: int) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, _, (_, _, _, job, _) = heappop(self._ends)
            self._history.ended(job.user, job.run, job.limit)


class RecordedScheduler:
    """A scheduler of which is known how it was when an instant had passed."""

    def __init__(self, scheduler: SimulationScheduler) -> None:
        self._scheduler = scheduler
        self._then: SimulationScheduler | None = None
        self.until = FOR_EVER
        """That instant."""
        self.attends = scheduler.attends

    @property
    def then(self) -> SimulationScheduler:
        return self._then or self._scheduler.copy()

    @property
    def queue(self) -> JobQueue:
        return self._scheduler.queue

    def line(self, snapshot: OnProcessors, now: int) -> QueueOrder[TraceJob]:
        return self._scheduler.line(snapshot, now)

    def passes(self, now: int, *, event: bool) -> Iterable[Pass]:
        self._look(now)
        return self._scheduler.passes(now, event=event)

    def wake(self, now: int) -> int:
        return self._scheduler.wake(now)

    def ended(self, running: RunningJob[TraceJob, int], now: int) -> None:
        self._look(now)
        self._scheduler.ended(running, now)

    def admits(self, job: TraceJob, now: int) -> bool:
        return self._scheduler.admits(job, now)

    def turned_away(self) -> int:
        return self._scheduler.turned_away()

    def copy(self) -> SimulationScheduler:
        return self._scheduler.copy()

    def _look(self, now: int) -> None:
        if self._then is None and now > self.until:
            self._then = self._scheduler.copy()
