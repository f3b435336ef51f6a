"""Fair start times (G. Sabin, G. Kochhar and P. Sadayappan, "Job fairness in non-preemptive job scheduling", ICPP 2004).

A job's fair start is when it would start if nobody came after it. Who starts later than that was delayed by somebody who came later.
"""

from __future__ import annotations

from typing import NamedTuple

from fairbank.simulator.engine.clock import JobStarts, SimulationClock
from fairbank.simulator.traces.workload import TraceJob


class LateStarts(NamedTuple):
    """Of the jobs that were looked at: the part that started later than fair, and by how many seconds those did, on average."""

    jobs: int
    part: float
    mean_miss: float


class FairStarts:
    """Looks at every n-th job: each takes a simulation of its own, of all that wait and run when it comes."""

    def __init__(self, clock: SimulationClock, every: int) -> None:
        self._clock, self._every = clock, every
        self._fair: dict[int, int] = {}
        self._jobs = self._late = self._miss = 0

    def arrived(self, job: TraceJob) -> None:
        if job.number % self._every == 0:
            self._fair[job.number] = self._clock.start_without_later(job)

    def take(self, moment: JobStarts) -> None:
        now, starts = moment
        for job in starts:
            if job.number % self._every == 0:
                late = max(0, now - self._fair.pop(job.number))
                self._jobs += 1
                self._late += late > 0
                self._miss += late

    def misses(self) -> LateStarts | None:
        """None where nobody was looked at."""
        if not self._jobs:
            return None
        return LateStarts(
            self._jobs, self._late / self._jobs, self._miss / self._late if self._late else 0.0
        )
