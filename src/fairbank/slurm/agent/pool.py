"""How many senders there are, and how long to wait for a bank that is away."""

from __future__ import annotations

from typing import Annotated

import msgspec

GROW_SECONDS = 0.02
"""Letters that wait so long want another sender."""

SHRINK_SECONDS = 5.0
"""A sender that has had nothing to do for so long goes."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


class Senders(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many requests may be under way at once, and how many reports one may carry. `gather`: so many seconds a report waits for others
    to go with it when no job waits for what the bank says, such as an end.
    """

    minimum: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    maximum: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    batch: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1_000
    gather: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.1


def resized(size: int, limits: Senders, *, waited: float, idle: float) -> int:
    """How many senders there are to be: one more where a letter has `waited` for long, one less where one was `idle` for long (seconds)."""
    if waited >= GROW_SECONDS and size < limits.maximum:
        return size + 1
    if idle >= SHRINK_SECONDS and size > limits.minimum:
        return size - 1
    return min(max(size, limits.minimum), limits.maximum)


def pause(failures: int) -> float:
    """Seconds until the bank is tried again after so many failures in a row."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 16))) if failures else 0.0
