"""Figures of growth: what is linear is straight, and each power of ten takes the same room."""

from __future__ import annotations

import pytest

from fairbank.report.plots.growth import HIGH, LEFT, TOP, WIDE, Growth, figure
from fairbank.report.plots.picture import Dot, Path, Picture, Text

LINEAR = Growth("linear", [(1_000, 0.2), (10_000, 2.0), (1_000_000, 200.0)])


def drawn(*shown: Growth) -> Picture:
    return figure("t", "about", "jobs", "ms", shown)


def texts(picture: Picture) -> list[str]:
    return [mark.said for mark in picture.marks if isinstance(mark, Text)]


def test_what_is_linear_is_straight() -> None:
    (curve,) = (
        mark for mark in drawn(LINEAR).marks if isinstance(mark, Path) and len(mark.lines[0]) == 3
    )
    (first, second, last) = curve.lines[0]
    assert (first[0], last[0]) == pytest.approx((LEFT, LEFT + WIDE))
    assert (second[1] - first[1]) / (second[0] - first[0]) == pytest.approx(
        (last[1] - first[1]) / (last[0] - first[0])
    )
    assert first[1] == pytest.approx(TOP + HIGH * (1 - 0.30103 / 4), abs=0.01), (
        "0.2 is three tenths of the way from 0.1 to 1"
    )


def test_what_was_measured_is_a_dot() -> None:
    assert len([mark for mark in drawn(LINEAR).marks if isinstance(mark, Dot)]) == 3


def test_the_powers_of_ten_are_named() -> None:
    assert {
        "1,000",
        "10,000",
        "100,000",
        "1,000,000",
        "0.1",
        "1",
        "10",
        "100",
        "jobs",
        "ms",
        "linear",
    } <= set(texts(drawn(LINEAR)))


def test_curves_of_one_size_have_room_too() -> None:
    assert {"100", "1,000"} <= set(texts(drawn(Growth("x", [(100, 10.0)]))))


def test_there_are_no_more_curves_than_ways_to_tell_them_apart() -> None:
    with pytest.raises(ValueError, match="zip"):
        drawn(*[LINEAR] * 6)
