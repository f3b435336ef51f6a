"""Share of jobs that start within the range forecast at their submission, for a sample of the jobs
of a trace that had to wait.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from fairbank.scheduling.explain.answer import NoStartRange, StartRange
from fairbank.scheduling.explain.start_range import start_range
from fairbank.simulator.engine.clock import SimulationClock, SimulationScheduler
from fairbank.simulator.engine.policies import policy_named
from fairbank.simulator.engine.state import SimulationState, StateRecorder
from fairbank.simulator.traces.fast_reader import FastTrace
from fairbank.simulator.traces.workload import TraceJob, Workload, size_of


class Coverage(NamedTuple):
    """Number of jobs, and of those that started before, within and after their range; `untold` had
    no range or one without an end.
    """

    jobs: int
    before: int
    within: int
    after: int
    untold: int

    def __str__(self) -> str:
        part = f"{100 * self.within / self.jobs:.0f} %" if self.jobs else "-"
        return (
            f"{self.jobs} jobs: {self.before} before, {self.within} within ({part}), {self.after}"
            f" after, {self.untold} untold"
        )


def coverage(trace: Callable[[], FastTrace], name: str, *, every: int, runs: int) -> Coverage:
    """Return the result for every n-th job that waits. Its range is computed just after it arrives,
    from the past only. The trace is read twice: first to find the jobs that wait.
    """
    opened, policy = trace(), policy_named(name)
    size = size_of(opened, None)
    late = {
        job.number: job
        for now, job in _starts(opened, policy.scheduler(size), size)
        if job.submitted < now
    }
    chosen = [late[number] for number in sorted(late)[every - 1 :: every]]
    due, counts, ranges = deque(chosen), Counter[str](), dict[int, StartRange | NoStartRange]()

    def take(state: SimulationState) -> None:
        while due and due[0].submitted == state.at:
            job = due.popleft()
            ranges[job.number] = start_range(
                partial(state.sample_start, job), runs=runs, seed=job.number
            )
        if due:
            recorder.record_at(due[0].submitted)

    recorder = StateRecorder(size, policy.scheduler(size), take)
    if due:
        recorder.record_at(due[0].submitted)
    for now, starts in recorder.run(Workload(trace().jobs, size)):
        counts.update(_where(ranges.pop(job.number), now) for job in starts if job.number in ranges)
    return Coverage(counts.total(), *(counts[where] for where in Coverage._fields[1:]))


def _starts(
    trace: FastTrace, scheduler: SimulationScheduler, size: int
) -> Iterator[tuple[int, TraceJob]]:
    for now, starts in SimulationClock(size, scheduler).run(Workload(trace.jobs, size)):
        yield from ((now, job) for job in starts)


def _where(predicted: StartRange | NoStartRange, start: int) -> str:
    if isinstance(predicted, NoStartRange):
        return "untold"
    if predicted.earliest is None or predicted.latest is None:
        return "untold"
    return (
        "before"
        if start < predicted.earliest
        else "after"
        if start > predicted.latest
        else "within"
    )
