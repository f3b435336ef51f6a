"""State of a simulation at some time: pending and running jobs, and the recent past. A simulation
can go on from it in other ways.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from operator import attrgetter
from random import Random
from typing import NamedTuple

from fairbank.core.time import DAY
from fairbank.scheduling.event_loop import (
    RunTimeModel,
    SimulatedStart,
    simulate_forward,
    whole_limit,
)
from fairbank.scheduling.explain.run_times import RunTimeHistory, RunTimeSampler
from fairbank.scheduling.machines.processors import Processors
from fairbank.scheduling.snapshot import FOR_EVER, RunningJob, Snapshot
from fairbank.simulator.engine.clock import (
    JobStarts,
    OnProcessors,
    SimulationClock,
    SimulationScheduler,
)
from fairbank.simulator.traces.workload import TraceJob

HOUR, WEEK = 3_600, 7 * DAY
WEEKS = 8
"""Weeks of arrivals that a state remembers."""
_NEWCOMERS = 1 << 40
"""First number of sampled arrivals. No job of a trace has it."""


class SimulationState(NamedTuple):
    """State just after the pass at `at`.

    `running` is in the order of ends, `waiting` in the order of the queue. `recent_arrivals` are
    all jobs that arrived in the last weeks.
    """

    at: int
    size: int
    running: list[RunningJob[TraceJob, int]]
    waiting: list[TraceJob]
    recent_arrivals: list[TraceJob]
    history: RunTimeHistory[int]
    scheduler: SimulationScheduler

    def resume(self, changed: TraceJob | None = None) -> tuple[OnProcessors, SimulationScheduler]:
        """Return a snapshot to change and a scheduler; `changed` replaces the job of its number."""
        scheduler = self.scheduler.copy()
        snapshot: OnProcessors = Snapshot(Processors(self.size), scheduler.queue)
        snapshot.running = list(self.running)
        for running in self.running:
            snapshot.machine.take(running.placement)
        for job in self.waiting:
            snapshot.queue.add(
                changed if changed is not None and changed.number == job.number else job
            )
        return snapshot, scheduler

    def start_with_full_limits(self, job: TraceJob, max_passes: int = FOR_EVER) -> int | None:
        """Return the start of a changed job if jobs use their whole limit and none arrives."""
        return self._simulate(job, whole_limit, (), max_passes).at

    def sample_start(
        self, job: TraceJob, rng: Random, max_passes: int = FOR_EVER
    ) -> SimulatedStart:
        """Return the start with sampled run times and the arrivals of one of the last weeks.

        Args:
            job: a waiting job, or the job of that number with changes.
            rng: source of random numbers.
            max_passes: number of passes after which the simulation ends without a start.
        """
        sampler = RunTimeSampler(self.history, rng)
        arrivals = self.arrivals(rng)

        def lasts(job: TraceJob, limit: int, elapsed: int) -> int:
            return sampler.run_time(job.user, limit, elapsed)

        return self._simulate(job, lasts, arrivals, max_passes)

    def _simulate(
        self,
        job: TraceJob,
        run_time: RunTimeModel[TraceJob],
        coming: Iterable[TraceJob],
        max_passes: int,
    ) -> SimulatedStart:
        snapshot, scheduler = self.resume(job)
        changed = job not in self.waiting
        return simulate_forward(
            snapshot,
            scheduler,
            self.at,
            job.number,
            run_time=run_time,
            arrivals=coming,
            has_event=changed,
            max_passes=max_passes,
        )

    def arrivals(self, rng: Random) -> Iterator[TraceJob]:
        """Yield the arrivals since this hour of this weekday in one of the last weeks, again and
        again.

        If the trace has no whole week before, it is days; if it has no whole day, hours.
        """
        spans = self._spans()
        if not spans:
            return
        span = rng.choice(spans)
        repeated = self.recent_arrivals[
            bisect_right(self.recent_arrivals, self.at - span, key=attrgetter("submitted")) :
        ]
        if not repeated:
            return
        for count_of_arrival in count():
            later, which = divmod(count_of_arrival, len(repeated))
            job = repeated[which]
            at = job.submitted + (later + 1) * span
            yield job._replace(number=_NEWCOMERS + count_of_arrival, submitted=at)

    def _spans(self) -> Sequence[int]:
        observed = self.at - (
            self.recent_arrivals[0].submitted if self.recent_arrivals else self.at
        )
        for unit, most in ((WEEK, WEEKS), (DAY, 6), (HOUR, 23)):
            if whole := min(observed // unit, most):
                return range(unit, (whole + 1) * unit, unit)
        return ()


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
        self._history.add(job.user, job.run, job.limit)
        if self._scheduler.is_stateful:
            self._scheduler.record_end(running, now)

    def _pause(self, time: int) -> None:
        snapshot = self._clock.snapshot
        self._scheduler.count_skipped(time)
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
