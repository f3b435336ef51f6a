"""How often a job starts within the range that it was told when it came: a sample of the jobs of a trace that had to wait."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from fairbank.scheduling.explain.answer import NoStartRange, StartRange
from fairbank.scheduling.explain.start_range import start_range
from fairbank.simulator.engine.clock import SimulationClock
from fairbank.simulator.engine.policies import policy_named
from fairbank.simulator.engine.scheduler import SimulationScheduler
from fairbank.simulator.engine.state import RecordedScheduler, StateTracker
from fairbank.simulator.traces.fast_reader import FastTrace
from fairbank.simulator.traces.workload import TraceJob, Workload, size_of


class Coverage(NamedTuple):
    """Of so many jobs: how many started before the range, within it, after it; `untold` had no range, or one without an end."""

    jobs: int
    before: int
    within: int
    after: int
    untold: int

    def __str__(self) -> str:
        part = f"{100 * self.within / self.jobs:.0f} %" if self.jobs else "-"
        return f"{self.jobs} jobs: {self.before} before, {self.within} within ({part}), {self.after} after, {self.untold} untold"


class Watched(RecordedScheduler):
    """A scheduler of which is known how it was when each of these instants had passed."""

    def __init__(self, scheduler: SimulationScheduler, instants: Iterable[int]) -> None:
        super().__init__(scheduler)
        self._due = deque(instants)
        self.seen: dict[int, SimulationScheduler] = {}

    def _look(self, now: int) -> None:
        while self._due and now > self._due[0]:
            self.seen[self._due.popleft()] = self._scheduler.copy()


def coverage(trace: Callable[[], FastTrace], name: str, *, every: int, runs: int) -> Coverage:
    """Every so-many-th job that has to wait is told a range, just after it came, by what had been seen by then. The trace is read twice:
    first to find out who waits."""
    opened, policy = trace(), policy_named(name)
    size = size_of(opened, None)
    late = {
        job.number: job
        for now, job in _starts(opened, policy.scheduler(size), size)
        if job.submitted < now
    }
    chosen = [late[number] for number in sorted(late)[every - 1 :: every]]
    watched = Watched(policy.scheduler(size), sorted({job.submitted for job in chosen}))
    follower, counts, told = StateTracker(), Counter[str](), dict[int, StartRange | NoStartRange]()
    due = deque(chosen)
    for now, starts in SimulationClock(size, watched).run(
        follower.coming(Workload(trace().jobs, size))
    ):
        while due and due[0].submitted < now:
            job = due.popleft()
            there = follower.at(job.submitted, size, watched.seen[job.submitted])
            told[job.number] = start_range(partial(there.drawn, job), runs=runs, seed=job.number)
        follower.take((now, starts))
        counts.update(_where(told.pop(job.number), now) for job in starts if job.number in told)
    return Coverage(counts.total(), *(counts[where] for where in Coverage._fields[1:]))


def _starts(
    trace: FastTrace, scheduler: SimulationScheduler, size: int
) -> Iterator[tuple[int, TraceJob]]:
    for now, starts in SimulationClock(size, scheduler).run(Workload(trace.jobs, size)):
        yield from ((now, job) for job in starts)


def _where(found: StartRange | NoStartRange, start: int) -> str:
    if isinstance(found, NoStartRange) or found.latest is None:
        return "untold"
    return "before" if start < found.earliest else "after" if start > found.latest else "within"
