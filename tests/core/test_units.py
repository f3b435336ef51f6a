"""Service units: the whole minutes that the bank counts, and the decimals that people read."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.core.units import (
    AMOUNT_MAX,
    MINUTES_IN_SU,
    WORTH,
    AmountFormat,
    parse_su,
    round_up,
    show_minutes,
    show_su,
)

amounts = st.integers(1, AMOUNT_MAX)


def test_one_minute_is_in_the_singular() -> None:
    assert [show_minutes(minutes) for minutes in (0, 1, 2)] == [
        "0 SU-minutes", "1 SU-minute", "2 SU-minutes",
    ]  # fmt: skip


# --- rounding ---


@pytest.mark.parametrize(
    ("core_seconds", "core_minutes"),
    [(0, 0), (1, 1), (55, 1), (59, 1), (60, 1), (61, 2), (3_600, 60), (3_601, 61)],
)
def test_core_seconds_are_billed_by_the_begun_minute(core_seconds: int, core_minutes: int) -> None:
    assert round_up(Fraction(core_seconds, 60)) == core_minutes


@given(st.fractions(min_value=0))
def test_rounding_up_covers_the_cost_by_less_than_a_minute(exact: Fraction) -> None:
    assert 0 <= round_up(exact) - exact < 1


def test_cost_that_no_float_can_hold_is_still_exact() -> None:
    assert round_up(Fraction(2**53) + Fraction(1, 10**30)) == 2**53 + 1


# --- showing ---


@pytest.mark.parametrize(
    ("minutes", "shown"),
    [
        (0, "0"),
        (60, "1"),
        (-60, "-1"),
        (90, "1.50"),
        (-90, "-1.50"),
        (25, "0.42"),
        (1, "0.02"),
        (59, "0.99"),
        (61, "1.02"),
        (-1, "-0.01"),
        (6_000_000, "100000"),
    ],
)
def test_people_read_hours_with_two_decimals_at_most(minutes: int, shown: str) -> None:
    assert show_su(minutes) == shown


@pytest.mark.parametrize(
    ("minutes", "units", "shown"),
    [
        (90, "m", "90"),
        (90, "k", "0.01"),
        (600, "k", "0.01"),
        (-90, "k", "0"),
        (90_000_000, "M", "1.50"),
        (59_999_999, "M", "1"),
        (60_000, "k", "1"),
    ],
)
def test_other_units_are_rounded_up_too(minutes: int, units: str, shown: str) -> None:
    assert show_su(minutes, AmountFormat(units)) == shown


def test_separators_for_people() -> None:
    assert show_su(7_200_000, AmountFormat(separators=True)) == "120,000"
    assert show_su(-7_200_090, AmountFormat(separators=True)) == "-120,001.50"


@given(st.integers(-AMOUNT_MAX, AMOUNT_MAX), st.sampled_from(sorted(WORTH)))
@example(minutes=-1, units="M")
def test_shown_amount_is_rounded_up_to_hundredths(minutes: int, units: str) -> None:
    shown = Fraction(show_su(minutes, AmountFormat(units)))
    assert 0 <= shown - Fraction(minutes, WORTH[units]) < Fraction(1, 100)
    assert show_su(minutes, AmountFormat(units, separators=True)).replace(",", "") == show_su(
        minutes, AmountFormat(units)
    )


@given(
    st.integers(-AMOUNT_MAX, AMOUNT_MAX),
    st.sampled_from(sorted(WORTH)),
    st.sampled_from([None, 0, 2, 5]),
)
def test_rounded_down_amount_never_exceeds_the_exact_one(
    minutes: int, units: str, decimals: int | None
) -> None:
    exact, step = (
        Fraction(minutes, WORTH[units]),
        Fraction(1, 10 ** (2 if decimals is None else decimals)),
    )
    shown = show_su(minutes, AmountFormat(units, decimals=decimals), down=True)
    assert exact - step < Fraction(shown) <= exact
    near = show_su(minutes, AmountFormat(units, decimals=decimals))
    assert 0 <= Fraction(near) - exact < step
    if decimals is not None:
        assert [len(text.partition(".")[2]) for text in (shown, near)] == [decimals] * 2


@given(amounts)
def test_minutes_and_whole_hours_can_be_typed_back(minutes: int) -> None:
    assert parse_su(f"{show_su(minutes, AmountFormat('m'))}m") == minutes
    whole = minutes - minutes % MINUTES_IN_SU
    if whole:
        assert parse_su(show_su(whole, AmountFormat(separators=True))) == whole


@given(amounts)
def test_shown_amounts_can_be_typed_back(minutes: int) -> None:
    assert parse_su(show_su(minutes)) == minutes
