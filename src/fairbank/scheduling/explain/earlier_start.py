"""Search for a change that starts a job earlier: changes are tried one after the other, the
smallest sacrifice first. Each is planned, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fairbank.core.time import MINUTE, show_duration
from fairbank.scheduling.explain.answer import (
    EarlierStart,
    EarlierStartAdvice,
    NoStartRange,
    StartRange,
    name_of_change,
)

SHORTER = "a shorter -t"
"""Name of the search for a limit among the changes that were tried."""


class Candidate(NamedTuple):
    """Name of a change, for people, and a function that returns the start with it if that is
    before a time (None: never).
    """

    name: str
    start_before: Callable[[int | None], EarlierStart | None]


def soonest_known(expected: int | None, likely: StartRange | NoStartRange | None) -> int | None:
    """Return the start that a change has to beat; None: never.

    The likely start is mostly before the reserved one, which assumes that all jobs use their whole
    limit, as the start with a change does.
    """
    start = likely.likely if isinstance(likely, StartRange) else None
    return min((at for at in (expected, start) if at is not None), default=None)


def find_earlier_start(expected: int | None, tries: Iterable[Candidate]) -> EarlierStartAdvice:
    """Return the earliest start before `expected` (None: never). Of equal ones the first wins."""
    suggestion, tried = None, list[str]()
    for candidate in tries:
        tried.append(candidate.name)
        suggestion = (
            candidate.start_before(expected if suggestion is None else suggestion.at) or suggestion
        )
    return EarlierStartAdvice(suggestion, tuple(tried))


def request_change(
    option: str, start: Callable[[], int | None], *, leaves_out: bool = False
) -> Candidate:
    """Return a change of the request.

    Args:
        start: returns the start with the change; None: never.
        leaves_out: the option is left out of the request instead of added.
    """

    def before(other: int | None) -> EarlierStart | None:
        start_time = start()
        if start_time is not None and (other is None or start_time < other):
            return EarlierStart(option, start_time, leaves_out)
        return None

    return Candidate(name_of_change(option, leaves_out=leaves_out), before)


def largest_amount(
    name: str,
    least: int,
    most: int,
    start: Callable[[int], int | None],
    option: Callable[[int], str],
) -> Candidate:
    """Return the search for the largest amount below `most` with which the job starts as early as
    with the least.

    The search halves the amounts: more of them must not start the job earlier.

    Args:
        name: the name of the search among the changes that were tried.
        least: least amount that the job may request.
        most: amount that the job requests.
        start: returns the start with an amount; None: never.
        option: the option of sbatch that requests an amount.
    """

    def before(other: int | None) -> EarlierStart | None:
        soonest = start(least)
        if soonest is None or (other is not None and soonest >= other):
            return None
        low, high = least, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if start(middle) == soonest else (low, middle)
        return EarlierStart(option(low), soonest)

    return Candidate(name, before)


def shorter_limit(limit: int, start: Callable[[int], int | None]) -> Iterator[Candidate]:
    """Yield the search for the longest limit in whole minutes below `limit` with which the job
    starts as early as with one minute.

    `start` returns the start with a limit in seconds. There is no shorter limit than a minute.
    """
    if limit > MINUTE:
        yield largest_amount(
            SHORTER,
            1,
            -(-limit // MINUTE),
            lambda minutes: start(minutes * MINUTE),
            lambda minutes: f"-t {show_duration(minutes * MINUTE)}",
        )
