"""Run-out time of an allocation: figures first, then the words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.time import DAY, parse_instant
from fairbank.report.columns import Look
from fairbank.report.pace import Outlook, SpendingPace, about, outlook, say

JULY, NEXT_JULY, NOW = (
    parse_instant(said)
    for said in ("2026-07-01T04:00Z", "2027-07-01T04:00Z", "2026-11-21T12:30:12Z")
)
LOOK = Look(separators=True)


def seen(
    granted: int, used: int, now: int = NOW, start: int = JULY, end: int = NEXT_JULY
) -> Outlook:
    """In SU, as people tell it."""
    return outlook(granted * 60, used * 60, start, end, now)


@pytest.mark.parametrize(
    ("granted", "used", "told", "in_short"),
    [
        (100_000, 36_240, "no, about 7,720 left over", "no, 7,720 left"),
        (5_000, 4_610, "! about 2026-12-03", "! 2026-12-03"),
        (5_000, 5_000, "!! empty", "!! empty"),
        (5_000, 5_100, "!! empty", "!! empty"),
        (5_000, 0, "no, about 5,000 left over", "no, 5,000 left"),
    ],
)
def test_the_words(granted: int, used: int, told: str, in_short: str) -> None:
    assert say(seen(granted, used), LOOK) == told
    assert say(seen(granted, used), LOOK._replace(short=True)) == in_short


def test_before_after_and_on_the_first_day() -> None:
    assert say(seen(100, 0, now=JULY - 1), LOOK) == "not started"
    assert say(seen(100, 10, now=NEXT_JULY), LOOK) == "ended"
    assert say(seen(100, 10, now=JULY + DAY - 1), LOOK) == "too early to tell"
    assert seen(100, 10, now=JULY + DAY).course is SpendingPace.RUNS_OUT


def test_much_that_will_expire_is_reported_in_the_second_half() -> None:
    assert seen(12_000, 310, now=JULY + 100 * DAY).course is SpendingPace.LASTS
    assert seen(12_000, 310, now=JULY + 300 * DAY).course is SpendingPace.UNUSED
    assert say(seen(12_000, 310, now=JULY + 300 * DAY), LOOK) == "! 11,600 will expire unused"
    assert (
        say(seen(12_000, 310, now=JULY + 300 * DAY), LOOK._replace(short=True)) == "! 11,600 lost"
    )
    assert seen(12_000, 9_000, now=JULY + 300 * DAY).course is SpendingPace.LASTS


@pytest.mark.parametrize(
    ("minutes", "told"),
    [(59, "0.98"), (599, "9.98"), (660, "11"), (60 * 7_729, "7,720"), (60 * 99_999, "99,900")],
)
def test_an_estimate_has_three_digits(minutes: int, told: str) -> None:
    assert about(minutes, LOOK) == told


amounts = st.integers(0, 2**53)
instants = st.integers(0, 4_000_000_000)


@given(amounts, amounts, instants, instants, instants)
def test_every_allocation_has_an_outlook_that_can_be_told(
    granted: int, used: int, start: int, end: int, now: int
) -> None:
    found = outlook(granted, used, min(start, end), max(start, end) + 1, now)
    assert say(found, LOOK)
    assert say(found, LOOK._replace(short=True))
    if found.course is SpendingPace.RUNS_OUT:
        assert found.at is not None
        assert now <= found.at <= max(start, end) + 1
    if found.course in (SpendingPace.LASTS, SpendingPace.UNUSED):
        assert found.left_over is not None
        assert 0 <= found.left_over <= granted


@given(amounts, amounts, st.integers(DAY, 300 * DAY))
def test_more_usage_runs_out_no_later(granted: int, used: int, past: int) -> None:
    less, more = (outlook(granted, each, 0, 400 * DAY, past) for each in (used, used + 60))
    if less.course is SpendingPace.RUNS_OUT:
        assert more.at is not None
        assert less.at is not None
        assert more.at <= less.at


def test_what_is_held_will_be_used_so_no_more_is_left_over_than_is_available() -> None:
    now = JULY + 300 * DAY
    assert outlook(12_000, 0, JULY, NEXT_JULY, now, held=261) == Outlook(
        SpendingPace.UNUSED, left_over=11_739
    )
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=60) == outlook(
        12_000, 310, JULY, NEXT_JULY, now
    )  # its pace takes more
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=8_689).course is SpendingPace.UNUSED
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=8_690).course is SpendingPace.LASTS
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=11_690).left_over == 0


def test_a_credit_limit_can_be_drawn_on_but_is_never_lost() -> None:
    now = JULY + 300 * DAY
    assert outlook(30, 0, JULY, NEXT_JULY, now, limit=50) == Outlook(
        SpendingPace.UNUSED, left_over=30
    )
    assert outlook(30, 29, JULY, NEXT_JULY, now, limit=50) == Outlook(
        SpendingPace.LASTS, left_over=0
    )
    assert outlook(30, 29, JULY, NEXT_JULY, now).course is SpendingPace.RUNS_OUT
    assert outlook(0, 0, JULY, NEXT_JULY, now, limit=50) == Outlook(SpendingPace.LASTS, left_over=0)
    assert outlook(30, 20, JULY, NEXT_JULY, NEXT_JULY, limit=50) == Outlook(
        SpendingPace.ENDED, left_over=10
    )
    assert outlook(30, 45, JULY, NEXT_JULY, NEXT_JULY, limit=50) == Outlook(
        SpendingPace.ENDED, left_over=0
    )
