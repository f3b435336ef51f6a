"""Pictures of a simulation: utilisation, queue, waits and delivered shares under each policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairbank.report.plots.axis import Axis, even, lengths, numbers, time
from fairbank.report.plots.courses import Course as Panel
from fairbank.report.plots.courses import figure as course_figure
from fairbank.report.plots.groups import Group, Range, Words
from fairbank.report.plots.groups import figure as group_figure
from fairbank.report.plots.picture import Picture
from fairbank.simulator.engine.simulation import SimulationResult
from fairbank.simulator.results.delivered_shares import WINDOW
from fairbank.simulator.results.time_series import Size, TimeSeries

ACCOUNTS = 10
"""Number of accounts shown: those furthest from what their shares entitle them to."""
SINCE = "since the first submission"


def pictures(outcomes: Sequence[SimulationResult]) -> Iterator[tuple[str, Picture]]:
    """Yield the name and picture of each figure; none if no job ran.

    Utilisation and queue over time, waits by job size, and delivered shares if accounts have any.
    """
    found = [
        (each.policy, each.course)
        for each in outcomes
        if each.course is not None and each.course.end
    ]
    if not found:
        return
    across = time(max(course.end - course.used.begin for _, course in found), SINCE)
    names = ", ".join(name for name, _ in found)
    yield "utilisation", _utilisation(found, across, names)
    yield "queue", _queue(found, across, names)
    yield "waits", _waits(found, names)
    if outcomes[0].weeks:
        yield "shares", _shares(outcomes, names)
        yield "beyond-shares", _beyond(outcomes, across, names)


Named = Sequence[tuple[str, TimeSeries]]


def _utilisation(found: Named, across: Axis, names: str) -> Picture:
    panels = []
    for name, course in found:
        stretches = [
            (since, until, 100 * used / course.size)
            for since, until, used in course.over_time(course.used)
        ]
        mean = 100 * sum(course.used.sums()) / course.size / (course.end - course.used.begin)
        panels.append(Panel(name, f"mean {mean:.1f} %", stretches))
    about = f"Processors at work over time, in per cent of {found[0][1].size:,}: {names}"
    return course_figure("Utilisation", about, across, even("processors, %", 100, steps=4), panels)


def _queue(found: Named, across: Axis, names: str) -> Picture:
    panels, most = [], 0.0
    for name, course in found:
        stretches = list(course.over_time(course.waiting))
        longest = max(each.mean for each in stretches)
        mean = sum(course.waiting.sums()) / (course.end - course.used.begin)
        hours = (
            course.waiting.width / 3_600
        )  # of the longest queue no more is known than how long it was on average in a stretch
        panels.append(
            Panel(name, f"mean {mean:,.1f}, {longest:,.0f} in the worst {hours:,.1f} h", stretches)
        )
        most = max(most, longest)
    up = numbers("jobs", most) if most > 200 else even("jobs", max(most, 1), steps=4)
    return course_figure(
        "Jobs that wait", f"How many jobs wait over time: {names}", across, up, panels
    )


def _waits(found: Named, names: str) -> Picture:
    sizes = [{size.most: size for size in course.sizes()} for _, course in found]
    machine = found[0][1].size
    groups = [
        Group(
            _processors(one, machine),
            f"{one.jobs:,} job{'s' if one.jobs != 1 else ''}",
            [_range(each.get(one.most)) for each in sizes],
        )
        for one in _first_of_each(sizes)
    ]
    longest = max(max(size.three_quarters, size.mean) for each in sizes for size in each.values())
    marks = ("box: the middle half", "line: the median", "dot: the mean")
    words = Words(
        "How long jobs of each size wait",
        f"Waits by the number of processors: {names}",
        "processors of the job",
        marks,
    )
    return group_figure(words, lengths("wait", longest), [name for name, _ in found], groups)


def _first_of_each(sizes: Iterable[dict[int, Size]]) -> list[Size]:
    known: dict[int, Size] = {}
    for each in sizes:
        known = each | known
    return [known[most] for most in sorted(known)]


def _processors(size: Size, machine: int) -> str:
    most = min(size.most, machine)
    return f"{most:,}" if size.least >= most else f"{size.least:,} to {most:,}"


def _range(size: Size | None) -> Range | None:
    return (
        None if size is None else Range(size.quarter, size.median, size.three_quarters, size.mean)
    )


def _shares(outcomes: Sequence[SimulationResult], names: str) -> Picture:
    delivered = [
        {each.account: each.delivered for each in outcome.delivered} for outcome in outcomes
    ]
    entitled = {each.account: each.entitled for each in outcomes[0].delivered}
    off = {
        each: max(abs(found.get(each, 0.0) - part) for found in delivered)
        for each, part in entitled.items()
    }
    furthest = sorted(entitled, key=lambda each: (-off[each], str(each)))
    rest = furthest[ACCOUNTS:]
    groups = [
        _group(str(each) or "nobody", [each], delivered, entitled) for each in furthest[:ACCOUNTS]
    ]
    groups += [_group(f"{len(rest):,} others", rest, delivered, entitled)] if rest else []
    highest = max(
        max(group.mark or 0.0, *(value for value in group.values if isinstance(value, float)))
        for group in groups
    )
    words = Words(
        "What accounts got of what was delivered",
        f"The part that each account got in the whole simulation, and the part that its shares entitle it to: {names}",
        "account",
        ("line: what its shares", "entitle it to"),
    )
    return group_figure(
        words, even("of what was delivered, %", highest), [each.policy for each in outcomes], groups
    )


Account = int | str


def _group(
    name: str,
    accounts: Sequence[Account],
    delivered: Sequence[dict[Account, float]],
    entitled: dict[Account, float],
) -> Group:
    def of(found: dict[Account, float]) -> float:
        return 100 * sum(found.get(each, 0.0) for each in accounts)

    return Group(name, "", [of(found) for found in delivered], of(entitled) or None)


def _beyond(outcomes: Sequence[SimulationResult], across: Axis, names: str) -> Picture:
    panels = []
    for outcome in outcomes:
        begin = outcome.course.used.begin if outcome.course else 0
        weeks = [
            (week.begin - begin, week.begin + WINDOW - begin, 100 * week.astray)
            for week in outcome.weeks
        ]
        panels.append(Panel(outcome.policy, f"mean {100 * (outcome.astray or 0.0):.1f} %", weeks))
    about = f"Of what was delivered in each week the part that went to accounts beyond their shares: {names}"
    return course_figure(
        "Delivered beyond shares, week by week",
        about,
        across,
        even("of the week, %", 100, steps=4),
        panels,
    )
