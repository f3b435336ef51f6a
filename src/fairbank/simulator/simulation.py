"""One simulation: a trace, a machine and a policy in; what came of it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairbank.simulator.clock import Clock, Moment
from fairbank.simulator.course import Course
from fairbank.simulator.fairness import FairStarts, Misses
from fairbank.simulator.jobs import Job, Left, Read, Workload, size_of
from fairbank.simulator.measures import Figures, Measures
from fairbank.simulator.policies import Policy
from fairbank.simulator.shares import Delivered, Sharing, Week
from fairbank.simulator.skim import Notes, Skim
from fairbank.simulator.starts import Starts


class Plan(NamedTuple):
    """What is simulated, and what is measured beside the usual figures.

    `processors`: of the machine, None as the trace says. `fair_starts`: look at the fair start of every so-many-th job, 0 of none.
    `shares`: of each account (None: nobody asks), which is a user of the trace, or with `by_group` a group.
    `course`: how it goes over time and by size.
    """

    processors: int | None = None
    fair_starts: int = 0
    shares: Mapping[int, int] | None = None
    by_group: bool = False
    course: bool = False


class Outcome(NamedTuple):
    """What came of a policy. `lines` is how many jobs the trace has; `left` are the numbers of those that were not simulated, by the
    reason; `read` counts those of which something was read otherwise than it stands there; `notes` are the reader's."""

    policy: str
    processors: int
    lines: int
    left: Mapping[Left, list[int]]
    read: Mapping[Read, int]
    figures: Figures | None
    misses: Misses | None
    astray: float | None
    jain_of_shares: float | None
    delivered: list[Delivered]
    starts: Starts
    notes: Notes
    weeks: list[Week]
    course: Course | None


Tick = Callable[[int], None]
"""Told how many jobs have been read."""
TICK = 1_024


def simulate(trace: Skim, policy: Policy, plan: Plan, tick: Tick | None = None) -> Outcome:
    """Run a trace under a policy. Raises Malformed for a trace that cannot be read, or a machine whose size nobody says."""
    size = size_of(trace.header, plan.processors)
    workload = Workload(trace.jobs, size)
    clock = Clock(size, policy.scheduler(size))
    measures, starts = Measures(), Starts()
    takers: list[Callable[[Moment], None]] = [measures.take, starts.take]
    fairness = FairStarts(clock, plan.fair_starts) if plan.fair_starts else None
    sharing = Sharing(plan.shares, _group if plan.by_group else _user) if plan.shares else None
    course = Course(size) if plan.course else None
    takers += [each.take for each in (fairness, sharing, course) if each is not None]
    told = 0
    for moment in clock.run(workload, fairness.arrived if fairness else None):
        for take in takers:
            take(moment)
        if tick is not None and workload.lines - told >= TICK:
            told = workload.lines
            tick(told)
    return Outcome(
        policy=policy.name,
        processors=size,
        lines=workload.lines,
        left=workload.left,
        read=workload.read,
        figures=measures.figures(size, clock.lost),
        misses=fairness.misses() if fairness else None,
        astray=sharing.astray() if sharing else None,
        jain_of_shares=sharing.jain() if sharing else None,
        delivered=sharing.delivered() if sharing else [],
        starts=starts,
        notes=trace.notes,
        weeks=sharing.weeks() if sharing else [],
        course=course,
    )


def _user(job: Job) -> int:
    return job.user


def _group(job: Job) -> int:
    return job.group
