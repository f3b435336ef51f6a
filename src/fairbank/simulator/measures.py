"""What a schedule was worth: to those who waited, to the machine, and how evenly.

* Bounded slowdown of a job: (wait + run) / run, of which no run counts as less than 10 s, and at least 1 (D. G. Feitelson, L. Rudolph,
  U. Schwiegelshohn, K. Sevcik and P. Wong, Job Scheduling Strategies for Parallel Processing, 1997).
* Utilisation: processor-seconds used, of those there were between the first submission and the last end.
* Loss of capacity: of the same, those that were idle although so many processors were waited for.
* Jain's index over users, of their mean bounded slowdowns: 1 where all are alike, 1/n where one of n bears everything (R. Jain,
  D. Chiu and W. Hawe, DEC Research Report TR-301, 1984).
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from fairbank.simulator.clock import Moment

SHORT_RUN = 10
"""Seconds. A shorter run counts as one of this length: the field's habit."""


class Figures(NamedTuple):
    """The measures of one schedule. Times are seconds; shares of the machine are from 0 to 1. None: there was nothing to measure."""

    jobs: int
    users: int
    mean_wait: float
    median_wait: int
    wait_95: int
    longest_wait: int
    mean_slowdown: float
    utilisation: float
    loss_of_capacity: float
    makespan: int
    jain: float | None


class Measures:
    """Adds up while the clock goes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waits = array("q")
        self._slowdowns = 0.0
        self._users: dict[int, list[float]] = {}
        self._used = self._lost = 0
        self._first: int | None = None
        self._last = self._end = self._idle = 0

    def take(self, moment: Moment) -> None:
        """One instant more, in the order of the clock."""
        now, starts, free, wanted = moment
        self._lost += self._idle * (now - self._last)
        self._last, self._idle = now, min(free, wanted)
        if self._first is None:
            self._first = now
        for job in starts:
            wait, run = now - job.submitted, job.run
            self._waits.append(wait)
            slowdown = max(1.0, (wait + run) / max(run, SHORT_RUN))
            self._slowdowns += slowdown
            self._used += run * job.processors
            self._end = max(self._end, now + run)
            user = self._users.get(job.user)
            if user is None:
                self._users[job.user] = [1, slowdown]
            else:
                user[0] += 1
                user[1] += slowdown

    def figures(self) -> Figures | None:
        """What came of it; None where no job ran."""
        jobs = len(self._waits)
        if not jobs or self._first is None:
            return None
        waits = sorted(self._waits)
        makespan = self._end - self._first
        return Figures(
            jobs=jobs,
            users=len(self._users),
            mean_wait=sum(waits) / jobs,
            median_wait=waits[(jobs - 1) // 2],
            wait_95=waits[(jobs * 95 + 99) // 100 - 1],
            longest_wait=waits[-1],
            mean_slowdown=self._slowdowns / jobs,
            utilisation=self._used / (self._size * makespan),
            loss_of_capacity=self._lost / (self._size * makespan),
            makespan=makespan,
            jain=_jain([total / count for count, total in self._users.values()]),
        )


def _jain(values: list[float]) -> float | None:
    """None for fewer than two: one alone is even with himself."""
    if len(values) < 2:
        return None
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))
