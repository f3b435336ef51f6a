"""Fair start times (G. Sabin, G. Kochhar and P. Sadayappan, "Job fairness in non-preemptive job
scheduling", ICPP 2004).

The fair start of a job is its start if no job arrived after it. A job that starts later was delayed
by a later arrival.
"""

from __future__ import annotations

from typing import NamedTuple

from fairbank.simulator.engine.clock import JobStarts, SimulationClock
from fairbank.simulator.traces.workload import TraceJob


class LateStarts(NamedTuple):
    """Number of jobs tested, the part of them that started later than fair, and the mean delay of
    those in seconds.
    """

    jobs: int
    part: float
    mean_delay: float


class FairStarts:
    """Test of every n-th job. Each takes a simulation of its own, of all jobs that wait and run
    when it arrives.
    """

    def __init__(self, clock: SimulationClock, every: int) -> None:
        self._clock, self._every = clock, every
        self._fair: dict[int, int] = {}
        self._jobs = self._late = self._miss = 0

    def record_arrival(self, job: TraceJob) -> None:
        if job.number % self._every == 0:
            self._fair[job.number] = self._clock.start_without_later(job)

    def take(self, job_starts: JobStarts) -> None:
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
