"""Measures of a schedule: for users, for the machine, and of fairness.

* Bounded slowdown of a job: (wait + run) / run, where a run counts as at least 10 s, and at least 1
  (D. G. Feitelson, L. Rudolph, U. Schwiegelshohn, K. Sevcik and P. Wong, Job Scheduling Strategies
  for Parallel Processing, 1997).
* Turnaround: wait plus run.
* Utilisation: processor-seconds used, as a part of all between the first submission and the last
  end.
* Loss of capacity: processor-seconds idle while as many were wanted, as a part of the same (after
  Y. Zhang, H. Franke, J. E. Moreira and A. Sivasubramaniam, International Parallel and Distributed
  Processing Symposium, 2000; here no more is lost than was wanted).
* Jain's index over users, of their mean bounded slowdowns: 1 if all are equal, 1/n if one of n
  bears everything (R. Jain, D. Chiu and W. Hawe, DEC Research Report TR-301, 1984).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from operator import add, mul, sub
from typing import NamedTuple

from fairbank.scheduling.snapshot import FOR_EVER
from fairbank.simulator.engine.clock import JobStarts, SimulationClock
from fairbank.simulator.traces.workload import TraceJob

SHORT_RUN = 10
"""Seconds. A shorter run counts as this long, as is common in the literature."""


class ScheduleMeasures(NamedTuple):
    """Measures of a schedule: seconds, parts from 0 to 1. None: nothing to measure."""

    jobs: int
    users: int
    mean_wait: float
    median_wait: int
    wait_95: int
    longest_wait: int
    mean_turnaround: float
    mean_slowdown: float
    utilisation: float
    loss_of_capacity: float
    makespan: int
    jain: float | None


class MeasureAccumulator:
    """Accumulator of measures during a simulation, 8 bytes for each job."""

    def __init__(self) -> None:
        self._waits = array("q")
        self._users: dict[int, list[float]] = {}
        self._slowdowns = 0.0
        self._used = self._ran = self._end = 0
        self._first = FOR_EVER

    def take(self, started: StartColumns) -> None:
        """Add jobs that start to the measures."""
        at, runs = started.at, started.runs
        waits = array("q", map(sub, at, started.submitted))
        self._waits.extend(waits)
        self._used += sum(map(mul, runs, started.processors))
        self._ran += sum(runs)
        self._end = max(self._end, *map(add, at, runs))
        self._first = min(self._first, *started.submitted)
        users, total = self._users, self._slowdowns
        for wait, run, user in zip(waits, runs, started.users, strict=True):
            slowdown = (wait + run) / max(SHORT_RUN, run)
            if slowdown < 1.0:
                slowdown = 1.0
            total += slowdown
            sums = users.get(user)
            if sums is None:
                users[user] = [1, slowdown]
            else:
                sums[0] += 1
                sums[1] += slowdown
        self._slowdowns = total

    def figures(self, size: int, lost: int) -> ScheduleMeasures | None:
        """Return the measures, with the `lost` processor-seconds of the clock, or None."""
        jobs = len(self._waits)
        if not jobs:
            return None
        waits = sorted(self._waits)
        makespan = self._end - self._first
        return ScheduleMeasures(
            jobs=jobs,
            users=len(self._users),
            mean_wait=sum(waits) / jobs,
            median_wait=waits[(jobs - 1) // 2],
            wait_95=waits[(jobs * 95 + 99) // 100 - 1],
            longest_wait=waits[-1],
            mean_turnaround=(sum(waits) + self._ran) / jobs,
            mean_slowdown=self._slowdowns / jobs,
            utilisation=self._used / (size * makespan),
            loss_of_capacity=lost / (size * makespan),
            makespan=makespan,
            jain=jain([total / count for count, total in self._users.values()]),
        )


def jain(values: list[float]) -> float | None:
    """Return Jain's index; 1 for a single value. None if there is no value but zero."""
    if not any(values):
        return None
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


class StartColumns(NamedTuple):
    """Started jobs by their starts `at`. Other columns are those of `TraceJob`."""

    at: Sequence[int]
    numbers: Sequence[int]
    submitted: Sequence[int]
    processors: Sequence[int]
    runs: Sequence[int]
    names: Sequence[int]
    users: Sequence[int]
    groups: Sequence[int]


def in_columns(job_starts: Sequence[JobStarts]) -> StartColumns:
    """Return the columns of some start times, at least one."""
    of = dict(
        zip(
            TraceJob._fields,
            zip(*[job for _, starts in job_starts for job in starts], strict=True),
            strict=True,
        )
    )
    return StartColumns(
        at=[now for now, starts in job_starts for _ in starts],
        numbers=of["number"],
        submitted=of["submitted"],
        processors=of["processors"],
        runs=of["run"],
        names=of["name"],
        users=of["user"],
        groups=of["group"],
    )


LINES = 4_096


class ScheduleStarts:
    """Starts of all jobs, 24 bytes each."""

    def __init__(self) -> None:
        self._numbers, self._names, self._at = array("q"), array("q"), array("q")

    def take(self, started: StartColumns) -> None:
        self._numbers.extend(started.numbers)
        self._names.extend(started.names)
        self._at.extend(started.at)

    def text(self) -> Iterator[str]:
        """Yield lines `job start`, many at a time: number and second of the trace."""
        names, at = self._names, self._at
        order = sorted(range(len(names)), key=self._numbers.__getitem__)
        for begin in range(0, len(order), LINES):
            yield "".join(
                [f"{names[place]} {at[place]}\n" for place in order[begin : begin + LINES]]
            )

    def fingerprint(self) -> str:
        """Return the SHA-256 of the text. Equal schedules have equal ones."""
        # Imported here: it loads OpenSSL, which most simulations do not need.
        from hashlib import sha256  # noqa: PLC0415

        digest = sha256()
        for lines in self.text():
            digest.update(lines.encode("ascii"))
        return digest.hexdigest()


class JobRun(NamedTuple):
    """Job that ran, in numbers and seconds of the trace. An unknown user or group is -1."""

    job: int
    user: int
    group: int
    submitted: int
    started: int
    ended: int
    processors: int


class JobRuns:
    """All started jobs, 64 bytes each."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._columns = tuple(array("q") for _ in JobRun._fields)

    def take(self, started: StartColumns) -> None:
        """Add a row for each job that starts."""
        ended = [at + run for at, run in zip(started.at, started.runs, strict=True)]
        columns = (
            started.names,
            started.users,
            started.groups,
            started.submitted,
            started.at,
            ended,
            started.processors,
        )
        self._numbers.extend(started.numbers)
        for column, values in zip(self._columns, columns, strict=True):
            column.extend(values)

    def __iter__(self) -> Iterator[JobRun]:
        """Yield the jobs by submit time, then by line of the trace."""
        columns = self._columns
        for place in sorted(range(len(self._numbers)), key=self._numbers.__getitem__):
            yield JobRun(*[column[place] for column in columns])


class LateStarts(NamedTuple):
    """Number of jobs tested, the part that started late, and their mean delay in seconds."""

    jobs: int
    part: float
    mean_delay: float


class FairStarts:
    """Test of every n-th job, by a simulation of all jobs that wait and run when it arrives."""

    def __init__(self, clock: SimulationClock, every: int) -> None:
        self._clock, self._every = clock, every
        self._fair: dict[int, int] = {}
        self._jobs = self._late = self._miss = 0

    def record_arrival(self, job: TraceJob) -> None:
        if job.number % self._every == 0:
            self._fair[job.number] = self._clock.start_without_later(job)

    def take(self, job_starts: JobStarts) -> None:
        """Compare the starts of the sampled jobs with their fair starts."""
        now, starts = job_starts
        for job in starts:
            if job.number % self._every == 0:
                late = max(0, now - self._fair.pop(job.number))
                self._jobs += 1
                self._late += late > 0
                self._miss += late

    def late_starts(self) -> LateStarts | None:
        """Return the result; None if no job was tested."""
        if not self._jobs:
            return None
        return LateStarts(
            self._jobs, self._late / self._jobs, self._miss / self._late if self._late else 0.0
        )
