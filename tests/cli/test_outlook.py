"""Run-out time of an allocation, in figures and in words."""

from __future__ import annotations

import pytest

from fairbank.bank.outlook import outlook
from fairbank.cli.commands.bank.balance import about, show_outlook
from fairbank.core.time import DAY, Instant, iso, parse_instant
from fairbank.report.columns import DisplayFormat, Row

JULY, NEXT_JULY, NOW = (
    parse_instant(text)
    for text in ("2026-07-01T04:00Z", "2027-07-01T04:00Z", "2026-11-21T12:30:12Z")
)
LOOK = DisplayFormat(separators=True)


def balance_row(
    granted: int, used: int, now: int = NOW, start: int = JULY, end: int = NEXT_JULY
) -> Row:
    """Return the outlook in a balance row, for amounts in SU."""
    result = outlook(granted * 60, used * 60, start, end, now)
    runs_out = None if result.at is None else iso(Instant(result.at))
    return {"outlook": result.state.value, "runs_out": runs_out, "left_over": result.left_over}


@pytest.mark.parametrize(
    ("granted", "used", "words", "in_short"),
    [
        (100_000, 36_240, "lasts; about 7,730 SU will be unused", "lasts; ~7,730 unused"),
        (5_000, 4_610, "! about 2026-12-03", "! 2026-12-03"),
        (5_000, 5_000, "!! empty", "!! empty"),
        (5_000, 5_100, "!! empty", "!! empty"),
        (5_000, 0, "lasts; about 5,000 SU will be unused", "lasts; ~5,000 unused"),
    ],
)
def test_outlook_in_words(granted: int, used: int, words: str, in_short: str) -> None:
    assert show_outlook(balance_row(granted, used), LOOK) == words
    assert show_outlook(balance_row(granted, used), LOOK._replace(short=True)) == in_short


def test_outlook_outside_the_period_and_in_the_first_week() -> None:
    assert show_outlook(balance_row(100, 0, now=JULY - 1), LOOK) == "not started"
    assert show_outlook(balance_row(100, 10, now=NEXT_JULY), LOOK) == "ended"
    assert show_outlook(balance_row(100, 10, now=JULY + 7 * DAY - 1), LOOK) == "too early to tell"


def test_large_expiring_credit_is_reported_in_the_second_half() -> None:
    assert (
        show_outlook(balance_row(12_000, 310, now=JULY + 300 * DAY), LOOK)
        == "! about 11,600 SU will be unused"
    )
    assert (
        show_outlook(balance_row(12_000, 310, now=JULY + 300 * DAY), LOOK._replace(short=True))
        == "! ~11,600 unused"
    )


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(59, "0.98"), (599, "9.98"), (660, "11"), (60 * 7_729, "7,730"), (60 * 99_999, "100,000")],
)
def test_estimate_has_three_digits(minutes: int, words: str) -> None:
    assert about(minutes, LOOK) == words
