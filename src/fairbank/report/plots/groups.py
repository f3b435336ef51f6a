"""Groups side by side, in each something of every policy: bars, or the ranges in which most lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.report.plots.axis import Axis, Field, border, upwards
from fairbank.report.plots.hues import HUES, Hue, legend
from fairbank.report.plots.picture import INK, PAPER, Box, Dot, Mark, Picture, Text, line

SLOT, WIDTH_MIN, HIGH = 18.0, 74.0, 300.0
LEFT, TOP, BOTTOM, RIGHT = 92.0, 48.0, 74.0, 190.0
NAME_MAX = 12
"""Letters of a group's name that there is room for."""


class Range(NamedTuple):
    """From a quarter to three quarters, the middle one, and the mean."""

    quarter: float
    median: float
    three_quarters: float
    mean: float


class Group(NamedTuple):
    """A group: its name, what is said below it, what each policy has (None: nothing), and a mark across all of them."""

    name: str
    remark: str
    values: Sequence[float | Range | None]
    mark: float | None = None


class Words(NamedTuple):
    """The title of a picture, what it is for those who do not see it, the name of the groups, and what each mark means."""

    title: str
    about: str
    across: str
    marks: Sequence[str] = ()


def figure(words: Words, up: Axis, policies: Sequence[str], shown: Sequence[Group]) -> Picture:
    """At most as many policies as there are hues."""
    each = max(WIDTH_MIN, SLOT * (len(policies) + 1.2))
    field = Field((LEFT, TOP), each * max(len(shown), 1), HIGH)
    drawn: list[Mark] = [Text(words.title, (LEFT, 26), size=16, bold=True), *upwards(field, up)]
    for number, group in enumerate(shown):
        drawn += _group(Field((LEFT + each * number, TOP), each, HIGH), group, up)
    foot = TOP + HIGH
    key = (LEFT + field.wide + 20, TOP + 6)
    away = 58 if any(group.remark for group in shown) else 44
    drawn += [
        border(field),
        Text(words.across, (LEFT + field.wide / 2, foot + away), "middle"),
        *legend(policies, key),
    ]
    below = key[1] + 21.0 * len(policies) + 14
    drawn += [
        Text(said, (key[0], below + 18 * row), size=12) for row, said in enumerate(words.marks)
    ]
    return Picture(words.title, words.about, LEFT + field.wide + RIGHT, foot + BOTTOM, drawn)


def _group(field: Field, group: Group, up: Axis) -> list[Mark]:
    middle, foot = field.corner[0] + field.wide / 2, field.corner[1] + field.high
    name = group.name if len(group.name) <= NAME_MAX else f"{group.name[: NAME_MAX - 1]}\u2026"
    drawn: list[Mark] = [
        Text(name, (middle, foot + 19), "middle", 12),
        Text(group.remark, (middle, foot + 35), "middle", 11),
    ]
    first = middle - SLOT * len(group.values) / 2
    for number, (value, hue) in enumerate(
        zip(group.values, HUES[: len(group.values)], strict=True)
    ):
        slot = Field((first + SLOT * number + 2, field.corner[1]), SLOT - 4, field.high)
        if isinstance(value, Range):
            drawn += _range(slot, value, hue, up)
        elif value:
            drawn += _box(slot, 0, value, hue, up)
    if group.mark is not None:
        (left, y), (right, _) = field.at(0.08, up.place(group.mark)), field.at(0.92, 0)
        drawn += [
            line((left, y), (right, y), colour=PAPER, width=4.5),
            line((left, y), (right, y), colour=INK, width=2),
        ]
    return drawn


def _box(slot: Field, least: float, most: float, hue: Hue, up: Axis) -> list[Mark]:
    corner, foot = slot.at(0, up.place(most)), slot.at(0, up.place(least))
    return [
        Box(
            corner,
            slot.wide,
            max(foot[1] - corner[1], 0.5),
            fill=hue.pale,
            stroke=hue.strong,
            width=1.4,
        )
    ]


def _range(slot: Field, value: Range, hue: Hue, up: Axis) -> list[Mark]:
    left, right = slot.at(0, up.place(value.median)), slot.at(1, up.place(value.median))
    drawn = [
        *_box(slot, value.quarter, value.three_quarters, hue, up),
        line(left, right, colour=hue.strong, width=3),
    ]
    return [*drawn, Dot(slot.at(0.5, up.place(value.mean)), 3.4, hue.strong)]
