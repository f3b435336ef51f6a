"""A picture as a value: marks on paper. `svg` and `png` draw the same picture, each in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Point = tuple[float, float]
"""In pixels of the picture: to the right, and down."""

INK, PAPER = "#1a1a1a", "#ffffff"
SIZE = 13.0
"""Of type, where nothing else is said."""


class Path(NamedTuple):
    """Lines through points, or with `fill` the areas within them (each closed; where they overlap evenly often, it is outside).
    `dash`: how long strokes and gaps are, in turn."""

    lines: Sequence[Sequence[Point]]
    stroke: str | None = INK
    width: float = 1.0
    dash: Sequence[float] = ()
    fill: str | None = None


class Box(NamedTuple):
    """A rectangle; `at` is its left upper corner."""

    at: Point
    wide: float
    high: float
    fill: str | None = None
    stroke: str | None = INK
    width: float = 1.0


class Dot(NamedTuple):
    at: Point
    radius: float
    fill: str


class Text(NamedTuple):
    """A line of text with the beginning, the middle or the end of its baseline at a point. `upwards`: turned, to be read from below.
    `edge`: a gap of this colour around the letters, `edge_width` wide."""

    said: str
    at: Point
    anchor: str = "start"
    size: float = SIZE
    bold: bool = False
    colour: str = INK
    upwards: bool = False
    edge: str | None = None
    edge_width: float = 5.0


class Group(NamedTuple):
    """Marks moved to the right and down together."""

    by: Point
    marks: Sequence[Mark]


Mark = Path | Box | Dot | Text | Group


class Picture(NamedTuple):
    """A whole picture, and what it is for those who do not see it."""

    title: str
    about: str
    wide: float
    high: float
    marks: Sequence[Mark]


def line(*points: Point, colour: str = INK, width: float = 1.0, dash: Sequence[float] = ()) -> Path:
    """One line through points."""
    return Path([points], colour, width, dash)
