"""Changes that start a job sooner, with known start times."""

from __future__ import annotations

import pytest

from fairbank.core.time import MINUTE
from fairbank.scheduling.explain.answer import EarlierStart, EarlierStartAdvice
from fairbank.scheduling.explain.earlier_start import (
    Candidate,
    find_earlier_start,
    request_change,
    shorter_limit,
)

HOUR = 60 * MINUTE


def at(option: str, start: int | None) -> Candidate:
    return request_change(option, lambda: start)


@pytest.mark.parametrize(
    ("expected", "starts", "best"),
    [
        (100, (90, 80, 70), ("third", 70)),
        (100, (80, 80, 90), ("first", 80)),  # of several as soon the smallest sacrifice
        (100, (None, 100, 110), None),
        (None, (None, 100, 100), ("second", 100)),
        (None, (None, None, None), None),
    ],
)
def test_change_that_starts_it_soonest(
    expected: int | None, starts: tuple[int | None, ...], best: tuple[str, int] | None
) -> None:
    output = ("first", "second", "third")
    suggestion = None if best is None else EarlierStart(*best)
    assert find_earlier_start(expected, map(at, output, starts)) == EarlierStartAdvice(
        suggestion, output
    )


def in_the_gap(limit: int) -> int:
    """Return the start of a job: now if it ends within three hours."""
    return 0 if limit <= 3 * HOUR else 10 * HOUR


def test_longest_limit_that_starts_it_as_soon_as_the_shortest() -> None:
    (result,) = shorter_limit(5 * HOUR, in_the_gap)
    assert result.name == "a shorter -t"
    assert (
        result.start_before(10 * HOUR)
        == result.start_before(None)
        == EarlierStart("-t 03:00:00", 0)
    )
    assert result.start_before(0) is None


@pytest.mark.parametrize("other", ["before", "behind"])
def test_earlier_tried_change_is_preferred_at_the_same_start(other: str) -> None:
    limit, partition = list(shorter_limit(5 * HOUR, in_the_gap)), [at("-p other", 0)]
    output = find_earlier_start(
        10 * HOUR, partition + limit if other == "before" else limit + partition
    )
    assert output.suggestion == EarlierStart("-p other" if other == "before" else "-t 03:00:00", 0)


def test_nothing_is_shorter_than_a_minute() -> None:
    assert list(shorter_limit(MINUTE, in_the_gap)) == []
