"""What would start a job sooner, whatever decides who starts: one change after the other is tried, the smallest sacrifice first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fairbank.core.time import MINUTE, show_duration
from fairbank.scheduling.explain.answer import EarlierStart, EarlierStartAdvice

SHORTER = "any shorter -t"
"""So the search for a limit is told."""


class Candidate(NamedTuple):
    """A change, as sbatch is told it or in words; and what it comes to where the job then starts before an instant (None: never)."""

    told: str
    before: Callable[[int | None], EarlierStart | None]


def find_earlier_start(expected: int | None, tries: Iterable[Candidate]) -> EarlierStartAdvice:
    """The change that starts the job soonest, and before `expected` (None: never); of several that start it at the same instant the one
    that is tried first."""
    found, tried = None, list[str]()
    for each in tries:
        tried.append(each.told)
        found = each.before(expected if found is None else found.at) or found
    return EarlierStartAdvice(found, tuple(tried))


def request_change(option: str, start: Callable[[], int | None]) -> Candidate:
    """Something else to ask for. `start`: when the job starts with it; None: never."""

    def before(other: int | None) -> EarlierStart | None:
        at = start()
        return (
            EarlierStart(option, at) if at is not None and (other is None or at < other) else None
        )

    return Candidate(option, before)


def shorter_limit(limit: int, start: Callable[[int], int | None]) -> Iterator[Candidate]:
    """The longest limit in whole minutes, less than `limit`, with which it starts as early as with a single one; there is none below a
    minute. `start`: when the job starts with a limit, in seconds."""

    def before(other: int | None) -> EarlierStart | None:
        soonest = start(MINUTE)
        if soonest is None or (other is not None and soonest >= other):
            return None
        low, high = 1, -(-limit // MINUTE)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if start(middle * MINUTE) == soonest else (low, middle)
        return EarlierStart(f"-t {show_duration(low * MINUTE)}", soonest)

    if limit > MINUTE:
        yield Candidate(SHORTER, before)
