"""Changes to a workload for "what if": functions from jobs to jobs as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from fairbank.simulator.traces.fast_reader import FastLine

NameOf = Callable[[int], str]
"""Function from the number of a user or group in the trace to its name."""

MAX_SHIFT = 60
"""Maximum shift of an arrival in a perturbed workload, in seconds."""
MAX_STRETCH = 0.01
"""Maximum change of a run time in a perturbed workload, as a part of it."""


class Resized(NamedTuple):
    """Size and limit that a job gets. None: as recorded."""

    processors: int | None = None
    limit: int | None = None


class WorkloadEdits(NamedTuple):
    """Changes: users and groups whose jobs are dropped, by names or numbers of the trace; jobs with
    another size or limit, by number; and the percentage to which all limits are set.
    """

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    jobs: Mapping[int, Resized] = {}
    limits_percent: int = 100


class EditCounts:
    """Number of jobs that each change applied to, by user, group or job number."""

    def __init__(self) -> None:
        self.users: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.jobs: dict[int, int] = {}


def edit_workload(
    jobs: Iterable[FastLine],
    changes: WorkloadEdits,
    users: NameOf,
    groups: NameOf,
    counts: EditCounts,
) -> Iterator[FastLine]:
    """Return the jobs with all changes, and count in `counts` the jobs that each change applied to.

    Args:
        jobs: lines of the trace.
        changes: changes to make.
        users: function from the number of a user to the name.
        groups: function from the number of a group to the name.
        counts: receives the numbers of jobs.
    """
    edited = iter(jobs)
    if changes.users:
        edited = drop_jobs(edited, changes.users, lambda job: users(job[7]), counts.users)
    if changes.groups:
        edited = drop_jobs(edited, changes.groups, lambda job: groups(job[8]), counts.groups)
    if changes.limits_percent != 100:
        edited = (with_limit(job, changes.limits_percent) for job in edited)
    return resize(edited, changes.jobs, counts.jobs) if changes.jobs else edited


def drop_jobs(
    jobs: Iterator[FastLine],
    names: frozenset[str],
    name_of: Callable[[FastLine], str],
    counts: dict[str, int],
) -> Iterator[FastLine]:
    """Yield the jobs that belong to none of the names.

    Args:
        jobs: lines of the trace.
        names: names of users, or of groups.
        name_of: function from a line to the name of its user, or of its group.
        counts: receives the number of dropped jobs of each name.
    """
    for job in jobs:
        name = name_of(job)
        if name in names:
            counts[name] = counts.get(name, 0) + 1
        else:
            yield job


def with_limit(job: FastLine, percent: int) -> FastLine:
    """Return a job with that percentage of its limit, but not below its run time: no job is killed
    that was not. A job without a limit stays so.
    """
    number, submitted, run, allocated, requested, limit, *rest = job
    if limit > 0:
        limit = max(limit * percent // 100, min(run, limit), 1)
    return _job(number, submitted, run, allocated, requested, limit, *rest)


def resize(
    jobs: Iterator[FastLine], wanted: Mapping[int, Resized], counts: dict[int, int]
) -> Iterator[FastLine]:
    """Yield the jobs, some with other sizes and limits.

    Args:
        jobs: lines of the trace.
        wanted: new sizes and limits by job number. A job ends at its new limit, as in Slurm; on
            other processors it runs as long as recorded.
        counts: receives the number of changed lines by job number; parts of a run count once, as
            the whole.
    """
    for job in jobs:
        other = wanted.get(job[0])
        if other is None:
            yield job
            continue
        number, submitted, run, allocated, requested, limit, *rest = job
        if not 2 <= rest[0] <= 4:  # a part of a run has the number of the whole
            counts[number] = counts.get(number, 0) + 1
        if other.processors is not None:
            requested = other.processors
        if other.limit is not None:
            run, limit = min(run, other.limit), other.limit
        yield _job(number, submitted, run, allocated, requested, limit, *rest)


def perturb_workload(jobs: Iterable[FastLine], seed: str) -> Iterator[FastLine]:
    """Yield a slightly different workload.

    Each job arrives up to MAX_SHIFT seconds earlier or later, and runs up to a part MAX_STRETCH
    shorter or longer, uniformly distributed, but not beyond a limit that it kept (after D. Tsafrir,
    K. Ouaknine and D. G. Feitelson, "Reducing performance evaluation sensitivity and variability by
    input shaking", MASCOTS 2007). The same seed gives the same jobs. Memory holds only the jobs of
    two minutes.
    """
    rng = Random(seed)  # noqa: S311 - a workload, not a secret
    ahead: list[tuple[int, int, FastLine]] = []
    for place, job in enumerate(jobs):
        number, submitted, run, allocated, requested, limit, *rest = job
        while ahead and ahead[0][0] < submitted - MAX_SHIFT:
            yield heappop(ahead)[2]
        comes = max(0, submitted + int(rng.random() * (2 * MAX_SHIFT + 1)) - MAX_SHIFT)
        factor = 1 + MAX_STRETCH * (2 * rng.random() - 1)
        if run > 0:
            longest = limit if run <= limit else run * 2
            run = max(1, min(int(run * factor + 0.5), longest))
        heappush(
            ahead, (comes, place, _job(number, comes, run, allocated, requested, limit, *rest))
        )
    while ahead:
        yield heappop(ahead)[2]


def _job(
    number: int, submitted: int, run: int, allocated: int, requested: int, limit: int, *rest: int
) -> FastLine:
    status, user, group, partition = rest
    return (number, submitted, run, allocated, requested, limit, status, user, group, partition)
