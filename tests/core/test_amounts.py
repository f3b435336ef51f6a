"""Amounts of service units as people write them, and the range that the bank can count."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.units import (
    AMOUNT_MAX,
    WORTH,
    AmountFormat,
    amount,
    parse_su,
    show_su,
    show_sums,
)

amounts = st.integers(1, AMOUNT_MAX)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("1", 60),
        ("100", 6_000),
        ("12.5", 750),
        ("0.25", 15),
        ("0.05", 3),
        ("1h", 60),
        ("90m", 90),
        ("1m", 1),
        ("15.0m", 15),
        ("20k", 1_200_000),
        ("0.001k", 60),
        ("+3", 180),
        ("007", 420),
        ("20,000.50", 1_200_030),
        ("1,234,567.5", 74_074_050),
        ("0.3500000", 21),
    ],
)
def test_amounts_as_people_write_them(text: str, minutes: int) -> None:
    assert parse_su(text) == minutes


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            ".",
            "-",
            "+",
            "h",
            ".5",
            "5.",
            "1.2.3",
            "1e3",
            "0x10",
            "1_000",
            "--1",
            "+-1",
            "1 000",
            " 1",
            "1 ",
            "1h ",
            "1 h",
        ),
        *(
            "1H",
            "1K",
            "1s",
            "1mh",
            "1%",
            "nan",
            "inf",
            "-inf",
            "NaN",
            "None",
            "1\n",
            "\n1",
            "1\x00",
            "1\r\n2",
            "=1+1",
            "'1'",
        ),
        *(
            "\u0661\u0662",
            "\u096a",
            "\uff11",
            "\u00bd",
            "\u00b2",
            "\u2212" + "1",
            "1\u00a0000",
            "1\u2009000",
        ),
        "9" * 41,
        "1." + "0" * 21,
    ],
)
def test_anything_else_is_no_amount(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an amount of SU") as no:
        parse_su(text, field="deposit")
    assert no.value.field == "deposit"
    assert "12.5" in str(no.value.remedy)


@pytest.mark.parametrize(
    "text",
    [
        "12,5",
        "1,00",
        ",1",
        "1,",
        "1,,,5",
        "1.2,5",
        "1,0000",
        "1234,567",
        "0,5",
        "1,234,56",
        ",",
        "1.234,567",
    ],
)
def test_comma_only_separates_thousands(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_su(text)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("1,000", "write 1000 or 1.000"),
        ("-20,000", "write 20000 or 20.000"),
        ("1,250k", "write 1250k or 1.250k"),
        ("0,500", "write 0.500"),
        ("0,500,000", "write the digits without commas"),
    ],
)
def test_comma_that_may_be_a_decimal_one_is_refused(text: str, remedy: str) -> None:
    with pytest.raises(InvalidInput, match="is ambiguous: a comma may") as no:
        parse_su(text, field="deposit")
    assert (no.value.field, no.value.remedy) == ("deposit", remedy)


def test_long_text_is_not_repeated_in_full() -> None:
    for text in ("x" * 10_000, "0.001" + "," * 10_000, "9" * 10_000):
        with pytest.raises(InvalidInput) as no:
            parse_su(text)
        assert len(no.value.message) < 200


@pytest.mark.parametrize("text", ["0", "0.0", "0m", "-1", "-0", "-0.5", "-20k", "-90m"])
def test_zero_and_negative_amounts_cannot_be_moved(text: str) -> None:
    with pytest.raises(InvalidInput, match="too small an amount") as no:
        parse_su(text)
    assert "at least one SU-minute" in str(no.value.remedy)


@pytest.mark.parametrize(
    ("text", "minutes"), [("0", 0), ("0.0", 0), ("0m", 0), ("-0", 0), ("0k", 0), ("1m", 1)]
)
def test_limit_may_be_zero(text: str, minutes: int) -> None:
    assert parse_su(text, least=0) == minutes


@pytest.mark.parametrize("text", ["-1", "-1m"])
def test_limit_may_not_be_negative(text: str) -> None:
    with pytest.raises(InvalidInput, match="too small an amount") as no:
        parse_su(text, field="--credit-limit", least=0)
    assert (no.value.field, no.value.remedy) == ("--credit-limit", "an amount is 0 or more")


@pytest.mark.parametrize("text", ["0.001", "1.990", "0.5m", "0.00001k", "33.333"])
def test_finer_than_a_minute_is_reported(text: str) -> None:
    with pytest.raises(InvalidInput, match="finer than one SU-minute"):
        parse_su(text)


@given(st.integers(1, AMOUNT_MAX))
@example(25)
@example(75_600)
def test_printed_amount_reads_back(minutes: int) -> None:
    """With separators only if it has decimals: `1,260` may be meant as 1.26."""
    plain = AmountFormat(separators=False)
    assert parse_su(show_su(minutes, plain)) == minutes
    assert parse_su(f"{show_su(minutes, AmountFormat(decimals=2))}h") == minutes


@given(
    st.integers(0, AMOUNT_MAX // 60), st.integers(0, AMOUNT_MAX // 60), st.integers(0, AMOUNT_MAX),
    st.integers(0, AMOUNT_MAX),
    st.sampled_from(["h", "m"]),
)  # fmt: skip
@example(100, 0, 20, 20, "h")
def test_displayed_amounts_of_an_allocation_add_up_to_a_hundredth(
    granted: int, limit: int, used: int, held: int, units: str
) -> None:
    """Of whole SU they add up exactly without a hold, and always in minutes."""
    granted, limit = 60 * granted, 60 * limit
    sums = show_sums(granted, used, held, granted + limit - used - held, AmountFormat(units))
    shown = [Fraction(text) for text in sums]
    assert abs(shown[0] + shown[1] - sum(shown[2:])) <= (Fraction(1, 100) if units == "h" else 0)
    sums = show_sums(granted, used, 0, granted + limit - used, AmountFormat(units))
    shown = [Fraction(text) for text in sums]
    assert shown[0] + shown[1] == sum(shown[2:])


@given(st.integers(1, 10**9))
def test_any_two_decimals_of_an_su_mean_the_nearest_minute(hundredths: int) -> None:
    minutes = parse_su(f"{hundredths // 100}.{hundredths % 100:02}")
    assert abs(100 * minutes - 60 * hundredths) < 50


def test_amount_between_two_minutes_is_rejected_with_both_neighbours() -> None:
    with pytest.raises(InvalidInput) as no:
        parse_su("25.585")
    assert no.value.remedy == "the bank counts whole minutes: 1535m is 25.58 SU, 1536m is 25.60 SU"


@pytest.mark.parametrize("text", [f"{AMOUNT_MAX + 1}m", "16666666666667", "99999999999999999999k"])
def test_enormous_amounts_are_refused_with_the_most_there_is(text: str) -> None:
    with pytest.raises(InvalidInput, match="more than the bank counts") as no:
        parse_su(text)
    assert str(AMOUNT_MAX) in str(no.value.remedy)


def test_largest_amount_can_be_moved() -> None:
    assert parse_su(f"{AMOUNT_MAX}m") == AMOUNT_MAX == amount(AMOUNT_MAX)


@given(st.text(max_size=12) | st.text("0123456789.,+-mhkM \n\u0663", max_size=12))
def test_any_text_is_an_amount_or_malformed(text: str) -> None:
    try:
        minutes = parse_su(text)
    except InvalidInput as no:
        assert no.field == "amount"
        assert re.fullmatch(
            r"write SU \(hours\) such as 100 or 12\.5, or 90m, 20k|write .*m for SU-minutes, or"
            r" \d+k for millions of SU|an amount is at least one"
            r" SU-minute: 1m|the bank counts whole minutes: .*",
            no.remedy or "",
        )
    else:
        assert 1 <= minutes <= AMOUNT_MAX


@given(amounts, st.sampled_from("mhk"))
def test_amount_in_whole_units_is_read(minutes: int, suffix: str) -> None:
    whole = minutes // WORTH[suffix]
    if whole:
        assert parse_su(f"{whole}{suffix}") == whole * WORTH[suffix]
        assert parse_su(f"{whole:,}.0{suffix}") == whole * WORTH[suffix]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("90M", "write 90m for SU-minutes, or 90000k for millions of SU"),
        ("1.5M", "write 1.5m for SU-minutes, or 1500k for millions of SU"),
        ("0.25M", "write 0.25m for SU-minutes, or 250k for millions of SU"),
    ],
)
def test_capital_m_is_refused_as_ambiguous(text: str, remedy: str) -> None:
    with pytest.raises(InvalidInput, match="M may mean minutes or millions") as refused:
        parse_su(text)
    assert refused.value.remedy == remedy


def test_remedy_names_no_amount_that_is_refused() -> None:
    with pytest.raises(InvalidInput, match="finer than one SU-minute") as refused:
        parse_su("0.005", least=1)
    assert "0m" not in str(refused.value.remedy)
    assert "1m is " in str(refused.value.remedy)
