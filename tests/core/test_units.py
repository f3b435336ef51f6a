"""Service units: the whole minutes that the bank counts, and the decimals that people read."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.core.units import (
    AMOUNT_MAX,
    IN_SU,
    MINUTES_IN_SU,
    WORTH,
    AmountFormat,
    in_percent,
    in_permille,
    nearest,
    parse_su,
    round_up,
    show_hours,
    show_minutes,
    show_permille,
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


@given(st.integers(-(10**18), 10**18), st.integers(1, 10**9))
def test_what_is_shown_is_the_nearest(numerator: int, denominator: int) -> None:
    exact, shown = Fraction(numerator, denominator), nearest(numerator, denominator)
    assert abs(shown - exact) <= Fraction(1, 2)
    assert abs(shown - exact) < Fraction(1, 2) or abs(shown) > abs(exact)


def test_percent_and_permille_are_rounded_to_the_nearest() -> None:
    assert (in_percent(999, 1_000), in_permille(999, 1_000)) == (100, 999)
    assert (in_percent(994, 1_000), show_permille(994)) == (99, "99.4%")
    assert (in_percent(1, 0), in_permille(1, None)) == (None, None)


# --- showing ---


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=9))
def test_shown_hours_add_up_to_their_total(seconds: list[int]) -> None:
    form = AmountFormat(decimals=4)
    rows = sum(Fraction(show_hours(part, form)) for part in seconds)
    assert abs(rows - Fraction(show_hours(sum(seconds), form))) <= (len(seconds) + 1) * Fraction(
        1, 20_000
    )


@given(st.integers(0, 10**12))
def test_hours_with_four_decimals_give_the_seconds_back(seconds: int) -> None:
    assert round(Fraction(show_hours(seconds, AmountFormat(decimals=4))) * 3_600) == seconds


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
        (59, "0.98"),
        (61, "1.02"),
        (-1, "-0.02"),
        (6_000_000, "100,000"),
    ],
)
def test_people_read_hours_with_two_decimals_at_most(minutes: int, shown: str) -> None:
    assert show_su(minutes) == shown
    assert show_su(minutes, IN_SU) == shown.replace(",", "")


@pytest.mark.parametrize(
    ("minutes", "units", "shown"),
    [
        (90, "m", "90"),
        (299, "k", "<0.01"),
        (300, "k", "0.01"),
        (899, "k", "0.01"),
        (-90, "k", ">-0.01"),
        (0, "k", "0"),
        (365 * 60, "M", "<0.01"),
        (90_000_000, "M", "1.50"),
        (59_999_999, "M", "1"),
        (60_000, "k", "1"),
    ],
)
def test_other_units_are_rounded_too_but_never_to_0(minutes: int, units: str, shown: str) -> None:
    assert show_su(minutes, AmountFormat(units)) == shown


def test_separators_for_people() -> None:
    assert show_su(7_200_000, AmountFormat(separators=True)) == "120,000"
    assert show_su(-7_200_090, AmountFormat(separators=True)) == "-120,001.50"


@given(
    st.integers(-AMOUNT_MAX, AMOUNT_MAX),
    st.sampled_from(sorted(WORTH)),
    st.sampled_from([None, 0, 2, 5]),
)
@example(minutes=-1, units="M", decimals=None)
def test_shown_amount_is_rounded_to_the_nearest(
    minutes: int, units: str, decimals: int | None
) -> None:
    step = Fraction(1, 10 ** (2 if decimals is None else decimals))
    text = show_su(minutes, AmountFormat(units, decimals=decimals))
    if text[0] in "<>":
        assert abs(Fraction(minutes, WORTH[units])) < step == abs(Fraction(text[1:]))
        return
    assert abs(Fraction(text) - Fraction(minutes, WORTH[units])) <= step / 2
    assert show_su(minutes, AmountFormat(units, True, decimals)).replace(",", "") == text
    if decimals is not None:
        assert len(text.partition(".")[2]) == decimals


@given(amounts)
def test_minutes_and_whole_hours_can_be_typed_back(minutes: int) -> None:
    assert parse_su(f"{show_su(minutes, AmountFormat('m'))}m") == minutes
    whole = minutes - minutes % MINUTES_IN_SU
    if whole:
        assert parse_su(show_su(whole, IN_SU)) == whole


@given(amounts)
def test_shown_amounts_can_be_typed_back(minutes: int) -> None:
    assert parse_su(show_su(minutes, IN_SU)) == minutes
    shown = show_su(minutes)  # with commas, which are read if they have one meaning
    if "." in shown or shown.count(",") != 1:
        assert parse_su(shown) == minutes
