"""Figures over days: one panel above the other, broken where days are missing."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from fairbank.report.plots.days import HIGH, LEFT, LEVEL, PART, TOP, WIDE, Curve, day_name, figure
from fairbank.report.plots.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*curves: Curve) -> ElementTree.Element:
    return ElementTree.fromstring(svg(figure("t", "about", [(LEVEL, curves), (PART, curves)])))


def texts(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("value", "place"), [(1, 0.5), (8, 1), (0.125, 0), (1e9, 1), (0, 0), (2, 4 / 6)]
)
def test_each_doubling_of_a_level_takes_the_same_room(value: float, place: float) -> None:
    assert LEVEL.place(value) == pytest.approx(place)


def test_the_first_day_is_on_the_left_the_last_on_the_right() -> None:
    root = drawn(Curve("<bio>", [(20_000, 0.5), (20_001, 1.0), (20_002, 0.25)]))
    lines = [
        each.get("d", "") for each in root.iter(f"{SVG}path") if each.get("stroke-width") == "2"
    ]
    line = next(each for each in lines if each.count("L") == 2)
    found = [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+),([-\d.]+)", line)]
    assert [x for x, _ in found] == [LEFT, LEFT + WIDE / 2, LEFT + WIDE]
    assert found[1][1] == TOP + HIGH / 2


def test_a_day_alone_is_a_dot_and_missing_days_break_the_curve() -> None:
    root = drawn(Curve("bio", [(20_000, 0.5), (20_003, 1.0), (20_004, 0.25)]))
    assert len(list(root.iter(f"{SVG}circle"))) == 2  # one in each panel
    assert len(list(drawn(Curve("bio", [(20_000, 0.5)])).iter(f"{SVG}circle"))) == 2


def test_days_are_named_once() -> None:
    assert texts(drawn(Curve("bio", [(20_000, 0.5)]))).count(day_name(20_000)) == 2
    assert day_name(0) == "1970-01-01"
    many = texts(drawn(Curve("bio", [(day, 0.5) for day in range(20_000, 20_400)])))
    assert sum(bool(re.fullmatch(r"\d{4}-\d\d-\d\d", each)) for each in many) == 14


def test_long_names_are_cut_where_the_picture_ends() -> None:
    told = texts(
        drawn(Curve("somebody_with_a_long_name in quantum_and_statistics", [(20_000, 0.5)]))
    )
    assert "somebody_with_a_long_na\u2026" in told


def test_nothing_to_draw_is_a_frame() -> None:
    assert "part of usage" in texts(drawn())
