"""A schedule that was made of a recorded workload: its figures, and by what it is known again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

DIGITS = 12
"""So many of a fingerprint are shown."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a trace under a policy. Waits are seconds, utilisation is from 0 to 1; `took` seconds of processor time for the whole
    process; `starts` begins the fingerprint of all starts."""

    trace: str
    policy: str
    jobs: int
    mean_wait: float
    mean_slowdown: float
    utilisation: float
    took: float
    starts: str


def lines(schedules: Iterable[Schedule]) -> Iterator[str]:
    """A table of them for the page."""
    yield "| Trace | Policy | Jobs | Mean wait, s | Mean bounded slowdown | Utilisation | Starts | Took |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- | ---: |"
    for each in schedules:
        figures = f"{each.mean_wait:,.3f} | {each.mean_slowdown:,.4f} | {each.utilisation:.5f}"
        yield f"| {each.trace} | {each.policy} | {each.jobs:,} | {figures} | `{each.starts}` | {each.took:,.2f} s |"
