"""Figures as SVG: whole XML, told in words too, drawn where the numbers are."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from fairbank.report.plots.picture import Group, Mark, Path, Picture, Text
from fairbank.report.plots.square import (
    KEY,
    LEFT,
    SCALE,
    SIDE,
    STYLES,
    TOP,
    Axes,
    Curve,
    Panel,
    contours,
    curves,
    figure,
)
from fairbank.report.plots.svg import number, svg

SVG = "{http://www.w3.org/2000/svg}"
AXES = Axes("a & b", "across", "up <")
PRODUCT = [[x * y / 97**2 for x in range(98)] for y in range(98)]


def points(of: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+),([-\d.]+)", of)]


def drawn(panel: Panel) -> ElementTree.Element:
    return ElementTree.fromstring(svg(figure("title", "about", [panel], beside=SCALE)))


def alone(mark: Mark) -> str:
    """What becomes of one mark."""
    return svg(Picture("t", "a", 10, 20, [mark])).splitlines()[4]


def texts(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_what_is_said_cannot_break_out() -> None:
    root = ElementTree.fromstring(
        svg(Picture("<t>", 'a"b&c', 10, 20, [Text("</text><script>", (1, 2), colour='"<')]))
    )
    assert [each.tag.removeprefix(SVG) for each in root] == ["title", "desc", "rect", "text"]
    assert [root[0].text, root[1].text, root[3].text, root[3].get("fill")] == [
        "<t>",
        'a"b&c',
        "</text><script>",
        '"<',
    ]
    assert (root.get("viewBox"), root.get("role")) == ("0 0 10 20", "img")


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.04, "0"), (-0.04, "0"), (1.25, "1.2"), (1234.56, "1234.6"), (340.0, "340")],
)
def test_a_tenth_of_a_pixel_is_enough(value: float, said: str) -> None:
    assert number(value) == said


def test_a_path_has_only_the_points_that_say_something() -> None:
    line = [(0.0, 0.0), (1.0, 0.01), (2.0, 0.0), (2.0, 0.0), (2.0, 5.0), (2.0, 3.0), (0.0, 3.0)]
    assert (
        alone(Path([line], width=2))
        == '<path d="M0,0L2,0L2,5L2,3L0,3" fill="none" stroke="#1a1a1a" stroke-width="2"/>'
    )
    assert (
        alone(Path([line[:2], line[4:6]], fill="#fff"))
        == '<path d="M0,0L1,0ZM2,5L2,3Z" fill="#fff" fill-rule="evenodd"/>'
    )
    assert (
        alone(Path([line[:2]], "red", dash=(9, 4)))
        == '<path d="M0,0L1,0" fill="none" stroke="red" stroke-dasharray="9 4"/>'
    )


def test_a_curve_is_drawn_where_its_values_are() -> None:
    root = drawn(curves(AXES, [Curve("low", [0.0, 0.25, 1.0]), Curve("flat", [1.0, 1.0])]))
    low, flat = (
        each
        for each in root.iter(f"{SVG}path")
        if each.get("stroke-width") == "2" and points(each.get("d") or "")[0][0] == LEFT
    )
    assert points(low.get("d") or "") == [
        (LEFT, TOP + SIDE),
        (LEFT + SIDE / 2, TOP + SIDE * 0.75),
        (LEFT + SIDE, TOP),
    ]
    assert points(flat.get("d") or "") == [(LEFT, TOP), (LEFT + SIDE, TOP)]
    assert low.get("stroke-dasharray") != flat.get("stroke-dasharray"), (
        "colour is never the only signal"
    )
    assert {"a & b", "across", "up <", "low", "flat", "0", "0.2", "1"} <= set(texts(root))


def test_there_are_no_more_curves_than_ways_to_tell_them_apart() -> None:
    assert len(set(STYLES)) == len({dash for _, dash in STYLES}) == 5
    with pytest.raises(ValueError, match="zip"):
        curves(AXES, [Curve("x", [0.0, 1.0])] * 6)


def test_contours_are_at_the_tenths_and_say_which() -> None:
    root = drawn(contours(AXES, PRODUCT))
    thin = [each for each in root.iter(f"{SVG}path") if each.get("stroke-width") == "0.8"]
    assert len(thin) == 9
    for tenth, line in enumerate(thin, start=1):
        for x, y in points(line.get("d") or ""):
            assert (x - LEFT) / SIDE * (TOP + SIDE - y) / SIDE == pytest.approx(
                tenth / 10, abs=0.002
            )
    assert texts(root).count("0.1") == 3, "on the line, in the gap beneath, and on the scale"


def test_the_values_on_lines_do_not_cover_each_other() -> None:
    root = drawn(contours(AXES, [[value**2 for value in row] for row in PRODUCT]))
    places = [
        (float(each.get("x") or 0), float(each.get("y") or 0))
        for each in root.iter(f"{SVG}text")
        if each.get("stroke")
    ]
    assert len(places) > 4
    assert [
        (a, b)
        for a in places
        for b in places
        if a < b and abs(a[0] - b[0]) < 28 and abs(a[1] - b[1]) < 18
    ] == []


def test_panels_stand_beside_each_other_with_room() -> None:
    one, two = (figure("t", "a", [[Text("x", (0, 0))]] * count, beside=KEY) for count in (1, 2))
    assert (two.wide, two.high) == (2 * one.wide, one.high)
    assert [each.by for each in two.marks if isinstance(each, Group)] == [(0, 0), (one.wide, 0)]
    assert 'transform="translate(' in svg(two)
