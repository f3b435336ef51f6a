"""Schedule of a recorded workload: its figures and its fingerprint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

DIGITS = 12
"""Number of digits of a fingerprint that are shown."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a trace under a policy: waits in seconds, utilisation from 0 to 1, `took` in
    seconds of CPU time of the whole process. `starts` is the beginning of the fingerprint of all
    starts.
    """

    trace: str
    policy: str
    jobs: int
    mean_wait: float
    mean_slowdown: float
    utilisation: float
    took: float
    starts: str


def lines(schedules: Iterable[Schedule]) -> Iterator[str]:
    """Yield the schedules as a Markdown table."""
    yield (
        "| Trace | Policy | Jobs | Mean wait, s | Mean bounded slowdown | Utilisation | Starts |"
        " Took |"
    )
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- | ---: |"
    for schedule in schedules:
        figures = (
            f"{schedule.mean_wait:,.3f} | {schedule.mean_slowdown:,.4f}"
            f" | {schedule.utilisation:.5f}"
        )
        yield (
            f"| {schedule.trace} | {schedule.policy} | {schedule.jobs:,} | {figures} |"
            f" `{schedule.starts}` | {schedule.took:,.2f} s |"
        )
