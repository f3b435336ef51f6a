"""Panels over the unit square: both axes from 0 to 1. One has curves, or the contours of a function of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.report.plots.contours import Grid, Position, lines, regions
from fairbank.report.plots.picture import (
    INK,
    PAPER,
    Box,
    Group,
    Mark,
    Path,
    Picture,
    Point,
    Text,
    line,
)

SIDE = 340.0
LEFT, TOP, BOTTOM = 62.0, 40.0, 56.0
SCALE, KEY = 70.0, 136.0  # room on the right for bands, and for the names of curves

_LABEL = 28.0, 18.0  # what the value of a line takes

# Told apart without their colours too: by their dashes, and each by its name at its side.
STYLES: Sequence[tuple[str, Sequence[float]]] = (
    ("#000000", ()),
    ("#0072b2", (9, 4)),
    ("#d55e00", (3, 3)),
    ("#00795a", (12, 4, 3, 4)),
    ("#8f4f7a", (6, 3, 2, 3, 2, 3)),
)
# From pale to dark, of one hue, so that they are in order also in grey.
BANDS = (
    "#f7fbff",
    "#e6f0fa",
    "#d4e5f4",
    "#bfd8ed",
    "#a4c8e4",
    "#84b5da",
    "#639fce",
    "#4587bf",
    "#2b6dab",
    "#175290",
)
_DARK = 8  # from this band on, what stands on it is white


class Axes(NamedTuple):
    """What a panel is about, and what its axes are."""

    title: str
    across: str
    up: str


class Curve(NamedTuple):
    """Values at equal steps from 0 to 1."""

    name: str
    values: Sequence[float]


Panel = Sequence[Mark]


def curves(axes: Axes, shown: Sequence[Curve]) -> Panel:
    """A panel with at most as many curves as there are styles."""
    drawn = _frame(axes)
    for curve, (colour, dash) in zip(shown, STYLES[: len(shown)], strict=True):
        last = len(curve.values) - 1
        points = [_at(step / last, value) for step, value in enumerate(curve.values)]
        drawn.append(Path([points], colour, 2, dash))
    return [*drawn, *key([curve.name for curve in shown], (LEFT + SIDE, TOP))]


def key(names: Sequence[str], corner: Point) -> list[Mark]:
    """Which line is which, to the right of a panel's upper right corner."""
    drawn: list[Mark] = []
    for row, (name, (colour, dash)) in enumerate(zip(names, STYLES[: len(names)], strict=True)):
        x, y = corner[0] + 14, corner[1] + 14 + 22.0 * row
        drawn += [
            line((x, y), (x + 34, y), colour=colour, width=2, dash=dash),
            Text(name, (x + 42, y + 4)),
        ]
    return drawn


def contours(axes: Axes, grid: Grid) -> Panel:
    """A panel with bands between the tenths, which are lines with their values. The grid's rows go up, from 0 to 1."""
    levels = [tenth / 10 for tenth in range(1, 10)]
    steps = len(grid) - 1

    def at(position: Position) -> Point:
        return _at(position[0] / steps, position[1] / steps)

    drawn: list[Mark] = [Box((LEFT, TOP), SIDE, SIDE, fill=BANDS[0], stroke=None)]
    for level, band in zip(levels, BANDS[1:], strict=True):
        drawn.append(
            Path([[at(each) for each in ring] for ring in regions(grid, level)], fill=band)
        )
    ways = {
        level: [[at(each) for each in found] for found in lines(grid, level)] for level in levels
    }
    drawn += [Path(found, width=0.8) for found in ways.values() if found]
    return [*drawn, *_frame(axes), *_labels(ways), *_scale()]


def _labels(ways: Mapping[float, Sequence[Sequence[Point]]]) -> list[Mark]:
    """The value of each line on it, where there is room."""
    drawn, places = list[Mark](), list[Point]()
    for band, (level, found) in enumerate(ways.items(), start=1):
        others = [
            point
            for other, way in ways.items()
            if other != level
            for each in way
            for point in each[::4]
        ]
        place = _roomiest([point for each in found for point in each], [*others, *places])
        if place and not any(
            abs(place[0] - x) < _LABEL[0] and abs(place[1] - y) < _LABEL[1] for x, y in places
        ):
            places.append(place)
            drawn.append(_label(f"{level:g}", place, band))
    return drawn


def _scale() -> list[Mark]:
    """Which band is from where to where, on the right of the panel."""
    drawn, wide, high = list[Mark](), 14.0, SIDE / len(BANDS)
    for number, band in enumerate(BANDS):
        x, y = LEFT + SIDE + 16, TOP + SIDE - high * (number + 1)
        drawn.append(Box((x, y), wide, high, fill=band, width=0.8))
        if number:
            drawn.append(Text(f"{number / 10:g}", (x + wide + 6, y + high + 4), size=12))
    return drawn


def _roomiest(points: Sequence[Point], others: Sequence[Point]) -> Point | None:
    """Of the points well within the frame the one that is furthest from all others."""
    margin = 16
    within = [
        each
        for each in points
        if LEFT + margin < each[0] < LEFT + SIDE - margin
        and TOP + margin < each[1] < TOP + SIDE - margin
    ]
    far = [
        (min(((x - a) ** 2 + (y - b) ** 2 for a, b in others), default=0.0), (x, y))
        for x, y in within[::2]
    ]
    return max(far)[1] if far else None


def _label(said: str, at: Point, band: int) -> Mark:
    """In a gap of its line."""
    colour = PAPER if band >= _DARK else INK
    return Text(said, (at[0], at[1] + 4), "middle", 12, colour=colour, edge=BANDS[band])


def _at(across: float, up: float) -> Point:
    return LEFT + SIDE * across, TOP + SIDE * (1 - up)


def _frame(axes: Axes) -> list[Mark]:
    drawn: list[Mark] = [Text(axes.title, (LEFT + SIDE / 2, TOP - 14), "middle", bold=True)]
    for fifth in range(6):
        share = fifth / 5
        (x, low), (left, y) = _at(share, 0), _at(0, share)
        drawn.append(Path([[(x, low), (x, low + 5)], [(left - 5, y), (left, y)]]))
        drawn.append(Text(f"{share:g}", (x, low + 20), "middle"))
        drawn.append(Text(f"{share:g}", (left - 9, y + 4), "end"))
    drawn.append(Box((LEFT, TOP), SIDE, SIDE))
    drawn.append(Text(axes.across, (LEFT + SIDE / 2, TOP + SIDE + 44), "middle"))
    drawn.append(Text(axes.up, (18.0, TOP + SIDE / 2), "middle", upwards=True))
    return drawn


def figure(title: str, about: str, panels: Sequence[Panel], *, beside: float) -> Picture:
    """Panels side by side, with so much room on the right of each for what stands `beside` it: SCALE or KEY."""
    wide, high = LEFT + SIDE + beside, TOP + SIDE + BOTTOM
    placed = [Group((wide * place, 0), panel) for place, panel in enumerate(panels)]
    return Picture(title, about, wide * len(panels), high, placed)
