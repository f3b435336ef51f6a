"""The jobs of a trace, each once, and no more in one second than there is room for."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.core.errors import Malformed
from fairbank.simulator.engine.bank_replay import billable_until
from fairbank.simulator.traces.job_line import SwfJob
from fairbank.simulator.traces.swf import JobStream

SECOND_MAX = 1_000_000
"""Runs submitted in one second: all of them wait or run at that moment, and who waits or runs is kept in memory."""


def distinct(jobs: Iterator[SwfJob]) -> Iterator[SwfJob]:
    """The same jobs, as they are asked for. Raises Malformed, with both lines, for a run that stands twice, and for more than
    SECOND_MAX runs submitted in one second.

    Runs are told apart by number and submit time, and traces are in the order of submit times: so only the jobs of one
    second need to be remembered. Lines with nothing to bill may repeat a number.
    """
    second, known = -1, dict[int, int]()
    for job in jobs:
        if job.submit_time != second:
            second = job.submit_time
            known.clear()
        line = jobs.line if isinstance(jobs, JobStream) else 0
        if billable_until(job) is not None:
            if job.number in known:
                what = f"line {line}: job {job.number} stands in line {known[job.number]} already"
                raise Malformed(what, field="FILE", remedy="keep one line for each job")
            if len(known) == SECOND_MAX:
                what = f"line {line}: more than {SECOND_MAX:,} jobs are submitted in one second"
                raise Malformed(
                    what,
                    field="FILE",
                    remedy="spread their submit times, or replay a part of the trace",
                )
            known[job.number] = line
        yield job
