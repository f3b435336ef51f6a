"""How often a job starts within the range that it was told when it came: a sample of the jobs of a trace that had to wait."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import NamedTuple

from fairbank.scheduling.explain.answer import Likely
from fairbank.scheduling.explain.likely import likely
from fairbank.simulator.clock import Clock
from fairbank.simulator.jobs import Job, Workload, size_of
from fairbank.simulator.policies import policy_named
from fairbank.simulator.skim import Skim
from fairbank.simulator.standstill import Follower


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


def coverage(trace: Skim, name: str, *, every: int, runs: int) -> Coverage:
    """Every so-many-th job that has to wait is told a range, just after it came, by what had been seen by then. For policies that remember
    nothing."""
    size, policy = size_of(trace.header, None), policy_named(name)
    follower, newcomers = Follower(), list[Job]()
    told: dict[int, Likely | None] = {}
    waiters, counts = 0, Counter[str]()

    def range_of(job: Job) -> Likely | None:
        there = follower.at(job.submitted, size, policy.scheduler(size))
        return likely(partial(there.drawn, job), runs=runs, seed=job.number)

    for now, starts in Clock(size, policy.scheduler(size)).run(follower.coming(Workload(trace.jobs, size)), newcomers.append):
        at_once = {job.number for job in starts if job.submitted == now}
        waiting = [job for job in newcomers if job.number not in at_once]
        newcomers.clear()
        chosen = [job for turn, job in enumerate(waiting, start=waiters + 1) if turn % every == 0]
        waiters += len(waiting)
        told.update((job.number, range_of(job)) for job in chosen if job.submitted < now)
        follower.take((now, starts))
        for job in starts:
            if job.number in told:
                counts[_where(told.pop(job.number), now)] += 1
        told.update((job.number, range_of(job)) for job in chosen if job.submitted == now)
    return Coverage(counts.total(), *(counts[where] for where in Coverage._fields[1:]))


def _where(found: Likely | None, start: int) -> str:
    if found is None or found.latest is None:
        return "untold"
    return "before" if start < found.earliest else "after" if start > found.latest else "within"
