"""What became of a figure over time under several policies: a panel for each, one below the other, over the same time and on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.report.plots.axis import Axis, Field, along, border, upwards
from fairbank.report.plots.hues import HUES, Hue
from fairbank.report.plots.picture import Mark, Path, Picture, Point, Text

WIDE, HIGH = 700.0, 130.0
LEFT, TOP, GAP, BOTTOM, RIGHT = 92.0, 64.0, 30.0, 56.0, 24.0


class Course(NamedTuple):
    """A panel: its name, what is said beside it, and from when until when which value holds; what is missing is a gap."""

    name: str
    remark: str
    stretches: Sequence[tuple[float, float, float]]


def figure(title: str, about: str, across: Axis, up: Axis, shown: Sequence[Course]) -> Picture:
    """At most as many as there are hues."""
    drawn: list[Mark] = [Text(title, (LEFT, 26), size=16, bold=True)]
    field = Field((LEFT, TOP), WIDE, HIGH)
    for number, (course, hue) in enumerate(zip(shown, HUES[: len(shown)], strict=True)):
        field = Field((LEFT, TOP + (HIGH + GAP) * number), WIDE, HIGH)
        drawn += _panel(field, course, hue, across, up)
    drawn += along(field, across)
    return Picture(title, about, LEFT + WIDE + RIGHT, field.corner[1] + HIGH + BOTTOM, drawn)


def _panel(field: Field, course: Course, hue: Hue, across: Axis, up: Axis) -> list[Mark]:
    foot = field.at(0, 0)[1]
    stairs = [_stairs(field, each, across, up) for each in _unbroken(course.stretches)]
    left, top = field.corner
    return [
        Path([[(each[0][0], foot), *each, (each[-1][0], foot)] for each in stairs], fill=hue.pale),
        *upwards(field, up),
        Path(stairs, hue.strong, 1.6),
        Text(course.name, (left + 1, top - 7), bold=True, colour=hue.strong),
        Text(course.remark, (left + field.wide, top - 7), "end", 12),
        border(field),
    ]


Stretches = Sequence[tuple[float, float, float]]


def _unbroken(stretches: Stretches) -> list[Stretches]:
    found: list[list[tuple[float, float, float]]] = []
    for each in stretches:
        if not found or found[-1][-1][1] != each[0]:
            found.append([])
        found[-1].append(each)
    return list(found)


def _stairs(field: Field, stretches: Stretches, across: Axis, up: Axis) -> list[Point]:
    return [
        field.at(across.place(at), up.place(value))
        for since, until, value in stretches
        for at in (since, until)
    ]
