"""Descriptions of figures: plain values with text and unit of each axis. `canvas` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10, nan
from typing import Literal, NamedTuple

from fairbank.core.time import DAY, MINUTE

HOUR = 60 * MINUTE

# Five colours of M. Okabe and K. Ito's palette, which colour-blind readers can tell apart on white:
# blue, vermilion, bluish green, reddish purple, black. The dashes serve prints without colour.
STYLES: Sequence[tuple[str, tuple[float, ...]]] = (
    ("#0072B2", ()),
    ("#D55E00", (5, 2)),
    ("#009E73", (2, 2)),
    ("#CC79A7", (7, 2, 2, 2)),
    ("#000000", (5, 2, 1, 2, 1, 2)),
)
SERIES_MAX = len(STYLES)
"""Number of series that one figure can tell apart."""


class Caption(NamedTuple):
    """Text of a figure: its title, and its content in a sentence for readers who do not see it.

    `period` is the time that the figure is of, below the title; empty if there is none. The
    provenance is printed below the figure: `source` names the data (a trace, a seed, a date),
    `command` draws the figure again.
    """

    title: str
    about: str
    source: str
    command: str
    period: str = ""


class Axis(NamedTuple):
    """Axis from `low` to `high` (None: as the data needs). The label contains the unit.

    The scale `symlog` is linear below `bend` and logarithmic above it. Without `ticks`, matplotlib
    chooses round numbers.
    """

    label: str
    low: float | None = 0
    high: float | None = None
    scale: Literal["linear", "log", "symlog"] = "linear"
    bend: float = 1.0
    ticks: Sequence[tuple[float, str]] = ()


class Series(NamedTuple):
    """Line through points (across, up); a point that is not a number is a gap.

    `style` is an index of STYLES: what has one name has one colour in all panels.
    """

    name: str
    points: Sequence[tuple[float, float]]
    style: int = 0


class Band(NamedTuple):
    """Hatched area between a lower and an upper line: points (across, low, high)."""

    name: str
    points: Sequence[tuple[float, float, float]]


class Panel(NamedTuple):
    """Lines over one vertical axis. `filled` fills the area below; `dotted` marks each point."""

    up: Axis
    series: Sequence[Series]
    filled: bool = False
    dotted: bool = False
    band: Band | None = None


class LineFigure(NamedTuple):
    """Panels below each other, over one horizontal axis."""

    caption: Caption
    across: Axis
    panels: Sequence[Panel]


class Contour(NamedTuple):
    """Values from 0 to 1 over the unit square, with their formula. The rows of the grid go up."""

    formula: str
    grid: Sequence[Sequence[float]]


class ContourFigure(NamedTuple):
    """Contours side by side, on one scale of colours."""

    caption: Caption
    across: str
    up: str
    scale: str
    contours: Sequence[Contour]


class Quartiles(NamedTuple):
    """Distribution of a quantity by its quartiles, and its mean."""

    quarter: float
    median: float
    three_quarters: float
    mean: float


class Group(NamedTuple):
    """Bars of one group, one for each series (None: no bar), and a line across all of them.

    Groups of one `panel` share a vertical axis.
    """

    name: str
    values: Sequence[float | Quartiles | None]
    line: float | None = None
    remark: str = ""
    panel: str = ""


class GroupFigure(NamedTuple):
    """Groups of bars side by side, those of a panel together. `names` are the series, `line`
    explains the line.
    """

    caption: Caption
    across: str
    up: Axis
    names: Sequence[str]
    groups: Sequence[Group]
    line: str = ""


Figure = LineFigure | ContourFigure | GroupFigure

_DURATIONS = {
    "0": 0,
    "1 min": MINUTE,
    "10 min": 10 * MINUTE,
    "1 h": HOUR,
    "6 h": 6 * HOUR,
    **{f"{days} day{'s' if days > 1 else ''}": days * DAY for days in (1, 4, 14, 60, 240, 1_000)},
}


def time_axis(seconds: float, since: str) -> tuple[Axis, int]:
    """Return an axis of elapsed time, and its unit (minute, hour or day) in seconds."""
    units = ((MINUTE, "minutes"), (HOUR, "hours"))
    # Up to 72 of a unit can be read; beyond that the next unit is clearer.
    unit, word = next(((u, word) for u, word in units if seconds <= 72 * u), (DAY, "days"))
    return Axis(f"time since {since} ({word})", 0, max(seconds / unit, 1 / unit)), unit


def duration_axis(what: str, longest: float) -> Axis:
    """Return an axis for durations in seconds, from 0 to the first named duration at `longest`.

    It is logarithmic beyond a minute, because waits of minutes and of weeks occur in one workload.
    """
    ticks = [(value, name) for name, value in _DURATIONS.items()]
    last = next((n for n, (value, _) in enumerate(ticks) if value >= longest), len(ticks) - 1)
    ticks = ticks[: max(last, 1) + 1]
    label = f"{what} (time, logarithmic above 1 min)"
    return Axis(label, 0, max(ticks[-1][0], longest), "symlog", MINUTE, ticks)


def count_axis(what: str, most: float) -> Axis:
    """Return an axis for a number of things, logarithmic if they are many."""
    if most <= 200:
        return Axis(f"{what} (number)", 0, max(most * 1.05, 1))
    top = ceil(log10(most) - 1e-9)
    ticks = [(0.0, "0"), *((10.0**power, f"{10**power:,}") for power in range(top + 1))]
    return Axis(f"{what} (number, logarithmic)", 0, 10.0**top, "symlog", 1.0, ticks)


def stairs(stretches: Sequence[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Return the points of (since, until, value); times that no stretch covers become gaps."""
    points: list[tuple[float, float]] = []
    for since, until, value in stretches:
        if points and points[-1][0] != since:
            points.append((since, nan))
        points += [(since, value), (until, value)]
    return points
