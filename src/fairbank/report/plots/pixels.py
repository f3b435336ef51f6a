"""Paper of pixels: how much of each a line or an area covers, so that edges are smooth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, hypot

import numpy as np
import numpy.typing as npt

from fairbank.report.plots.picture import Point

Cover = npt.NDArray[np.float64]
"""From 0, not at all, to 1; rows go down."""

_FINE = 4  # lines of an area that are looked at in each row of pixels


class Paper:
    """`wide` by `high` pixels of one colour, to be painted on. What lies outside is not painted."""

    def __init__(self, wide: int, high: int, colour: str) -> None:
        self._pixels = np.empty((high, wide, 3))
        self._pixels[:] = _parts(colour)

    def draw(
        self, lines: Iterable[Sequence[Point]], width: float, colour: str, *, round_ends: bool
    ) -> None:
        """Lines of a pen. Corners are round; ends are cut off, or round too."""
        kept = [each for each in lines if each]
        for (right, down), cover in self._around(kept, width / 2 + 1):
            draw_lines(
                cover,
                [[(x - right, y - down) for x, y in each] for each in kept],
                width,
                round_ends=round_ends,
            )
            self._paint(right, down, cover, colour)

    def fill(self, rings: Iterable[Sequence[Point]], colour: str) -> None:
        """What is within an odd number of the rings."""
        kept = [each for each in rings if each]
        for (right, down), cover in self._around(kept, 1):
            fill(cover, [[(x - right, y - down) for x, y in each] for each in kept])
            self._paint(right, down, cover, colour)

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """Red, green and blue of each pixel."""
        return np.rint(np.clip(self._pixels, 0, 255)).astype(np.uint8)

    def _around(
        self, lines: Sequence[Sequence[Point]], reach: float
    ) -> Iterator[tuple[tuple[int, int], Cover]]:
        """The left upper corner of the part of the paper that the lines may touch, and that part, not covered yet; none when outside."""
        high, wide, _ = self._pixels.shape
        across, down = (
            [x for each in lines for x, _ in each],
            [y for each in lines for _, y in each],
        )
        if across:
            left, right = max(floor(min(across) - reach), 0), min(ceil(max(across) + reach), wide)
            top, bottom = max(floor(min(down) - reach), 0), min(ceil(max(down) + reach), high)
            if left < right and top < bottom:
                yield (left, top), np.zeros((bottom - top, right - left))

    def _paint(self, right: int, down: int, cover: Cover, colour: str) -> None:
        part = self._pixels[down : down + cover.shape[0], right : right + cover.shape[1]]
        part += cover[:, :, None] * (_parts(colour) - part)


def _parts(colour: str) -> npt.NDArray[np.float64]:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.float64)


def draw_lines(
    cover: Cover, lines: Iterable[Sequence[Point]], width: float, *, round_ends: bool
) -> None:
    """Cover lines of a pen."""
    for line in lines:
        last = len(line) - 2
        for at, (one, other) in enumerate(pairwise(line)):
            _segment(cover, one, other, width / 2, at > 0 or round_ends, at < last or round_ends)


def _segment(
    cover: Cover, one: Point, other: Point, half: float, round_begin: bool, round_end: bool
) -> None:
    """Each pixel is covered by as much as its middle is nearer to the segment than the pen reaches; by half on its edge."""
    reach = half + 1
    left, right = sorted((one[0], other[0]))
    top, bottom = sorted((one[1], other[1]))
    rows = slice(max(floor(top - reach), 0), max(ceil(bottom + reach), 0))
    columns = slice(max(floor(left - reach), 0), max(ceil(right + reach), 0))
    part = cover[rows, columns]
    if not part.size:
        return
    y = np.arange(part.shape[0])[:, None] + (rows.start + 0.5 - one[1])
    x = np.arange(part.shape[1])[None, :] + (columns.start + 0.5 - one[0])
    length = hypot(other[0] - one[0], other[1] - one[1])
    along_x, along_y = (
        ((other[0] - one[0]) / length, (other[1] - one[1]) / length) if length else (1.0, 0.0)
    )
    along, across = x * along_x + y * along_y, np.abs(y * along_x - x * along_y)
    before, behind = np.maximum(-along, 0), np.maximum(along - length, 0)
    beyond = np.hypot(before * round_begin, behind * round_end)
    found = np.clip(half + 0.5 - np.hypot(across, beyond), 0, 1)
    if not round_begin:
        found *= np.clip(along + 0.5, 0, 1)
    if not round_end:
        found *= np.clip(length - along + 0.5, 0, 1)
    np.maximum(part, found, out=part)


def fill(cover: Cover, rings: Sequence[Sequence[Point]]) -> None:
    """Cover what is within an odd number of the rings. What is left of the first pixel counts as at its edge."""
    points = [
        (one, other)
        for ring in rings
        for one, other in pairwise([*ring, ring[0]])
        if one[1] != other[1]
    ]
    if not points:
        return
    edges = np.array([[*min(pair, key=_down), *max(pair, key=_down)] for pair in points])
    crossed, x = _crossings(edges, cover.shape[0] * _FINE)
    order = np.lexsort((x, crossed))
    row, x = crossed[order] // _FINE, np.clip(x[order], 0, cover.shape[1])
    sign = np.where(
        np.arange(len(x)) % 2, -1.0, 1.0
    )  # in and out in turn: each line crosses a ring as often in as out
    change = np.zeros((cover.shape[0], cover.shape[1] + 2))
    pixel = x.astype(np.int64)
    np.add.at(change, (row, pixel), sign * (1 - (x - pixel)))
    np.add.at(change, (row, pixel + 1), sign * (x - pixel))
    np.maximum(cover, np.cumsum(change, axis=1)[:, :-2] / _FINE, out=cover)


def _down(point: Point) -> float:
    return point[1]


def _crossings(
    edges: npt.NDArray[np.float64], high: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Which fine lines each edge (from its upper to its lower end) crosses, and where."""
    first = np.clip(np.ceil(edges[:, 1] * _FINE - 0.5), 0, high).astype(np.int64)
    end = np.clip(np.ceil(edges[:, 3] * _FINE - 0.5), 0, high).astype(np.int64)
    count = end - first
    edge = np.repeat(np.arange(len(edges)), count)
    line = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count) + first[edge]
    left, top, right, bottom = edges[edge].T
    return line, left + (right - left) * ((line + 0.5) / _FINE - top) / (bottom - top)
