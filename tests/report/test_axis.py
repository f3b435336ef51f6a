"""Axes end at round numbers, say their units, and put each value in its place."""

from __future__ import annotations

import pytest

from fairbank.report.plots.axis import DAY, HOUR, MINUTE, Axis, even, lengths, numbers, time


def told(axis: Axis) -> list[str]:
    return [said for _, said in axis.ticks]


@pytest.mark.parametrize(
    ("high", "ticks"),
    [
        (100, ["0", "20", "40", "60", "80", "100"]),
        (54.2, ["0", "20", "40", "60"]),
        (3, ["0", "1", "2", "3"]),
        (0.07, ["0", "0.02", "0.04", "0.06", "0.08"]),
        (12_345, ["0", "5,000", "10,000", "15,000"]),
        (0, ["0", "1"]),
    ],
)
def test_ticks_are_round_and_reach_the_highest_value(high: float, ticks: list[str]) -> None:
    axis = even("jobs", high)
    assert told(axis) == ticks
    assert axis.high >= high


@pytest.mark.parametrize(
    ("seconds", "name", "last"),
    [
        (70, "minutes", "1"),
        (3 * HOUR, "hours", "3"),
        (3 * DAY, "hours", "70"),
        (10 * DAY, "days", "10"),
        (333 * DAY, "days", "300"),
    ],
)
def test_time_is_told_in_the_unit_that_suits_it(seconds: float, name: str, last: str) -> None:
    axis = time(seconds, "since then")
    assert axis.name == f"{name} since then"
    assert told(axis)[0] == "0"
    assert told(axis)[-1] == last
    assert axis.high == seconds


@pytest.mark.parametrize(
    ("longest", "last"),
    [(0, "1 min"), (59, "1 min"), (HOUR, "1 h"), (2 * DAY, "4 days"), (10**9, "1,000 days")],
)
def test_lengths_of_time_have_names(longest: float, last: str) -> None:
    axis = lengths("wait", longest)
    assert told(axis)[-1] == last
    assert axis.place(longest) <= 1


def test_a_bent_axis_gives_room_to_the_short_ones() -> None:
    axis = lengths("wait", 20 * DAY)
    places = [axis.place(value) for value in (0, MINUTE, HOUR, DAY, axis.high)]
    assert places[0] == 0
    assert places[-1] == 1
    assert places == sorted(places)
    assert axis.place(HOUR) > 0.3


@pytest.mark.parametrize(
    ("high", "ticks"),
    [
        (0, ["0", "1", "10"]),
        (11, ["0", "1", "10", "100"]),
        (16_099, ["0", "10", "100", "1,000", "10,000", "100,000"]),
    ],
)
def test_numbers_of_things_go_by_powers_of_ten(high: float, ticks: list[str]) -> None:
    assert told(numbers("jobs", high)) == ticks


def test_what_is_beyond_stays_at_the_edge() -> None:
    assert even("%", 100).place(170) == 1
    assert even("%", 100).place(-3) == 0
