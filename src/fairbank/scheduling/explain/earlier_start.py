"""What would start a job sooner, whatever decides who starts: one change after the other is tried, the smallest sacrifice first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fairbank.scheduling.explain.answer import Advice, Suggestion
from fairbank.core.time import (MINUTE, show_duration)

SHORTER = "any shorter -t"
"""So the search for a limit is told."""


class Try(NamedTuple):
    """A change, as sbatch is told it or in words; and what it comes to where the job then starts before an instant (None: never)."""

    told: str
    before: Callable[[int | None], Suggestion | None]


def sooner(expected: int | None, tries: Iterable[Try]) -> Advice:
    """The change that starts the job soonest, and before `expected` (None: never); of several that start it at the same instant the one
    that is tried first."""
    found, tried = None, list[str]()
    for each in tries:
        tried.append(each.told)
        found = each.before(expected if found is None else found.at) or found
    return Advice(found, tuple(tried))


def change(option: str, start: Callable[[], int | None]) -> Try:
    """Something else to ask for. `start`: when the job starts with it; None: never."""

    def before(other: int | None) -> Suggestion | None:
        at = start()
        return Suggestion(option, at) if at is not None and (other is None or at < other) else None

    return Try(option, before)


def shorter(limit: int, start: Callable[[int], int | None]) -> Iterator[Try]:
    """The longest limit in whole minutes, less than `limit`, with which it starts as early as with a single one; there is none below a
    minute. `start`: when the job starts with a limit, in seconds."""

    def before(other: int | None) -> Suggestion | None:
        soonest = start(MINUTE)
        if soonest is None or (other is not None and soonest >= other):
            return None
        low, high = 1, -(-limit // MINUTE)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if start(middle * MINUTE) == soonest else (low, middle)
        return Suggestion(f"-t {show_duration(low * MINUTE)}", soonest)

    if limit > MINUTE:
        yield Try(SHORTER, before)
