"""A shorter time limit that would start a job sooner, whatever decides who starts."""

from __future__ import annotations

from collections.abc import Callable

from fairbank.scheduling.explain.answer import Suggestion
from fairbank.values.time import MINUTE, show_duration

SHORTER = "any shorter -t"
"""So the search is told."""


def shorter(limit: int, before: int | None, start: Callable[[int], int | None]) -> Suggestion | None:
    """The longest limit in whole minutes, less than `limit`, with which it starts as early as with a single one. None where that is not
    `before` this instant (None: never). `start`: when it starts with a limit, in seconds."""
    soonest = start(MINUTE)
    if soonest is None or (before is not None and soonest >= before):
        return None
    low, high = 1, -(-limit // MINUTE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if start(middle * MINUTE) == soonest else (low, middle)
    return Suggestion(f"-t {show_duration(low * MINUTE)}", soonest)
