"""The colours of policies: the same one has the same colour in every picture of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.report.plots.picture import Box, Mark, Point, Text


class Hue(NamedTuple):
    """For lines and letters, and for areas. On white the strong one is dark enough to be read."""

    strong: str
    pale: str


# Blue, orange, green, purple, grey: told apart by those who do not see all colours (M. Okabe and K. Ito), and each by its place.
HUES: Sequence[Hue] = (
    Hue("#0072b2", "#cfe3f1"),
    Hue("#b8520a", "#f8ddc8"),
    Hue("#00795a", "#cde8df"),
    Hue("#8f4f7a", "#ecdae6"),
    Hue("#4d4d4d", "#dedede"),
)


def legend(names: Sequence[str], corner: Point) -> list[Mark]:
    """Which colour is whose, below each other."""
    drawn: list[Mark] = []
    for row, (name, hue) in enumerate(zip(names, HUES[: len(names)], strict=True)):
        x, y = corner[0], corner[1] + 21.0 * row
        drawn += [
            Box((x, y), 15, 12, fill=hue.pale, stroke=hue.strong, width=1.6),
            Text(name, (x + 23, y + 11)),
        ]
    return drawn
