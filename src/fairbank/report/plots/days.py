"""Curves over days, one panel above the other: what became of a figure from day to day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from math import log2
from typing import NamedTuple

from fairbank.report.plots.picture import (
    INK,
    Box,
    Dot,
    Group,
    Mark,
    Path,
    Picture,
    Point,
    Text,
    line,
)
from fairbank.report.plots.square import STYLES, key

WIDE, HIGH = 560.0, 220.0
LEFT, TOP, BOTTOM, KEY = 62.0, 40.0, 50.0, 230.0
TICKS = 6
NAME_MAX = 24
"""Letters of a curve's name that there is room for."""

_PALE = "#bbbbbb"
_EPOCH = date(1970, 1, 1).toordinal()


class Scale(NamedTuple):
    """The axis that goes up: from where to where, and what is written at it. `halving`: each doubling takes the same room."""

    name: str
    low: float
    high: float
    ticks: Sequence[float]
    halving: bool = False

    def place(self, value: float) -> float:
        """From 0 at the bottom to 1 at the top; what is beyond stays at the edge."""
        value = min(max(value, self.low), self.high)
        if self.halving:
            return (log2(value) - log2(self.low)) / (log2(self.high) - log2(self.low))
        return (value - self.low) / (self.high - self.low)


LEVEL = Scale("level (1: its share)", 0.125, 8.0, (0.125, 0.25, 0.5, 1, 2, 4, 8), halving=True)
PART = Scale("part of usage", 0.0, 1.0, (0, 0.25, 0.5, 0.75, 1))
FACTOR = PART._replace(name="factor")


class Curve(NamedTuple):
    """A curve: its name, and its value on each day that has one. Days are counted from 1970."""

    name: str
    days: Sequence[tuple[int, float]]


def figure(title: str, about: str, panels: Sequence[tuple[Scale, Sequence[Curve]]]) -> Picture:
    """The panels, over the same days; each with at most as many curves as there are styles. A day alone is a dot; where days are missing
    the curve is broken."""
    known = [day for _, curves in panels for curve in curves for day, _ in curve.days]
    first, last = min(known, default=0), max(known, default=0)
    high = TOP + HIGH + BOTTOM
    placed = [
        Group((0, high * number), _panel(scale, curves, first, last))
        for number, (scale, curves) in enumerate(panels)
    ]
    marks: list[Mark] = [Text(title, (LEFT, 22), bold=True), *placed]
    return Picture(title, about, LEFT + WIDE + KEY, high * len(panels), marks)


def day_name(day: int) -> str:
    """`2026-11-21`."""
    return date.fromordinal(_EPOCH + day).isoformat()


def day_number(name: str) -> int:
    """The day that is named so."""
    return date.fromisoformat(name).toordinal() - _EPOCH


def _panel(scale: Scale, curves: Sequence[Curve], first: int, last: int) -> list[Mark]:
    drawn = _frame(scale, first, last)
    for curve, (colour, dash) in zip(curves, STYLES[: len(curves)], strict=True):
        lines = _unbroken([(day, _at(scale, day, value, first, last)) for day, value in curve.days])
        drawn.append(Path([each for each in lines if len(each) > 1], colour, 2, dash))
        drawn += [Dot(each[0], 3, colour) for each in lines if len(each) == 1]
    return [*drawn, *key([_short(curve.name) for curve in curves], (LEFT + WIDE, TOP))]


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 1]}\u2026"


def _unbroken(points: Sequence[tuple[int, Point]]) -> list[list[Point]]:
    lines: list[list[Point]] = []
    before = None
    for day, point in points:
        if before is None or day != before + 1:
            lines.append([])
        lines[-1].append(point)
        before = day
    return lines


def _at(scale: Scale, day: int, value: float, first: int, last: int) -> Point:
    across = (day - first) / (last - first) if last > first else 0.5
    return LEFT + WIDE * across, TOP + HIGH * (1 - scale.place(value))


def _frame(scale: Scale, first: int, last: int) -> list[Mark]:
    drawn: list[Mark] = []
    for tick in scale.ticks:
        _, y = _at(scale, first, tick, first, last)
        drawn.append(
            line((LEFT, y), (LEFT + WIDE, y), colour=INK if scale.halving and tick == 1 else _PALE)
        )
        drawn.append(Text(f"{tick:g}", (LEFT - 9, y + 4), "end"))
    steps = min(TICKS, last - first) or 1
    for day in sorted({first + (last - first) * step // steps for step in range(steps + 1)}):
        x, low = _at(scale, day, scale.low, first, last)
        drawn.append(line((x, low), (x, low + 5)))
        drawn.append(Text(day_name(day), (x, low + 20), "middle", 11))
    drawn.append(Box((LEFT, TOP), WIDE, HIGH))
    drawn.append(Text(scale.name, (18.0, TOP + HIGH / 2), "middle", upwards=True))
    return drawn
