"""The figures of simulations, one series for each policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.report.plots.figures import (
    Axis,
    Caption,
    Figure,
    Group,
    GroupFigure,
    LineFigure,
    Panel,
    Quartiles,
    Series,
    count_axis,
    duration_axis,
    stairs,
    time_axis,
)
from fairbank.simulator.engine.simulation import SimulationResult
from fairbank.simulator.results.delivered_shares import WINDOW
from fairbank.simulator.results.time_series import SizeClass, TimeSeries

ACCOUNTS = 10
"""Accounts in a figure: those whose delivered share differs most from their own share."""

Account = int | str


class _Sketch(NamedTuple):
    """Common parts of all figures of one simulation."""

    courses: Sequence[tuple[str, TimeSeries]]
    across: Axis
    unit: int  # of the horizontal axis, in seconds
    names: str
    source: str
    command: str

    def caption(self, title: str, about: str) -> Caption:
        return Caption(title, f"{about}: {self.names}", self.source, self.command)

    def panel(
        self, name: str, number: int, up: Axis, stretches: Iterable[tuple[float, float, float]]
    ) -> Panel:
        scaled = [
            (since / self.unit, until / self.unit, value) for since, until, value in stretches
        ]
        return Panel(up, [Series(name, stairs(scaled), number)], filled=True)


def figures(
    outcomes: Sequence[SimulationResult], source: str, command: str
) -> Iterator[tuple[str, Figure]]:
    """Yield the figures with their names; none if no job ran.

    They show utilisation, queue and waits, and, where accounts have shares, what accounts got.

    Args:
        outcomes: results of the policies over one workload.
        source: name of the data, printed below each figure.
        command: command that draws the figures again, printed below each.
    """
    courses = [
        (outcome.policy, outcome.time_series)
        for outcome in outcomes
        if outcome.time_series is not None and outcome.time_series.end
    ]
    if not courses:
        return
    seconds = max(course.end - course.used.begin for _, course in courses)
    names = ", ".join(name for name, _ in courses)
    sketch = _Sketch(courses, *time_axis(seconds, "the first submission"), names, source, command)
    yield "utilisation", _utilisation(sketch)
    yield "queue", _queue(sketch)
    yield "waits", _waits(sketch)
    if outcomes[0].weeks:
        yield "shares", _shares(outcomes, sketch)
        yield "beyond-shares", _beyond_shares(outcomes, sketch)


def _utilisation(sketch: _Sketch) -> Figure:
    panels, up = [], Axis("processors (%)", 0, 100)
    for number, (name, course) in enumerate(sketch.courses):
        stretches = [
            (since, until, 100 * used / course.size)
            for since, until, used in course.over_time(course.used)
        ]
        mean = 100 * sum(course.used.sums()) / course.size / (course.end - course.used.begin)
        panels.append(sketch.panel(f"{name}: mean {mean:.1f} %", number, up, stretches))
    processors = sketch.courses[0][1].size
    about = f"Processors in use over time, in per cent of {processors:,}"
    title = f"Utilisation of {processors:,} processors"
    return LineFigure(sketch.caption(title, about), sketch.across, panels)


def _queue(sketch: _Sketch) -> Figure:
    waiting = [list(course.over_time(course.waiting)) for _, course in sketch.courses]
    longest = [max(stretch.mean for stretch in stretches) for stretches in waiting]
    up, panels = count_axis("jobs", max(longest)), []
    for number, (name, course) in enumerate(sketch.courses):
        mean = sum(course.waiting.sums()) / (course.end - course.used.begin)
        # The simulator keeps means over stretches of time, so the longest queue is one of these.
        hours = course.waiting.width / 3_600
        figures = f"mean {mean:,.1f}, {longest[number]:,.0f} in the worst {hours:,.1f} h"
        panels.append(sketch.panel(f"{name}: {figures}", number, up, waiting[number]))
    caption = sketch.caption("Waiting jobs", "Number of waiting jobs over time")
    return LineFigure(caption, sketch.across, panels)


def _waits(sketch: _Sketch) -> Figure:
    sizes = [{size.most: size for size in course.sizes()} for _, course in sketch.courses]
    # Policies run the same jobs; one that refuses jobs may lack a size that another has.
    of_any_policy: dict[int, SizeClass] = {}
    for of_policy in reversed(sizes):
        of_any_policy |= of_policy
    processors = sketch.courses[0][1].size
    groups = [
        Group(
            _processors(size, processors),
            [_quartiles(of_policy.get(most)) for of_policy in sizes],
            remark=f"{size.jobs:,} job{'s' if size.jobs != 1 else ''}",
        )
        for most, size in sorted(of_any_policy.items())
    ]
    longest = max(
        max(size.three_quarters, size.mean) for of_policy in sizes for size in of_policy.values()
    )
    return GroupFigure(
        sketch.caption("Waits by size of job", "Waits by the number of processors"),
        "processors of the job (number)",
        duration_axis("wait", longest),
        [name for name, _ in sketch.courses],
        groups,
    )


def _processors(size: SizeClass, machine: int) -> str:
    most = min(size.most, machine)
    return f"{most:,}" if size.least >= most else f"{size.least:,} to {most:,}"


def _quartiles(size: SizeClass | None) -> Quartiles | None:
    if size is None:
        return None
    return Quartiles(size.quarter, size.median, size.three_quarters, size.mean)


def _shares(outcomes: Sequence[SimulationResult], sketch: _Sketch) -> Figure:
    delivered = [{row.account: row.delivered for row in outcome.delivered} for outcome in outcomes]
    entitled = {row.account: row.due for row in outcomes[0].delivered}
    error = {
        account: max(abs(of_policy.get(account, 0.0) - part) for of_policy in delivered)
        for account, part in entitled.items()
    }
    accounts = sorted(entitled, key=lambda account: (-error[account], str(account)))
    rest = accounts[ACCOUNTS:]
    shown = [(str(account) or "(no account)", [account]) for account in accounts[:ACCOUNTS]]
    shown += [(f"{len(rest):,} others", rest)] if rest else []
    groups = [
        Group(name, [_per_cent(of, members) for of in delivered], _per_cent(entitled, members))
        for name, members in shown
    ]
    return GroupFigure(
        sketch.caption(
            "Processor time of accounts and their shares",
            "Part of the delivered time that each account got, and that its shares entitle it to",
        ),
        f"account (the {ACCOUNTS} that differ most from their shares)" if rest else "account (all)",
        Axis("part of the delivered time (%)"),
        [outcome.policy for outcome in outcomes],
        groups,
        line="line: what its shares entitle it to",
    )


def _per_cent(parts: Mapping[Account, float], accounts: Iterable[Account]) -> float:
    return 100 * sum(parts.get(account, 0.0) for account in accounts)


def _beyond_shares(outcomes: Sequence[SimulationResult], sketch: _Sketch) -> Figure:
    panels, up = [], Axis("delivered (% of the week)", 0, 100)
    for number, outcome in enumerate(outcomes):
        begin = outcome.time_series.used.begin if outcome.time_series else 0
        weeks = [
            (week.begin - begin, week.begin + WINDOW - begin, 100 * week.share_error)
            for week in outcome.weeks
        ]
        name = f"{outcome.policy}: mean {100 * (outcome.share_error or 0.0):.1f} %"
        panels.append(sketch.panel(name, number, up, weeks))
    caption = sketch.caption(
        "Delivered beyond shares, week by week",
        "Part of each week's delivered time that went to accounts beyond their shares",
    )
    return LineFigure(caption, sketch.across, panels)
