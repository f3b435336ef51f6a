"""What if: a workload with something changed in it. Each change is a function from jobs to jobs, as they are read; none looks ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from fairbank.simulator.traces.fast_reader import Skimmed

Called = Callable[[int], str]
"""How a user or a group is called that has this number in the trace."""

ARRIVALS = 60
"""Seconds. Shaken, a job comes at most so much earlier or later."""
RUNS = 0.01
"""Shaken, it runs at most this part shorter or longer."""


class Resized(NamedTuple):
    """A job as it would have been asked for. None: as it was."""

    processors: int | None = None
    limit: int | None = None


class WorkloadEdits(NamedTuple):
    """What is other than was recorded: whose jobs never come, by names or numbers as the trace has them, which jobs are of another size or
    limit, by their numbers, and to how many per cent all limits are set."""

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    jobs: Mapping[int, Resized] = {}
    limits_percent: int = 100


class EditCounts:
    """How many jobs each change was about, by the user, group or number it was said of."""

    def __init__(self) -> None:
        self.users: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.jobs: dict[int, int] = {}


def edit_workload(
    jobs: Iterable[Skimmed], changes: WorkloadEdits, users: Called, groups: Called, met: EditCounts
) -> Iterator[Skimmed]:
    """The jobs with all changes; what they were about is counted in `met`."""
    found = iter(jobs)
    if changes.users:
        found = without(found, changes.users, lambda job: users(job[7]), met.users)
    if changes.groups:
        found = without(found, changes.groups, lambda job: groups(job[8]), met.groups)
    if changes.limits_percent != 100:
        found = (with_limit(job, changes.limits_percent) for job in found)
    return resized(found, changes.jobs, met.jobs) if changes.jobs else found


def without(
    jobs: Iterator[Skimmed],
    names: frozenset[str],
    of: Callable[[Skimmed], str],
    met: dict[str, int],
) -> Iterator[Skimmed]:
    """Those that are nobody's of these."""
    for job in jobs:
        name = of(job)
        if name in names:
            met[name] = met.get(name, 0) + 1
        else:
            yield job


def with_limit(job: Skimmed, percent: int) -> Skimmed:
    """A job whose limit is that part of what it was, but no shorter than it ran: nobody is killed who was not. Without one it stays so."""
    number, submitted, run, given, asked, limit, *rest = job
    if limit > 0:
        limit = max(limit * percent // 100, min(run, limit), 1)
    return _job(number, submitted, run, given, asked, limit, *rest)


def resized(
    jobs: Iterator[Skimmed], wanted: Mapping[int, Resized], met: dict[int, int]
) -> Iterator[Skimmed]:
    """With other sizes and limits of some jobs. Whoever would run beyond a new limit ends there, as Slurm ends it; on other processors it
    runs as long as it ran."""
    for job in jobs:
        other = wanted.get(job[0])
        if other is None:
            yield job
            continue
        number, submitted, run, given, asked, limit, *rest = job
        if not 2 <= rest[0] <= 4:  # a part of a run has the number of the whole
            met[number] = met.get(number, 0) + 1
        if other.processors is not None:
            asked = other.processors
        if other.limit is not None:
            run, limit = min(run, other.limit), other.limit
        yield _job(number, submitted, run, given, asked, limit, *rest)


def perturb_workload(jobs: Iterable[Skimmed], seed: str) -> Iterator[Skimmed]:
    """The same workload a little otherwise: each job comes up to ARRIVALS seconds earlier or later, and runs up to a part of RUNS shorter
    or longer, all alike likely, but not beyond a limit that it kept (after D. Tsafrir, K. Ouaknine and D. G. Feitelson, "Reducing
    performance evaluation sensitivity and variability by input shaking", MASCOTS 2007). The same seed gives the same jobs.

    No more jobs are held than come within two minutes.
    """
    rng = Random(seed)  # noqa: S311 - a workload, not a secret
    ahead: list[tuple[int, int, Skimmed]] = []
    for place, job in enumerate(jobs):
        number, submitted, run, given, asked, limit, *rest = job
        while ahead and ahead[0][0] < submitted - ARRIVALS:
            yield heappop(ahead)[2]
        comes = max(0, submitted + int(rng.random() * (2 * ARRIVALS + 1)) - ARRIVALS)
        factor = 1 + RUNS * (2 * rng.random() - 1)
        if run > 0:
            longest = limit if run <= limit else run * 2
            run = max(1, min(int(run * factor + 0.5), longest))
        heappush(ahead, (comes, place, _job(number, comes, run, given, asked, limit, *rest)))
    while ahead:
        yield heappop(ahead)[2]


def _job(
    number: int, submitted: int, run: int, given: int, asked: int, limit: int, *rest: int
) -> Skimmed:
    status, user, group, partition = rest
    return (number, submitted, run, given, asked, limit, status, user, group, partition)
