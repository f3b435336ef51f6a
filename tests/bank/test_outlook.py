"""Outlook of an allocation: when it runs out, and what will expire."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.outlook import Outlook, OutlookState, daily_pace, outlook
from fairbank.core.time import DAY, parse_instant

JULY, NEXT_JULY, NOW = (
    parse_instant(text)
    for text in ("2026-07-01T04:00Z", "2027-07-01T04:00Z", "2026-11-21T12:30:12Z")
)


def seen(
    granted: int, used: int, now: int = NOW, start: int = JULY, end: int = NEXT_JULY
) -> Outlook:
    """Return the outlook of an allocation, for amounts in SU."""
    return outlook(granted * 60, used * 60, start, end, now)


def test_outlook_depends_on_day_of_period() -> None:
    assert seen(100, 0, now=JULY - 1).state is OutlookState.NOT_STARTED
    assert seen(100, 10, now=NEXT_JULY).state is OutlookState.ENDED
    assert seen(100, 10, now=JULY + 7 * DAY - 1).state is OutlookState.TOO_EARLY
    assert seen(100, 10, now=JULY + 7 * DAY).state is OutlookState.RUNS_OUT
    # 10 % of a term of 30 days are 3 days.
    month = {"start": JULY, "end": JULY + 30 * DAY}
    assert seen(100, 50, now=JULY + 3 * DAY - 1, **month).state is OutlookState.TOO_EARLY
    assert seen(100, 50, now=JULY + 3 * DAY, **month).state is OutlookState.RUNS_OUT


def test_unused_credit_is_reported_in_the_second_half() -> None:
    assert seen(12_000, 310, now=JULY + 100 * DAY).state is OutlookState.LASTS
    assert seen(12_000, 310, now=JULY + 300 * DAY).state is OutlookState.UNUSED
    assert seen(12_000, 9_000, now=JULY + 300 * DAY).state is OutlookState.LASTS


def test_daily_pace_counts_at_least_one_day() -> None:
    assert daily_pace(1_000, JULY, NEXT_JULY, JULY + 10) == 1_000
    assert daily_pace(1_000, JULY, NEXT_JULY, JULY + 4 * DAY) == 250


def test_daily_pace_stays_the_same_after_the_end() -> None:
    paces = {daily_pace(1_000, JULY, JULY + 5 * DAY, JULY + days * DAY) for days in (5, 6, 50)}
    assert paces == {200}


amounts = st.integers(0, 2**53)
instants = st.integers(0, 4_000_000_000)


@given(amounts, amounts, instants, instants, instants)
def test_outlook_is_within_the_term_and_the_grant(
    granted: int, used: int, start: int, end: int, now: int
) -> None:
    result = outlook(granted, used, min(start, end), max(start, end) + 1, now)
    if result.state is OutlookState.RUNS_OUT:
        assert result.at is not None
        assert now <= result.at <= max(start, end) + 1
    if result.state in (OutlookState.LASTS, OutlookState.UNUSED):
        assert result.left_over is not None
        assert 0 <= result.left_over <= granted


@given(amounts, amounts, st.integers(DAY, 300 * DAY))
def test_more_usage_runs_out_no_later(granted: int, used: int, past: int) -> None:
    less, more = (outlook(granted, amount, 0, 400 * DAY, past) for amount in (used, used + 60))
    if less.state is OutlookState.RUNS_OUT:
        assert more.at is not None
        assert less.at is not None
        assert more.at <= less.at


def test_unused_credit_is_at_most_available() -> None:
    now = JULY + 300 * DAY
    assert outlook(12_000, 0, JULY, NEXT_JULY, now, held=261) == Outlook(
        OutlookState.UNUSED, left_over=11_739, available_at_end=11_739
    )
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=60) == outlook(
        12_000, 310, JULY, NEXT_JULY, now
    )  # its pace takes more
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=8_689).state is OutlookState.UNUSED
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=8_690).state is OutlookState.LASTS
    assert outlook(12_000, 310, JULY, NEXT_JULY, now, held=11_689).left_over == 1


def test_allocation_without_available_credit_is_empty_now() -> None:
    """The holds may come back, but until then no job can start."""
    now = JULY + 300 * DAY
    for granted, limit in ((3_001, 0), (2_000, 1_001)):
        result = outlook(granted, 2_961, JULY, NEXT_JULY, now, held=40, limit=limit)
        assert result == Outlook(OutlookState.EMPTY, at=now)
        result = outlook(granted, 2_961, JULY, NEXT_JULY, now, held=39, limit=limit)
        assert result.state is OutlookState.RUNS_OUT


def test_credit_limit_counts_for_use_but_not_as_unused() -> None:
    """At 29 in 300 days, 6 more are used in the 65 days to come: of 30 + 50 remain 45."""
    now = JULY + 300 * DAY
    assert outlook(30, 0, JULY, NEXT_JULY, now, limit=50) == Outlook(
        OutlookState.UNUSED, left_over=30, available_at_end=80
    )
    assert outlook(30, 29, JULY, NEXT_JULY, now, limit=50) == Outlook(
        OutlookState.LASTS, left_over=0, available_at_end=45
    )
    assert outlook(30, 29, JULY, NEXT_JULY, now).state is OutlookState.RUNS_OUT
    assert outlook(0, 0, JULY, NEXT_JULY, now, limit=50) == Outlook(
        OutlookState.LASTS, left_over=0, available_at_end=50
    )
    assert outlook(30, 20, JULY, NEXT_JULY, NEXT_JULY, limit=50) == Outlook(
        OutlookState.ENDED, left_over=10, available_at_end=60
    )
    assert outlook(30, 45, JULY, NEXT_JULY, NEXT_JULY, limit=50) == Outlook(
        OutlookState.ENDED, left_over=0, available_at_end=35
    )
