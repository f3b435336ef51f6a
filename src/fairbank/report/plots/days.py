"""Curves over days, one panel above the other: what became of a figure from day to day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from math import log2
from typing import NamedTuple

from fairbank.report.plots.square import STYLES
from fairbank.report.plots.svg import INK, Point, document, element, path, text

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


class Course(NamedTuple):
    """A curve: its name, and its value on each day that has one. Days are counted from 1970."""

    name: str
    days: Sequence[tuple[int, float]]


def figure(title: str, about: str, panels: Sequence[tuple[Scale, Sequence[Course]]]) -> str:
    """The panels, over the same days; each with at most as many curves as there are styles. A day alone is a dot; where days are missing
    the curve is broken."""
    known = [day for _, courses in panels for course in courses for day, _ in course.days]
    first, last = min(known, default=0), max(known, default=0)
    high = TOP + HIGH + BOTTOM
    placed = [
        element("g", "\n", _panel(scale, courses, first, last), "\n", transform=f"translate(0 {high * number:g})")
        for number, (scale, courses) in enumerate(panels)
    ]
    return document(title, about, LEFT + WIDE + KEY, high * len(panels), [text(title, (LEFT, 22), font_weight="bold"), *placed])


def day_name(day: int) -> str:
    """`2026-11-21`."""
    return date.fromordinal(_EPOCH + day).isoformat()


def _panel(scale: Scale, courses: Sequence[Course], first: int, last: int) -> str:
    drawn = [_frame(scale, first, last)]
    for row, (course, (colour, dash)) in enumerate(zip(courses, STYLES[: len(courses)], strict=True)):
        points = [(day, _at(scale, day, value, first, last)) for day, value in course.days]
        lines = _unbroken(points)
        drawn.append(path([line for line in lines if len(line) > 1], fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash))
        drawn += [element("circle", cx=line[0][0], cy=line[0][1], r=3.0, fill=colour) for line in lines if len(line) == 1]
        x, y = LEFT + WIDE + 14, TOP + 14 + 22.0 * row
        drawn.append(path([[(x, y), (x + 34, y)]], fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash))
        drawn.append(text(_short(course.name), (x + 42, y + 4)))
    return "\n".join(drawn)


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


def _frame(scale: Scale, first: int, last: int) -> str:
    drawn = []
    for tick in scale.ticks:
        _, y = _at(scale, first, tick, first, last)
        drawn.append(path([[(LEFT, y), (LEFT + WIDE, y)]], fill="none", stroke=INK if scale.halving and tick == 1 else _PALE))
        drawn.append(text(f"{tick:g}", (LEFT - 9, y + 4), text_anchor="end"))
    steps = min(TICKS, last - first) or 1
    for day in sorted({first + (last - first) * step // steps for step in range(steps + 1)}):
        x, low = _at(scale, day, scale.low, first, last)
        drawn.append(path([[(x, low), (x, low + 5)]], fill="none", stroke=INK))
        drawn.append(text(day_name(day), (x, low + 20), text_anchor="middle", font_size=11))
    drawn.append(element("rect", x=LEFT, y=TOP, width=WIDE, height=HIGH, fill="none", stroke=INK))
    middle = (18.0, TOP + HIGH / 2)
    drawn.append(text(scale.name, middle, text_anchor="middle", transform=f"rotate(-90 {middle[0]:g} {middle[1]:g})"))
    return "\n".join(drawn)
