"""Instants and time limits (moments: `test_moments`). The time limits are the cases of Slurm's own
test of its parser.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY, LAST_INSTANT, iso, parse_duration, parse_instant, show_duration
from tests.support.clock import ManualClock

NOVEMBER = 1_795_219_200  # 2026-11-21T00:00:00Z


# --- instants ---


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-21", NOVEMBER),
        ("2026-11-21T00:00Z", NOVEMBER),
        ("2026-11-21T07:30", NOVEMBER + 27_000),
        ("2026-11-21T07:30:12", NOVEMBER + 27_012),
        ("2026-11-21T07:30:12Z", NOVEMBER + 27_012),
        ("2026-11-21T07:30:12+01:00", NOVEMBER + 23_412),
        ("2026-11-20T23:00:00-01:00", NOVEMBER),
        ("2026-11-21 07:30", NOVEMBER + 27_000),
        ("2026-11-21T07:30:12.9Z", NOVEMBER + 27_012),
        ("2026-11-21T07:30+0100", NOVEMBER + 23_400),
        ("@0", 0),
        ("@1795219200", NOVEMBER),
        ("1795219200", NOVEMBER),
        ("100000000", 100_000_000),
        ("1970-01-01", 0),
        ("9999-12-31T23:59:59Z", LAST_INSTANT),
        (str(LAST_INSTANT), LAST_INSTANT),
    ],
)
def test_instants_as_people_write_them(text: str, seconds: int) -> None:
    assert parse_instant(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *(
            "20261121",
            "2026",
            "0",
            "99999999",
            "@",
            "@-1",
            "@1.5",
            "2026-W47-6",
            "2026-325",
        ),  # bare digits could be a date
        *(
            "2026-11-21\n07:30",
            "2026-11-21\x0007:30",
            "2026-11-21x07:30",
            "2026-11-21T07",
            "2026-11-21T",
            "2026-11-21T07:30z",
        ),
        *(
            "",
            " ",
            "now",
            "tomorrow",
            "21.11.2026",
            "11/21/26",
            "2026-11",
            "2026-13-01",
            "2026-02-29",
            "2026-11-21T25:00",
            "-1",
            "1.5",
        ),
        *("2026-11-21\n", "9" * 5_000, "99999-12", "99999-12-31x"),
        *("\u0661", "2026-11-2\u0661", "\ud800", "2026-11-21T07:30Z; DROP"),
    ],
)
def test_other_texts_are_no_instant(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time") as no:
        parse_instant(text, field="start")
    assert no.value.field == "start"
    assert len(no.value.message) < 300


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0001-01-01",
            "1969-12-31",
            "1970-01-01T00:00+14:00",
            "9999-12-31T23:59:59-01:00",
            str(LAST_INSTANT + 1),
            "0001-01-01T00:00+14:00",
        ),
        *("99999-12-31", "+10000-01-01T00:00Z", "-12026-11-21", "9" * 13, "@9999999999999"),
    ],
)
def test_instant_that_is_out_of_range_is_reported_as_such(text: str) -> None:
    with pytest.raises(InvalidInput, match="is out of range") as no:
        parse_instant(text, field="start")
    assert (no.value.field, no.value.remedy) == ("start", "a time in the years 1970 to 9999")


@given(st.integers(0, LAST_INSTANT))
def test_what_is_shown_is_read(seconds: int) -> None:
    assert parse_instant(iso(seconds)) == seconds == parse_instant(f"@{seconds}")


@given(st.text(max_size=30) | st.text("0123456789-:TZ+ .W", max_size=30))
def test_any_text_is_an_instant_or_malformed(text: str) -> None:
    try:
        assert 0 <= parse_instant(text) <= LAST_INSTANT
    except InvalidInput as no:
        assert no.field == "time"


def test_stopped_clock_moves_only_when_set() -> None:
    clock = ManualClock(5)
    assert clock.now() == clock.now() == 5
    clock.at = parse_instant("@7")
    assert clock.now() == 7


# --- time limits ---


def whole_minutes(seconds: int) -> int:
    return -(-seconds // 60) * 60


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 3_600),
        ("60:15", 3_615),
        ("60:0", 3_600),
        ("1:60:15", 7_215),
        ("2:60:15", 10_815),
        ("0:0:15", 15),
        ("0-1:60:15", 7_215),
        ("1-1:60:15", 93_615),
        ("365-0:0:0", 31_536_000),
    ],
)
def test_time_limits_as_slurm_reads_them(text: str, seconds: int) -> None:
    assert parse_duration(text) == whole_minutes(seconds)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("0:30", 1),
        ("1:01", 2),
        ("90", 90),
        ("1-0", 1_440),
        ("2-", 2_880),
        ("0:0:1", 1),
        ("2-12:30", 3_630),
        ("00090", 90),
    ],
)
def test_time_limits_are_rounded_up_to_minutes_as_slurm_does(text: str, minutes: int) -> None:
    assert parse_duration(text) == minutes * 60


@pytest.mark.parametrize(
    "text",
    ["-1", "INFINITE", "unlimited", "UNLIMITED", "infinite", "0", "00", "0:0", "0:0:0", "0-0"],
)
def test_hold_needs_a_finite_limit(text: str) -> None:
    """sbatch takes 0 for no limit."""
    with pytest.raises(InvalidInput, match="finite time limit"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "60:",
            "60:-10",
            "-60:10",
            "-0:-0:-0",
            " 0:0:0 ",
            "INVALID TIME",
            "1:2:3:4",
            "1-2-3",
            "1-:1",
            "-",
            ":",
            "1:-2",
            "1.5",
            "1h",
            "+1",
        ),
        *("60\n", "\u0661", "1 0", "1-2:3:4:5", "0x1", "1e2", "9" * 33),
    ],
)
def test_other_texts_are_no_time_limit(text: str) -> None:
    with pytest.raises(InvalidInput) as no:
        parse_duration(text)
    assert no.value.field == "time limit"
    assert "12:00:00" in str(no.value.remedy)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "00:00:00"),
        (59, "00:00:59"),
        (3_600, "01:00:00"),
        (DAY - 1, "23:59:59"),
        (DAY, "1-00:00:00"),
        (100 * DAY + 1, "100-00:00:01"),
    ],
)
def test_durations_as_sacct_prints_them(seconds: int, shown: str) -> None:
    assert show_duration(seconds) == shown


@given(st.integers(1, 10**9))
def test_shown_duration_is_a_time_limit(minutes: int) -> None:
    assert (
        parse_duration(show_duration(minutes * 60)) == minutes * 60 == parse_duration(str(minutes))
    )


@given(st.text(max_size=12) | st.text("0123456789-: ", max_size=12))
def test_any_text_is_a_time_limit_or_malformed(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except InvalidInput as no:
        assert no.field == "time limit"
    else:
        assert seconds > 0
        assert seconds % 60 == 0
