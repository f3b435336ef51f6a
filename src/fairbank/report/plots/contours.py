"""Lines of equal value through a grid of numbers, by marching squares.

A grid is a list of rows of equal length, each number at a corner of the squares. Positions are counted in columns and rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

Grid = Sequence[Sequence[float]]
Position = tuple[float, float]
"""Column and row, with fractions."""

_Edge = tuple[int, int, bool]
"""The side of a square that begins at this column and row, and goes along the row (True) or to the next one."""

_FAR_BELOW = -1e9


def lines(grid: Grid, level: float) -> list[list[Position]]:
    """The lines on which the grid, straight between its corners, has this value: open ones that end at the border, and closed ones."""
    return [[_crossing(grid, level, edge) for edge in chain] for chain in _chains(grid, level)]


def regions(grid: Grid, level: float) -> list[list[Position]]:
    """The outlines of where the grid is at least this: closed, to be filled by the even-odd rule."""
    wide = len(grid[0]) + 2
    below = [_FAR_BELOW] * wide
    moat = [below, *([_FAR_BELOW, *row, _FAR_BELOW] for row in grid), below]
    right, bottom = len(grid[0]) - 1, len(grid) - 1
    return [
        [(min(max(x - 1, 0), right), min(max(y - 1, 0), bottom)) for x, y in line]
        for line in lines(moat, level)
    ]


def _crossing(grid: Grid, level: float, edge: _Edge) -> Position:
    column, row, along = edge
    here, there = grid[row][column], grid[row][column + 1] if along else grid[row + 1][column]
    share = (level - here) / (there - here)
    return (column + share, row) if along else (column, row + share)


def _chains(grid: Grid, level: float) -> Iterator[list[_Edge]]:
    """The crossed sides in the order in which a line passes them."""
    beside: dict[_Edge, list[_Edge]] = {}
    for one, other in _steps(grid, level):
        beside.setdefault(one, []).append(other)
        beside.setdefault(other, []).append(one)
    ends = [edge for edge, neighbours in beside.items() if len(neighbours) == 1]
    for start in ends:
        if start in beside:  # else it was the other end of one
            yield _walked(beside, start)
    while beside:
        start = next(iter(beside))
        yield [*_walked(beside, start), start]


def _walked(beside: dict[_Edge, list[_Edge]], start: _Edge) -> list[_Edge]:
    """The way from a side until it ends or is back, taken out of `beside`."""
    chain = [start]
    while following := [edge for edge in beside.pop(chain[-1]) if edge in beside]:
        chain.append(following[0])
    return chain


def _steps(grid: Grid, level: float) -> Iterator[tuple[_Edge, _Edge]]:
    """The sides by which the line enters and leaves each square."""
    for row, (upper, lower) in enumerate(pairwise(grid)):
        for column, corners in enumerate(zip(upper, upper[1:], lower[1:], lower, strict=False)):
            sides = _STEPS[tuple(each >= level for each in corners)]
            if (
                len(sides) == 2 and sum(corners) / 4 >= level
            ):  # a saddle: the middle says which corners belong together
                sides = _STEPS[tuple(each < level for each in corners)]
            for one, other in sides:
                yield _edge(one, column, row), _edge(other, column, row)


def _edge(side: str, column: int, row: int) -> _Edge:
    """That side of the square whose upper left corner is there."""
    return column + (side == "right"), row + (side == "bottom"), side in ("top", "bottom")


_SIDES = ("top", "right", "bottom", "left")


def _steps_of(corners: Sequence[bool]) -> list[tuple[str, str]]:
    """Between which sides a line passes, the corners told round about from the upper left one: True is at least the level."""
    crossed = [
        side
        for side, (one, other) in zip(_SIDES, pairwise([*corners, corners[0]]), strict=True)
        if one != other
    ]
    if len(crossed) < 4:
        return [(crossed[0], crossed[1])] if crossed else []
    # Two corners that face each other are high; each is cut off from the other.
    return (
        [("left", "top"), ("right", "bottom")]
        if corners[0]
        else [("top", "right"), ("bottom", "left")]
    )


_STEPS = {corners: _steps_of(corners) for corners in product((False, True), repeat=4)}
