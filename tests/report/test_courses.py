"""Pictures of policies: a panel or a box for each, in its colour, with its name; the same marks as SVG and as PNG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from fairbank.report.plots.axis import even, time
from fairbank.report.plots.courses import HIGH, LEFT, TOP, WIDE, Course
from fairbank.report.plots.courses import figure as course_figure
from fairbank.report.plots.groups import NAME_MAX, Group, Range, Words
from fairbank.report.plots.groups import figure as group_figure
from fairbank.report.plots.hues import HUES
from fairbank.report.plots.picture import Picture
from fairbank.report.plots.png import png
from fairbank.report.plots.svg import svg

SVG = "{http://www.w3.org/2000/svg}"
ACROSS, UP = time(10 * 86_400, "since then"), even("processors, %", 100)
WORDS = Words("Waits", "who waits how long", "processors", ("dot: the mean",))


def root(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(svg(picture))


def texts(picture: Picture) -> list[str]:
    return [each.text or "" for each in root(picture).iter(f"{SVG}text")]


def test_each_policy_has_a_panel_over_the_same_time() -> None:
    day = 86_400.0
    courses = [
        Course("fcfs", "mean 5 %", [(0, 5 * day, 0), (5 * day, 10 * day, 100)]),
        Course("easy", "mean 50 %", [(0, 10 * day, 50)]),
    ]
    drawn = course_figure("Utilisation", "over time", ACROSS, UP, courses)
    lines = [
        each.get("d", "")
        for each in root(drawn).iter(f"{SVG}path")
        if each.get("stroke") in {hue.strong for hue in HUES}
    ]
    assert [[float(x) for x, _ in re.findall(r"([-\d.]+),([-\d.]+)", each)] for each in lines] == [
        [LEFT, LEFT + WIDE / 2, LEFT + WIDE / 2, LEFT + WIDE],
        [LEFT, LEFT + WIDE],
    ]
    assert re.findall(r",([-\d.]+)", lines[0]) == [
        f"{TOP + HIGH:g}",
        f"{TOP + HIGH:g}",
        f"{TOP:g}",
        f"{TOP:g}",
    ]
    assert {"Utilisation", "fcfs", "easy", "mean 50 %", "days since then"} <= set(texts(drawn))
    assert texts(drawn).count("processors, %") == 2


def test_where_nothing_is_known_the_line_has_a_gap() -> None:
    drawn = course_figure(
        "t", "about", ACROSS, UP, [Course("easy", "", [(0, 10, 5), (10, 20, 6), (40, 50, 7)])]
    )
    [line] = [
        each.get("d", "")
        for each in root(drawn).iter(f"{SVG}path")
        if each.get("stroke") == HUES[0].strong
    ]
    assert line.count("M") == 2


def test_a_group_has_a_box_of_each_policy_that_has_something() -> None:
    groups = [
        Group("1", "9 jobs", [Range(10, 20, 40, 30), None]),
        Group("2", "1 job", [Range(0, 0, 0, 0), Range(5, 50, 90, 60)]),
    ]
    drawn = group_figure(WORDS, UP, ["fcfs", "easy"], groups)
    assert len(list(root(drawn).iter(f"{SVG}circle"))) == 3
    assert {
        "Waits",
        "1",
        "2",
        "9 jobs",
        "1 job",
        "fcfs",
        "easy",
        "dot: the mean",
        "processors",
    } <= set(texts(drawn))


def test_bars_stand_beside_what_an_account_is_entitled_to() -> None:
    drawn = group_figure(
        WORDS, UP, ["easy"], [Group("astro", "", [50.0], 60.0), Group("bio", "", [0.0], None)]
    )
    bars = [each for each in root(drawn).iter(f"{SVG}rect") if each.get("stroke") == HUES[0].strong]
    assert len(bars) == 2  # one of them in the legend
    lines = [
        each.get("d", "")
        for each in root(drawn).iter(f"{SVG}path")
        if each.get("stroke-width") == "2"
    ]
    assert len(lines) == 1


def test_long_names_are_cut() -> None:
    drawn = group_figure(WORDS, UP, ["easy"], [Group("an_account_with_a_long_name", "", [1.0])])
    assert "an_account_with_a_long_name"[: NAME_MAX - 1] + "\u2026" in texts(drawn)


def test_both_forms_are_the_same_bytes_each_time() -> None:
    def drawn() -> Picture:
        return course_figure(
            "t", "about", ACROSS, UP, [Course("easy", "", [(0, 10, 5), (10, 20, 6)])]
        )

    assert svg(drawn()) == svg(drawn())
    assert png(drawn(), 1.0) == png(drawn(), 1.0)


def test_nothing_to_draw_is_a_frame() -> None:
    assert "easy" in texts(course_figure("t", "about", ACROSS, UP, [Course("easy", "", [])]))
    assert "Waits" in texts(group_figure(WORDS, UP, ["easy"], []))
