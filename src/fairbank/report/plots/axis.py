"""Axes that say what they measure and in which unit, with ticks at round numbers; and the frame of a panel with one across and one up."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log1p, log10
from typing import NamedTuple

from fairbank.report.plots.picture import INK, Box, Mark, Point, Text, line

PALE = "#cccccc"
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


class Axis(NamedTuple):
    """From `low` to `high`, with what is written at which value. With `bent` the scale is even below that value, and logarithmic beyond."""

    name: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    bent: float | None = None

    def place(self, value: float) -> float:
        """From 0 to 1; what is beyond stays at the edge."""
        value = min(max(value, self.low), self.high)
        if self.bent is not None:
            return log1p((value - self.low) / self.bent) / log1p((self.high - self.low) / self.bent)
        return (value - self.low) / (self.high - self.low)


def even(name: str, high: float, *, steps: int = 5) -> Axis:
    """From 0 to the first tick from `high` on: about so many steps of 1, 2 or 5 times a power of ten."""
    step = _round_step(high / steps)
    count = max(1, -int(-high // step))
    return Axis(
        name,
        0,
        count * step,
        [(number * step, f"{number * step:,.10g}") for number in range(count + 1)],
    )


def time(seconds: float, since: str) -> Axis:
    """So long, in minutes, hours or days."""
    unit, word = next(
        ((unit, word) for unit, word in _UNITS if seconds <= 3 * 24 * unit), (DAY, "days")
    )
    step = _round_step(seconds / unit / 8)
    ticks = [
        (number * step * unit, f"{number * step:,.10g}")
        for number in range(int(seconds / unit / step) + 1)
    ]
    return Axis(f"{word} {since}", 0, max(seconds, 1.0), ticks)


_UNITS = ((MINUTE, "minutes"), (HOUR, "hours"))
_LENGTHS = (
    *(
        (0.0, "0"),
        (MINUTE, "1 min"),
        (10 * MINUTE, "10 min"),
        (HOUR, "1 h"),
        (6 * HOUR, "6 h"),
        (DAY, "1 day"),
        (4 * DAY, "4 days"),
    ),
    *(
        (14 * DAY, "2 weeks"),
        (60 * DAY, "60 days"),
        (240 * DAY, "240 days"),
        (1_000 * DAY, "1,000 days"),
    ),
)


def lengths(name: str, longest: float) -> Axis:
    """Lengths of time from none to the first tick beyond `longest`: beyond a minute by how many times as long."""
    count = next(
        (number for number, (value, _) in enumerate(_LENGTHS) if value >= longest),
        len(_LENGTHS) - 1,
    )
    ticks = _LENGTHS[: max(count, 1) + 1]
    return Axis(name, 0, max(ticks[-1][0], longest), ticks, bent=MINUTE)


def numbers(name: str, high: float) -> Axis:
    """Numbers of things, by powers of ten from 1 on to the first beyond `high`."""
    powers = max(1, -floor(-log10(max(high, 1))))
    told = range(powers > 3, powers + 1)  # with many of them there is no room for 0 and 1
    return Axis(
        name,
        0,
        10.0**powers,
        [(0, "0"), *((10.0**power, f"{10**power:,}") for power in told)],
        bent=1.0,
    )


def _round_step(least: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not less."""
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return next(
        (times * power for times in (1, 2, 5) if times * power >= least * (1 - 1e-9)), 10 * power
    )


class Field(NamedTuple):
    """Where a panel lies in its picture: its left upper corner, and how large it is."""

    corner: Point
    wide: float
    high: float

    def at(self, across: float, up: float) -> Point:
        """From parts of it: 0, 0 is its lower left corner."""
        return self.corner[0] + self.wide * across, self.corner[1] + self.high * (1 - up)


NAME_AWAY = 58.0
"""How far the name of the axis that goes up is from the field."""


def upwards(field: Field, axis: Axis) -> list[Mark]:
    """Lines across the field at the ticks, with what is written there, and the name of the axis."""
    drawn: list[Mark] = []
    for value, said in axis.ticks:
        left, y = field.at(0, axis.place(value))
        drawn += [
            line((left, y), (left + field.wide, y), colour=PALE),
            Text(said, (left - 8, y + 4), "end", 12),
        ]
    return [
        *drawn,
        Text(
            axis.name,
            (field.corner[0] - NAME_AWAY, field.corner[1] + field.high / 2),
            "middle",
            upwards=True,
        ),
    ]


def along(field: Field, axis: Axis) -> list[Mark]:
    """Ticks below the field, and the name of the axis."""
    drawn: list[Mark] = []
    for value, said in axis.ticks:
        x, low = field.at(axis.place(value), 0)
        drawn += [line((x, low), (x, low + 5), colour=INK), Text(said, (x, low + 19), "middle", 12)]
    return [
        *drawn,
        Text(
            axis.name,
            (field.corner[0] + field.wide / 2, field.corner[1] + field.high + 40),
            "middle",
        ),
    ]


def border(field: Field) -> Mark:
    """To be drawn last, so that nothing covers it."""
    return Box(field.corner, field.wide, field.high)
