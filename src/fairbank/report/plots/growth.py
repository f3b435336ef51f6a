"""How something grows with its size: both axes by powers of ten, so that what is linear is a straight line, one up for one to the right."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from fairbank.report.plots.picture import INK, Box, Dot, Mark, Path, Picture, Point, Text, line
from fairbank.report.plots.square import STYLES, key

WIDE, HIGH = 460.0, 340.0
LEFT, TOP, BOTTOM, KEY = 86.0, 40.0, 60.0, 250.0
_PALE = "#bbbbbb"


class Growth(NamedTuple):
    """A curve: its name, and each size with the value there; all above 0."""

    name: str
    points: Sequence[tuple[float, float]]


class Span(NamedTuple):
    """Powers of ten, from one to another."""

    low: int
    high: int

    def place(self, value: float) -> float:
        """From 0 to 1."""
        return (log10(value) - self.low) / (self.high - self.low)

    @property
    def powers(self) -> range:
        return range(self.low, self.high + 1)


def figure(title: str, about: str, across: str, up: str, shown: Sequence[Growth]) -> Picture:
    """At most as many curves as there are styles. `across` and `up` say what the axes are, and their units."""
    sizes = _span([size for each in shown for size, _ in each.points])
    values = _span([value for each in shown for _, value in each.points])
    drawn: list[Mark] = [Text(title, (LEFT, 22), bold=True), *_frame(sizes, values, across, up)]
    for each, (colour, dash) in zip(shown, STYLES[: len(shown)], strict=True):
        points = [_at(sizes.place(size), values.place(value)) for size, value in each.points]
        drawn += [Path([points], colour, 2, dash), *(Dot(point, 3.5, colour) for point in points)]
    drawn += key([each.name for each in shown], (LEFT + WIDE, TOP))
    return Picture(title, about, LEFT + WIDE + KEY, TOP + HIGH + BOTTOM, drawn)


def _span(values: Sequence[float]) -> Span:
    """The powers of ten around the values."""
    low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
    return Span(low, max(high, low + 1))


def _at(across: float, up: float) -> Point:
    return LEFT + WIDE * across, TOP + HIGH * (1 - up)


def _frame(sizes: Span, values: Span, across: str, up: str) -> list[Mark]:
    drawn: list[Mark] = []
    for power in sizes.powers:
        x, low = _at(sizes.place(10.0**power), 0)
        drawn += [line((x, TOP), (x, low), colour=_PALE), line((x, low), (x, low + 5), colour=INK)]
        drawn.append(Text(_power(power), (x, low + 20), "middle"))
    for power in values.powers:
        left, y = _at(0, values.place(10.0**power))
        drawn += [
            line((left, y), (left + WIDE, y), colour=_PALE),
            Text(_power(power), (left - 9, y + 4), "end"),
        ]
    drawn.append(Box((LEFT, TOP), WIDE, HIGH))
    drawn.append(Text(across, (LEFT + WIDE / 2, TOP + HIGH + 44), "middle"))
    drawn.append(Text(up, (22.0, TOP + HIGH / 2), "middle", upwards=True))
    return drawn


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
