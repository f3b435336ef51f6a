"""Figures of the bank: burn-down of an allocation, and usage by group or over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from fairbank.core.time import DAY, calendar_name
from fairbank.core.units import MINUTES_IN_SU, show_permille
from fairbank.report.columns import Row
from fairbank.report.plots.figures import (
    Axis,
    Band,
    Caption,
    Figure,
    Group,
    GroupFigure,
    LineFigure,
    Panel,
    Series,
    stairs,
)

TICKS = 6


class BalanceAt(NamedTuple):
    """Available and held credit at a time, in SU-minutes."""

    at: int
    remaining: int
    held: int


class Term(NamedTuple):
    """Term of an allocation, and the projection of its use.

    `ends_with` is the time at which the credit runs out, or the end of the term, with what is
    remaining then; None if the pace is not known. Amounts are in SU-minutes.
    """

    start: int
    end: int
    granted: int
    ends_with: tuple[int, int] | None


def burn_down(
    term: Term, balances: Sequence[BalanceAt], day: Callable[[int], str], caption: Caption
) -> LineFigure:
    """Return the credit over the term: remaining, held, even use, and the projection.

    The held band lies on the remaining credit: its upper edge is what has not been charged.

    Args:
        term: term of the allocation, with the projection of its use.
        balances: remaining and held credit in the order of time.
        day: writes the day of a time.
        caption: text of the figure.
    """

    def point(at: int, minutes: int) -> tuple[float, float]:
        return (at - term.start) / DAY, minutes / MINUTES_IN_SU

    remaining = [point(balance.at, balance.remaining) for balance in balances]
    series = [
        Series("remaining", remaining),
        Series("even use", [point(term.start, term.granted), point(term.end, 0)], 4),
    ]
    if term.ends_with is not None and balances:
        series.append(Series("at this pace", [remaining[-1], point(*term.ends_with)], 1))
    days = (term.end - term.start) / DAY
    held = Band(
        "held by running jobs",
        [
            (x, y, y + balance.held / MINUTES_IN_SU)
            for (x, y), balance in zip(remaining, balances, strict=True)
        ],
    )
    steps = [days * number / TICKS for number in range(TICKS + 1)]
    ticks = [(step, day(term.start + int(step * DAY))) for step in steps]
    low = min([0.0, *(y for _, y in remaining)])
    panel = Panel(Axis("credit (SU)", low), series, band=held)
    return LineFigure(caption, Axis("date", 0, days, ticks=ticks), [panel])


def usage_over_time(
    rows: Sequence[Row], names: Sequence[str], by: str, caption: Caption
) -> LineFigure:
    """Return the usage of each unit over time, one panel below the other.

    Args:
        rows: rows of usage by day, week or month.
        names: all days, weeks or months of the period, in order.
        by: the kind of group.
    """
    places = {name: place for place, name in enumerate(names)}
    units = sorted({str(row["resource_name"]) for row in rows})
    panels = []
    for style, unit in enumerate(units):
        charged = [0.0] * len(names)
        for row in rows:
            if row["resource_name"] == unit and row["group"] in places:
                charged[places[row["group"]]] = row["charged"] / MINUTES_IN_SU
        stretches = [(place, place + 1, value) for place, value in enumerate(charged)]
        series = [Series(unit, stairs(stretches), style % 5)]
        panels.append(Panel(Axis(f"SU per {by}"), series, filled=True))
    step = max(1, -(-len(names) // TICKS))
    ticks = [(place + 0.5, names[place]) for place in range(0, len(names), step)]
    return LineFigure(caption, Axis(by, 0, len(names), ticks=ticks), panels)


def usage_by_group(rows: Sequence[Row], by: str, caption: Caption) -> Iterator[tuple[str, Figure]]:
    """Yield a figure for each unit with its name: charged, and charged but idle, by group.

    Args:
        rows: usage of each group and unit, in SU-minutes.
        by: kind of the groups, which labels them.
        caption: text of the figures; each title ends with the unit.
    """
    for unit in sorted({str(row["resource_name"]) for row in rows}):
        of_unit = [row for row in rows if row["resource_name"] == unit]
        bars = [
            (key, name)
            for key, name in (("charged", "charged"), ("wasted", "of that idle"))
            if any(row[key] is not None for row in of_unit)
        ]
        groups = [
            Group(
                str(row["name"]),
                [None if row[key] is None else row[key] / MINUTES_IN_SU for key, _ in bars],
                remark=show_permille(row["share_permille"]),
            )
            for row in of_unit
        ]
        titled = caption._replace(title=f"{caption.title}: {unit}")
        names = [name for _, name in bars]
        yield unit, GroupFigure(titled, by, Axis(f"SU of {unit}"), names, groups)


def calendar_names(first: str, last: str, by: str) -> list[str]:
    """Return all days, ISO weeks or months of a period, in order.

    Args:
        first: the first day, such as `2026-11-21`.
        last: the last day, included.
        by: `day`, `week` or `month`.
    """
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    days = (begin + timedelta(days=number) for number in range((end - begin).days + 1))
    return list(dict.fromkeys(calendar_name(day, by) for day in days))
