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
from operator import add, mul, sub
from typing import NamedTuple

from fairbank.scheduling.snapshot import FOR_EVER
from fairbank.simulator.results.starts import StartColumns

SHORT_RUN = 10
"""Seconds. A shorter run counts as this long, as is common in the literature."""


class ScheduleMeasures(NamedTuple):
    """Measures of one schedule. Times are seconds; parts of the machine are from 0 to 1. None:
    nothing to measure.
    """

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
        """Return the measures on `size` processors, with the `lost` processor-seconds of the clock;
        None if no job ran.
        """
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
    """Return Jain's index. None for fewer than two values, and if all are zero."""
    if len(values) < 2 or not any(values):
        return None
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))
