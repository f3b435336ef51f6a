"""Explanation of a waiting job of a trace: the range of its start, or why it has none."""

from __future__ import annotations

from fairbank.scheduling.explain.answer import NoStartRange
from fairbank.simulator.results.explanation import SampleSettings, explain_wait
from tests.simulator.test_state import busy, starts_of, stopped

ZERO = 1_000_000_000


def test_too_short_simulated_runs_are_reported() -> None:
    jobs = busy()
    starts = starts_of(jobs, "easy")
    job = max(jobs, key=lambda job: starts[job.number] - job.submitted)
    there = stopped(jobs, "easy", job.submitted)
    enough, few = (
        explain_wait(there, job.number, ZERO, SampleSettings(runs=10, **more))
        for more in ({}, {"passes": 4})
    )
    assert enough.likely is not None
    assert enough.likely.earliest is not None
    assert ZERO + job.submitted < enough.likely.earliest
    assert enough.missing_range_reason is None
    assert (few.likely, few.missing_range_reason) == (None, NoStartRange.TOO_FAR)
    assert (few.expected, few.headline, few.checks) == (
        enough.expected,
        enough.headline,
        enough.checks,
    )
