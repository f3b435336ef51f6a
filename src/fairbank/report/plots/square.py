"""Panels over the unit square: both axes from 0 to 1. One has curves, or the contours of a function of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.report.plots.contours import Grid, Position, lines, regions
from fairbank.report.plots.svg import INK, PAPER, Point, document, element, path, text

SIDE = 340.0
LEFT, TOP, BOTTOM = 62.0, 40.0, 56.0
SCALE, KEY = 70.0, 136.0  # room on the right for bands, and for the names of curves

_LABEL = 28.0, 18.0  # what the value of a line takes

# Told apart without their colours too: by their dashes, and each by its name at its side.
STYLES = (("#000000", None), ("#0072b2", "9 4"), ("#d55e00", "3 3"), ("#00795a", "12 4 3 4"), ("#8f4f7a", "6 3 2 3 2 3"))
# From pale to dark, of one hue, so that they are in order also in grey.
BANDS = ("#f7fbff", "#e6f0fa", "#d4e5f4", "#bfd8ed", "#a4c8e4", "#84b5da", "#639fce", "#4587bf", "#2b6dab", "#175290")
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


def curves(axes: Axes, shown: Sequence[Curve]) -> str:
    """A panel with at most as many curves as there are styles."""
    drawn = [_frame(axes)]
    for curve, (colour, dash) in zip(shown, STYLES[: len(shown)], strict=True):
        last = len(curve.values) - 1
        points = [_at(step / last, value) for step, value in enumerate(curve.values)]
        drawn.append(path([points], fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash))
    return "\n".join([*drawn, *_key(shown)])


def _key(shown: Sequence[Curve]) -> list[str]:
    """Which line is which, on the right of the panel."""
    drawn = []
    for row, (curve, (colour, dash)) in enumerate(zip(shown, STYLES[: len(shown)], strict=True)):
        x, y = LEFT + SIDE + 14, TOP + 14 + 22.0 * row
        drawn.append(path([[(x, y), (x + 34, y)]], fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dash))
        drawn.append(text(curve.name, (x + 42, y + 4)))
    return drawn


def contours(axes: Axes, grid: Grid) -> str:
    """A panel with bands between the tenths, which are lines with their values. The grid's rows go up, from 0 to 1."""
    levels = [tenth / 10 for tenth in range(1, 10)]
    steps = len(grid) - 1

    def at(position: Position) -> Point:
        return _at(position[0] / steps, position[1] / steps)

    drawn = [element("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, fill=BANDS[0])]
    for level, band in zip(levels, BANDS[1:], strict=True):
        drawn.append(path([[at(each) for each in ring] for ring in regions(grid, level)], closed=True, fill=band, fill_rule="evenodd"))
    ways = {level: [[at(each) for each in line] for line in lines(grid, level)] for level in levels}
    drawn += [path(found, fill="none", stroke=INK, stroke_width=0.8) for found in ways.values() if found]
    return "\n".join([*drawn, _frame(axes), *_labels(ways), *_scale()])


def _labels(ways: Mapping[float, Sequence[Sequence[Point]]]) -> list[str]:
    """The value of each line on it, where there is room."""
    drawn, places = [], list[Point]()
    for band, (level, found) in enumerate(ways.items(), start=1):
        others = [point for other, way in ways.items() if other != level for line in way for point in line[::4]]
        place = _roomiest([point for line in found for point in line], [*others, *places])
        if place and not any(abs(place[0] - x) < _LABEL[0] and abs(place[1] - y) < _LABEL[1] for x, y in places):
            places.append(place)
            drawn.append(_label(f"{level:g}", place, band))
    return drawn


def _scale() -> list[str]:
    """Which band is from where to where, on the right of the panel."""
    drawn, wide, high = [], 14.0, SIDE / len(BANDS)
    for number, band in enumerate(BANDS):
        x, y = LEFT + SIDE + 16, TOP + SIDE - high * (number + 1)
        drawn.append(element("rect", x=x, y=y, width=wide, height=high, fill=band, stroke=INK, stroke_width=0.8))
        if number:
            drawn.append(text(f"{number / 10:g}", (x + wide + 6, y + high + 4), font_size=12))
    return drawn


def _roomiest(points: Sequence[Point], others: Sequence[Point]) -> Point | None:
    """Of the points well within the frame the one that is furthest from all others."""
    margin = 16
    within = [each for each in points if LEFT + margin < each[0] < LEFT + SIDE - margin and TOP + margin < each[1] < TOP + SIDE - margin]
    far = [(min(((x - a) ** 2 + (y - b) ** 2 for a, b in others), default=0.0), (x, y)) for x, y in within[::2]]
    return max(far)[1] if far else None


def _label(said: str, at: Point, band: int) -> str:
    """In a gap of its line, for not every reader of SVG can paint an outline beneath its letters."""
    place, style = (at[0], at[1] + 4), {"text_anchor": "middle", "font_size": 12}
    gap = text(said, place, **style, fill=BANDS[band], stroke=BANDS[band], stroke_width=5)
    return gap + text(said, place, **style, fill=PAPER if band >= _DARK else INK)


def _at(across: float, up: float) -> Point:
    return LEFT + SIDE * across, TOP + SIDE * (1 - up)


def _frame(axes: Axes) -> str:
    drawn = [text(axes.title, (LEFT + SIDE / 2, TOP - 14), text_anchor="middle", font_weight="bold")]
    for fifth in range(6):
        share = fifth / 5
        (x, low), (left, y) = _at(share, 0), _at(0, share)
        drawn.append(path([[(x, low), (x, low + 5)], [(left - 5, y), (left, y)]], fill="none", stroke=INK))
        drawn.append(text(f"{share:g}", (x, low + 20), text_anchor="middle"))
        drawn.append(text(f"{share:g}", (left - 9, y + 4), text_anchor="end"))
    drawn.append(element("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, fill="none", stroke=INK))
    drawn.append(text(axes.across, (LEFT + SIDE / 2, TOP + SIDE + 44), text_anchor="middle"))
    middle = (18.0, TOP + SIDE / 2)
    drawn.append(text(axes.up, middle, text_anchor="middle", transform=f"rotate(-90 {middle[0]:g} {middle[1]:g})"))
    return "\n".join(drawn)


def figure(title: str, about: str, panels: Sequence[str], *, beside: float) -> str:
    """Panels side by side, with so much room on the right of each for what stands `beside` it: SCALE or KEY."""
    wide, high = LEFT + SIDE + beside, TOP + SIDE + BOTTOM
    placed = [element("g", "\n", panel, "\n", transform=f"translate({wide * place:g} 0)") for place, panel in enumerate(panels)]
    return document(title, about, wide * len(panels), high, placed)
