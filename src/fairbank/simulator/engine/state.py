"""How a simulation stands at an instant: who waits, who runs, and what had been seen by then; from there it can go on in other ways."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from fairbank.scheduling.snapshot import Snapshot
from fairbank.simulator.engine.clock import JobStarts, SimulationClock
from fairbank.simulator.engine.scheduler import OnProcessors, SimulationScheduler
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
        self, job: TraceJob, lasts: RunTimeModel[TraceJob], coming: Iterable[TraceJob], most: int
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

    def arrivals(self, chance: Random) -> Iterator[TraceJob]:
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
            yield job._replace(number=_NEWCOMERS + turn, submitted=at)

    def _spans(self) -> Sequence[int]:
        seen = self.at - (self.came[0].submitted if self.came else self.at)
        for unit, most in ((WEEK, WEEKS), (DAY, 6), (HOUR, 23)):
            if whole := min(seen // unit, most):
                return range(unit, (whole + 1) * unit, unit)
        return ()


def _submitted(job: TraceJob) -> int:
    return job.submitted


class StateRecorder:
    """Simulation that hands out its state at chosen times.

    Besides the jobs that wait or run, it holds those that arrived within eight weeks.
    """

    def __init__(
        self, size: int, scheduler: SimulationScheduler, on_state: Callable[[SimulationState], None]
    ) -> None:
        self._clock = SimulationClock(size, scheduler)
        self._size, self._scheduler, self._on_state = size, scheduler, on_state
        self._arrivals: deque[TraceJob] = deque()
        self._history: RunTimeHistory[int] = RunTimeHistory()
        self._clock.loop.on_end = self._end
        self._clock.loop.on_pause = self._pause

    def record_at(self, time: int) -> None:
        """Hand out the state just after the pass at this time, which is not over yet."""
        self._clock.loop.pause_at = time

    def run(self, jobs: Iterable[TraceJob]) -> Iterator[JobStarts]:
        """Yield the time of each start, as `SimulationClock.run` does."""
        return self._clock.run(self._remember(jobs))

    def _remember(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        for job in jobs:
            self._arrivals.append(job)
            while self._arrivals[0].submitted < job.submitted - WEEKS * WEEK - DAY:
                self._arrivals.popleft()
            yield job

    def _end(self, running: RunningJob[TraceJob, int], now: int) -> None:
        job = running.job
        self._history.ended(job.user, job.run, job.limit)
        if self._scheduler.attends:
            self._scheduler.ended(running, now)

    def _pause(self, time: int) -> None:
        snapshot = self._clock.snapshot
        waiting = sorted(snapshot.queue.jobs(), key=lambda job: job.number)
        # The loop has read one job ahead.
        came = [job for job in self._arrivals if job.submitted <= time]
        self._on_state(
            SimulationState(
                time,
                self._size,
                snapshot.running.copy(),
                waiting,
                came,
                self._history.copy(),
                self._scheduler.copy(),
            )
        )
