"""Which rule makes a site factor of credit and expiry, as the settings say it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

RuleName = Literal["linear", "power", "sigmoid"]


class Bend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one of the two fractions, from 0 to 1, is bent before they are multiplied. `exponent`: for the rule "power". `steepness` and
    `midpoint`: for the rule "sigmoid", where the step is and how steep; 0 is a straight line."""

    exponent: Annotated[float, msgspec.Meta(gt=0, le=1_000)] = 1.0
    steepness: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] = 1.0
    midpoint: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5


_COUNTS: dict[RuleName, tuple[str, ...]] = {
    "linear": (),
    "power": ("exponent",),
    "sigmoid": ("steepness", "midpoint"),
}


def idle_keys(rule: RuleName, bend: Bend) -> Iterator[tuple[str, RuleName]]:
    """Keys that were changed and do not count by this rule, with the one by which they would."""
    usual = Bend()
    for other, names in _COUNTS.items():
        yield from (
            (name, other)
            for name in names
            if other != rule and getattr(bend, name) != getattr(usual, name)
        )
