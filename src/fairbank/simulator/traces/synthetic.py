"""Synthetic month of a computing site: the same seed gives the same jobs. The shapes are from the
literature, the formulas are our own and simple.

* Arrivals: campaigns (a user sends several similar jobs) arrive at random, at a rate of 0.2 +
  exp(-((h - 14) / 4)^2) at hour h of the day, times 0.4 at weekends (daily cycle: Lublin and
  Feitelson 2003). Their lengths are geometric, mean 4, their gaps exponential, mean 2 minutes
  (repeated work: Feitelson, "Workload Modeling", 2015).
* Users: the k-th project has the weight 1/k, and so has the k-th user of a project (few users make
  most of the load: ibid.).
* Width: a quarter of the campaigns take one unit; the others 2^x units, x uniform, three in four
  rounded to an integer x (serial and power-of-two jobs are frequent: Lublin and Feitelson 2003,
  whose x has two stages).
* Run time: log-normal, short (median 6 minutes, two in five) or long (median 3 hours), sigma 1;
  jobs of one campaign vary by sigma 0.3 (two humps, as in the hyper-gamma of Lublin and Feitelson
  2003).
* Limits: run time times (1 + an exponential of mean 2), rounded up to the next of a few round
  values; one campaign in ten requests the longest (Mu'alem and Feitelson 2001; Tsafrir, Etsion and
  Feitelson 2005: estimates are round, few and too long).
* Ends: 2 % are cancelled before they start, 5 % fail at a random time, some reach their limit and
  end up to 30 s past it; a few, chosen beforehand, lose their node (the header lists them).
* Starts: each partition is first come, first served, and counts processors; the wait column is the
  result.

U. Lublin and D. G. Feitelson, J. Parallel and Distributed Computing 63(11), 2003. A. W. Mu'alem and
D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001. D. Tsafrir, Y. Etsion and
D. G. Feitelson, Job Scheduling Strategies for Parallel Processing, 2005. D. G. Feitelson, Workload
Modeling for Computer Systems Performance Evaluation, Cambridge 2015.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from math import exp, log, log2
from random import Random
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY, Instant
from fairbank.simulator.traces.fast_reader import Extent, FastTrace, ReaderNotes, fast_line
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import Status, SwfJob
from fairbank.simulator.traces.swf import Trace, write

A_MONDAY = Instant(1_756_684_800)  # 2025-09-01
DAYS_MAX = 7_500
"""Days in which the default site runs a million jobs."""


@dataclass(frozen=True, slots=True)
class SitePartition:
    """A partition. Its processors come `unit` at a time (the cores that belong to one GPU), each
    with `memory` KiB."""

    name: str
    processors: int
    unit: int = 1
    memory: int = 4 << 20

    @property
    def widest(self) -> int:
        """The largest job, in units: a quarter of the partition."""
        return self.processors // self.unit // 4


@dataclass(frozen=True, slots=True)
class SyntheticSite:
    """Machine, users and time span. Raises InvalidInput, naming the field."""

    pools: tuple[SitePartition, ...] = (
        SitePartition("cpu", 768),
        SitePartition("gpu", 192, unit=8, memory=16 << 20),
    )
    projects: int = 8
    users: int = 40
    jobs: int = 4_000
    days: int = 30
    node_failures: int = 12
    starts: Instant = A_MONDAY

    def __post_init__(self) -> None:
        roomy = all(pool.unit > 0 and pool.memory > 0 and pool.widest > 0 for pool in self.pools)
        _demand(
            "pools", bool(self.pools) and roomy, "at least one, each large enough for four units"
        )
        names = [pool.name for pool in self.pools]
        called = all(name and name.isprintable() and name == name.strip() for name in names)
        _demand(
            "pools",
            called and len(set(names)) == len(names),
            "each a name of printable characters that no other one has",
        )
        _demand("projects", 1 <= self.projects <= 10_000, "a number from 1 to 10,000")
        _demand(
            "users",
            self.projects <= self.users <= 100_000,
            "at least one for each project, at most 100,000",
        )
        _demand("jobs", 0 <= self.jobs <= 10_000_000, "a number from 0 to 10,000,000")
        _demand("days", 1 <= self.days <= DAYS_MAX, f"a number from 1 to {DAYS_MAX:,}")
        _demand("node_failures", 0 <= self.node_failures <= 10_000, "a number from 0 to 10,000")
        _demand("starts", 0 <= self.starts < 1 << 32, "seconds since 1970, before 2106")


def _demand(field: str, holds: bool, expected: str) -> None:
    if not holds:
        raise InvalidInput(
            f"this {field} of a synthetic centre cannot be", field=field, remedy=f"give {expected}"
        )


MINUTE, HOUR = 60, 3600
LIMITS = (10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY)
"""Time limits that users request."""
QUEUES = {1: "short", 2: "long"}
"""Queues by limit: short is up to an hour."""


def month(centre: SyntheticSite, seed: int) -> Trace:
    """Return the trace of a synthetic month: jobs in submit order, numbered from 1, that `centre`
    could have run as they are.
    """
    rng = Random(seed)  # noqa: S311 - a workload, not a secret
    failures = frozenset(
        rng.sample(range(1, centre.jobs + 1), min(centre.node_failures, centre.jobs))
    )
    plan = _plan(rng, centre)
    return Trace(_header(centre, seed, failures), _run(rng, centre, plan, failures))


class SyntheticWorkload(NamedTuple):
    """Workload of a site, with a seed: generated at each reading, and the same each time."""

    site: SyntheticSite
    seed: int

    @contextmanager
    def opened(self) -> Iterator[tuple[FastTrace, Extent]]:
        """Yield the jobs as a simulation reads them."""
        trace = month(self.site, self.seed)
        yield (
            FastTrace(trace.header, map(fast_line, trace.jobs), ReaderNotes()),
            Extent(lambda _: self.site.jobs),
        )

    def lines(self) -> Iterator[str]:
        """Return the lines of the trace."""
        return write(*month(self.site, self.seed))


class _Person(NamedTuple):
    user: int
    project: int
    home: int
    weight: float


class _Campaign(NamedTuple):
    """Similar jobs of one user: their common values."""

    person: _Person
    pool: int
    processors: int
    memory: int
    typical: float
    limit: int
    executable: int


def _people(rng: Random, centre: SyntheticSite) -> list[_Person]:
    projects = range(1, centre.projects + 1)
    worth = [1 / k for k in projects]
    members = dict.fromkeys(projects, 0)
    people = []
    for user, project in enumerate(
        [*projects, *rng.choices(projects, worth, k=centre.users - centre.projects)], start=1
    ):
        members[project] += 1
        people.append(
            _Person(
                user, project, _home(project, len(centre.pools)), 1 / project / members[project]
            )
        )
    return people


def _home(project: int, pools: int) -> int:
    """Return the partition of a project: the first for two in three, else one of the rest."""
    return 1 + (project // 3 - 1) % (pools - 1) if project % 3 == 0 and pools > 1 else 0


def _plan(rng: Random, centre: SyntheticSite) -> list[tuple[int, _Campaign]]:
    """Return the submit time and campaign of every job, in submit order."""
    people = _people(rng, centre)
    activity = list(accumulate(person.weight for person in people))
    hours = list(accumulate(_rate(centre.starts + HOUR * i) for i in range(centre.days * 24)))
    plan: list[tuple[int, _Campaign]] = []
    executable = 0
    while len(plan) < centre.jobs:
        executable += 1
        campaign = _campaign(rng, centre.pools, people[_draw(rng, activity)], executable)
        at = (_draw(rng, hours) + rng.random()) * HOUR
        for _ in range(1 + int(log(1 - rng.random()) / log(1 - 1 / 4))):
            plan.append((min(int(at), centre.days * DAY - 1), campaign))
            at += rng.expovariate(1 / (2 * MINUTE))
    return sorted(plan[: centre.jobs], key=lambda job: job[0])


def _rate(at: int) -> float:
    """Return the arrival rate in the hour that begins at `at`."""
    weekend = (at // DAY + 3) % 7 >= 5  # 1970 began on a Thursday
    return (0.4 if weekend else 1.0) * (0.2 + exp(-(((at // HOUR % 24 - 14) / 4) ** 2)))


def _draw(rng: Random, cumulative: Sequence[float]) -> int:
    return bisect_left(cumulative, rng.random() * cumulative[-1])


def _campaign(
    rng: Random, pools: tuple[SitePartition, ...], person: _Person, executable: int
) -> _Campaign:
    index = person.home if rng.random() < 0.9 else rng.randrange(len(pools))
    pool = pools[index]
    processors = _units(rng, pool.widest) * pool.unit
    typical = rng.lognormvariate(log(6 * MINUTE if rng.random() < 0.4 else 3 * HOUR), 1.0)
    typical = min(max(typical, 10.0), float(LIMITS[-1]))
    return _Campaign(
        person,
        index,
        processors,
        pool.memory >> rng.randrange(3),
        typical,
        _limit(rng, typical),
        executable,
    )


def _limit(rng: Random, typical: float) -> int:
    if rng.random() < 0.1:
        return LIMITS[-1]
    wished = typical * (1 + rng.expovariate(1 / 2))
    return next((limit for limit in LIMITS if limit >= wished), LIMITS[-1])


def _units(rng: Random, widest: int) -> int:
    if rng.random() < 0.25:
        return 1
    x = rng.uniform(0, log2(widest))
    return min(widest, round(2 ** (round(x) if rng.random() < 0.75 else x)))


def _run(
    rng: Random, centre: SyntheticSite, plan: list[tuple[int, _Campaign]], failures: frozenset[int]
) -> Iterator[SwfJob]:
    queues = [_Queue(pool.processors) for pool in centre.pools]
    for number, (submitted, campaign) in enumerate(plan, start=1):
        status, run = _fate(rng, campaign, number in failures)
        if status == Status.CANCELLED:
            wait = int(rng.expovariate(1 / (10 * MINUTE)))
        else:
            wait = queues[campaign.pool].start(submitted, campaign.processors, run) - submitted
        yield _job(rng, number, submitted, wait, run, status, campaign)


def _fate(rng: Random, campaign: _Campaign, node_fails: bool) -> tuple[Status, int]:
    """Return the final status and run time in seconds; -1 for a job that never starts."""
    run = max(1, int(campaign.typical * rng.lognormvariate(0, 0.3)))
    draw = rng.random()
    if draw < 0.02 and not node_fails:
        return Status.CANCELLED, -1
    status = Status.COMPLETED
    if draw < 0.07 or node_fails:
        status, run = Status.FAILED, max(1, int(run * rng.random()))
    if run > campaign.limit:
        status, run = Status.FAILED, campaign.limit + rng.randrange(31)
    return status, run


class _Queue:
    """First come, first served: no job starts before the one ahead of it."""

    def __init__(self, processors: int) -> None:
        self._free = processors
        self._now = 0
        self._running: list[tuple[int, int]] = []

    def start(self, submitted: int, processors: int, run: int) -> int:
        """Return when the next job starts. It has its processors until then plus `run`."""
        self._now = max(self._now, submitted)
        while self._running and (self._running[0][0] <= self._now or self._free < processors):
            ended, given_back = heappop(self._running)
            self._now = max(self._now, ended)
            self._free += given_back
        self._free -= processors
        heappush(self._running, (self._now + run, processors))
        return self._now


def _job(
    rng: Random,
    number: int,
    submitted: int,
    wait: int,
    run: int,
    status: Status,
    campaign: _Campaign,
) -> SwfJob:
    ran = run >= 0
    return SwfJob(
        number=number,
        submit_time=submitted,
        wait_time=wait,
        run_time=run,
        allocated_processors=campaign.processors if ran else -1,
        average_cpu_time=int(run * rng.uniform(0.6, 1.0)) if ran else -1,
        used_memory=int(campaign.memory * rng.uniform(0.1, 1.0)) if ran else -1,
        requested_processors=campaign.processors,
        requested_time=campaign.limit,
        requested_memory=campaign.memory,
        status=int(status),
        user=campaign.person.user,
        group=campaign.person.project,
        executable=campaign.executable,
        queue=1 if campaign.limit <= HOUR else 2,
        partition=campaign.pool + 1,
        preceding_job=-1,
        think_time=-1,
    )


def _header(centre: SyntheticSite, seed: int, failures: frozenset[int]) -> Header:
    return Header(
        version="2.2",
        computer="synthetic",
        preemption="No",
        max_jobs=centre.jobs,
        max_records=centre.jobs,
        max_procs=sum(pool.processors for pool in centre.pools),
        max_runtime=LIMITS[-1] + 30,
        unix_start_time=centre.starts,
        queues=QUEUES,
        partitions={i: pool.name for i, pool in enumerate(centre.pools, start=1)},
        node_failures=failures,
        notes=(f"no such centre: made by Fairbank's workload model with seed {seed}",),
    )
