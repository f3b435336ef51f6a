"""Lines of equal value: through planes, around peaks and between them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.report.plots.contours import Position, lines, regions

PEAK = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]

# No corner has exactly the level that is asked for.
grids = st.integers(2, 6).flatmap(
    lambda wide: st.lists(
        st.lists(st.sampled_from([-3.0, -1.0, 0.0, 1.0, 2.0]), min_size=wide, max_size=wide),
        min_size=2,
        max_size=6,
    )
)
LEVEL = 0.5


def area(outlines: list[list[Position]]) -> float:
    """What they enclose; an outline that runs the other way takes away."""
    return abs(
        sum(
            a[0] * b[1] - b[0] * a[1]
            for line in outlines
            for a, b in zip(line, line[1:] + line[:1], strict=True)
        )
        / 2
    )


def test_a_slope_is_crossed_by_one_straight_line_from_border_to_border() -> None:
    slope = [[0.0, 1.0, 2.0]] * 4
    (line,) = lines(slope, 0.25)
    assert sorted(line) == [(0.25, 0), (0.25, 1), (0.25, 2), (0.25, 3)]
    assert line in (sorted(line), sorted(line, reverse=True))


def test_a_peak_is_surrounded_by_a_closed_line() -> None:
    (ring,) = lines(PEAK, 0.5)
    assert ring[0] == ring[-1]
    assert {*ring} == {(1, 0.5), (1.5, 1), (1, 1.5), (0.5, 1)}


def test_where_all_is_below_or_above_there_is_no_line() -> None:
    assert lines(PEAK, 2) == []
    assert lines(PEAK, -1) == []
    assert regions(PEAK, 2) == []


def test_two_peaks_that_meet_at_a_corner_are_joined_where_the_middle_is_high() -> None:
    low, high = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.4], [0.4, 1.0]]
    assert sorted(sorted(line) for line in lines(low, 0.6)) == [
        [(0, 0.4), (0.4, 0)],
        [(0.6, 1), (1, 0.6)],
    ]
    joined = sorted(
        sorted((round(x, 3), round(y, 3)) for x, y in line) for line in lines(high, 0.6)
    )
    assert joined == [[(0, 0.667), (0.333, 1)], [(0.667, 0), (1, 0.333)]]


def test_a_region_ends_at_the_border() -> None:
    (whole,) = regions(PEAK, -1)
    assert area([whole]) == pytest.approx(4, abs=1e-6)
    assert area(regions([[0.0, 1.0, 2.0]] * 4, 0.5)) == pytest.approx(1.5 * 3, abs=1e-6)
    assert area(regions(PEAK, 0.5)) == pytest.approx(0.5)


@given(grid=grids)
def test_every_line_runs_where_the_grid_has_its_value_and_ends_only_at_the_border(
    grid: list[list[float]],
) -> None:
    right, bottom = len(grid[0]) - 1, len(grid) - 1
    for line in lines(grid, LEVEL):
        for x, y in line:
            column, row = int(x), int(y)
            after = (
                grid[row][min(column + 1, right)] if x % 1 else grid[min(row + 1, bottom)][column]
            )
            assert grid[row][column] + (after - grid[row][column]) * (
                x % 1 or y % 1
            ) == pytest.approx(LEVEL)
        if line[0] != line[-1]:
            assert all(x in (0, right) or y in (0, bottom) for x, y in (line[0], line[-1]))


@given(grid=grids)
def test_every_crossed_side_is_passed_once(grid: list[list[float]]) -> None:
    across = sum((a < LEVEL) != (b < LEVEL) for row in grid for a, b in pairwise(row))
    down = sum(
        (a < LEVEL) != (b < LEVEL)
        for one, two in pairwise(grid)
        for a, b in zip(one, two, strict=True)
    )
    passed = [
        point
        for line in lines(grid, LEVEL)
        for point in (line[:-1] if line[0] == line[-1] else line)
    ]
    assert len(passed) == len(set(passed)) == across + down
