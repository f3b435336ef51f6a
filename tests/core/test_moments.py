"""Times as people write them: Slurm's words, ISO forms, seconds; with an explicit zone or in the
reader's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT, iso, parse_instant, parse_moment

NOW = 1_795_264_212  # 2026-11-21T12:30:12Z, a Saturday
EAST = timezone(timedelta(hours=-5))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2026-11-21T12:30:12Z"),
        ("now-7days", "2026-11-14T12:30:12Z"),
        ("NOW-1day", "2026-11-20T12:30:12Z"),
        ("now-90", "2026-11-21T12:28:42Z"),
        ("now+2h", "2026-11-21T14:30:12Z"),
        ("now-30min", "2026-11-21T12:00:12Z"),
        ("now-1week", "2026-11-14T12:30:12Z"),
        ("now+1year", "2027-11-21T12:30:12Z"),
        ("now-9months", "2026-02-21T12:30:12Z"),
        ("now+2mo", "2027-01-21T12:30:12Z"),
        ("now+2m", "2026-11-21T12:32:12Z"),
        ("today", "2026-11-21T00:00:00Z"),
        ("midnight", "2026-11-21T00:00:00Z"),
        ("noon", "2026-11-21T12:00:00Z"),
        ("fika", "2026-11-21T15:00:00Z"),
        ("teatime", "2026-11-21T16:00:00Z"),
        ("tomorrow", "2026-11-22T00:00:00Z"),
        ("7:05", "2026-11-21T07:05:00Z"),
        ("23:59:59", "2026-11-21T23:59:59Z"),
        ("2026-11-01", "2026-11-01T00:00:00Z"),
        ("2026-11-01T00:00", "2026-11-01T00:00:00Z"),
        (" 2026-11-01T00:00+01:00 ", "2026-10-31T23:00:00Z"),
        ("1795264212", "2026-11-21T12:30:12Z"),
        ("110126", "2026-11-01T00:00:00Z"),
        ("11/01/26", "2026-11-01T00:00:00Z"),
        ("11.01.26-07:30", "2026-11-01T07:30:00Z"),
        ("11/01/26T07:30:12", "2026-11-01T07:30:12Z"),
    ],
)
def test_times_as_people_write_them(text: str, meant: str) -> None:
    assert iso(parse_moment(text, NOW)) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("midnight", "2026-11-22T00:00:00Z"),
        ("noon", "2026-11-22T12:00:00Z"),
        ("fika", "2026-11-21T15:00:00Z"),
        ("12:30", "2026-11-22T12:30:00Z"),
        ("12:31", "2026-11-21T12:31:00Z"),
        ("today", "2026-11-21T00:00:00Z"),
        ("tomorrow", "2026-11-22T00:00:00Z"),
        ("2026-11-01", "2026-11-01T00:00:00Z"),
    ],
)
def test_clock_time_of_the_future_that_is_over_today_is_that_of_tomorrow(
    text: str, meant: str
) -> None:
    assert iso(parse_moment(text, NOW, is_future=True)) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("midnight", "2026-11-21T05:00:00Z"),
        ("tomorrow", "2026-11-22T05:00:00Z"),
        ("07:00", "2026-11-21T12:00:00Z"),
        ("2026-11-01", "2026-11-01T05:00:00Z"),
        ("2026-11-01T00:00Z", "2026-11-01T00:00:00Z"),
        ("now-1day", "2026-11-20T12:30:12Z"),
    ],
)
def test_time_without_a_zone_is_local(text: str, meant: str) -> None:
    assert iso(parse_moment(text, NOW, EAST)) == meant


@pytest.mark.parametrize(
    ("now", "text", "meant"),
    [
        ("2027-01-31T12:00:00Z", "now+1month", "2027-02-28T12:00:00Z"),
        ("2028-02-29T12:00:00Z", "now+1year", "2029-02-28T12:00:00Z"),
        # 12:00 in Rome before and after clocks are set back.
        ("2026-08-21T10:00:00Z", "now+6months", "2027-02-21T11:00:00Z"),
    ],
)
def test_months_and_years_keep_day_and_clock_time(now: str, text: str, meant: str) -> None:
    assert iso(parse_moment(text, parse_instant(now), ZoneInfo("Europe/Rome"))) == meant


@pytest.mark.parametrize("text", ["now-57years", "now+7974years", "now-999999999months"])
def test_years_without_a_date_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="out of range"):
        parse_moment(text, NOW)


def test_today_is_the_day_of_the_readers_zone() -> None:
    past_midnight_in_utc = parse_instant("2026-11-21T03:00Z")
    assert iso(parse_moment("today", past_midnight_in_utc, EAST)) == "2026-11-20T05:00:00Z"


def test_midnight_is_local_when_clocks_are_set_back() -> None:
    new_york = ZoneInfo("America/New_York")
    noon_of_that_day = int(datetime(2026, 11, 1, 12, tzinfo=new_york).timestamp())
    assert iso(parse_moment("midnight", noon_of_that_day, new_york)) == "2026-11-01T04:00:00Z"
    assert iso(parse_moment("tomorrow", noon_of_that_day, new_york)) == "2026-11-02T05:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "now-",
        "now-7 days",
        "now-7fortnights",
        "now-99999999999",
        "25:00",
        "7:5",
        "99:99:99",
        "2026-13-01",
        "130126",
        "11/01.26",
        "1101",
        "-5",
        "now-100000weeks",
    ],
)
def test_invalid_time_is_reported(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_moment(text, NOW, field="--starttime")
    assert error.value.field == "--starttime"
    assert re.fullmatch(
        r"a time in the years 1970 to 9999|write 2026-11-21, .*, now-7days, now\+1year, today,"
        r" noon, tomorrow or 07:30",
        error.value.remedy or "",
    )


@pytest.mark.parametrize("text", ["25:00", "7:60", "99:99:99"])
def test_invalid_clock_time_is_quoted_without_the_date_of_today(text: str) -> None:
    with pytest.raises(InvalidInput, match=f"^'{text}' is not a time"):
        parse_moment(text, NOW)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        assert 0 <= parse_moment(text, NOW, EAST) <= LAST_INSTANT
    except InvalidInput:
        pass


@given(st.integers(0, LAST_INSTANT))
def test_what_iso_writes_reads_back_in_any_zone(at: int) -> None:
    assert parse_moment(iso(at), NOW, EAST) == parse_instant(iso(at)) == at


def test_instant_without_a_zone_is_utc_by_default() -> None:
    assert parse_instant("2026-11-01T00:00") == int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
    assert parse_instant("2026-11-01T00:00", zone=EAST) == int(
        datetime(2026, 11, 1, 5, tzinfo=UTC).timestamp()
    )


NEW_YORK = ZoneInfo("America/New_York")
"""Where 01:00 to 02:00 occurs twice on 2026-11-01, and 02:00 to 03:00 never on 2026-03-08."""


@pytest.mark.parametrize("text", ["2026-11-01T01:30", "2026-11-01 01:30:00", "1:30"])
def test_time_that_occurs_twice_is_refused_with_both_readings(text: str) -> None:
    noon = int(datetime(2026, 11, 1, 12, tzinfo=NEW_YORK).timestamp())
    with pytest.raises(InvalidInput, match="occurs twice") as error:
        parse_moment(text, noon, NEW_YORK, field="-S")
    remedy = str(error.value.remedy)
    readings = remedy.removeprefix("write it with Z or an offset: ").split(" or ")
    assert [iso(parse_moment(reading, noon, NEW_YORK)) for reading in readings] == [
        "2026-11-01T05:30:00Z",
        "2026-11-01T06:30:00Z",
    ]
    assert error.value.field == "-S"


def test_time_that_no_clock_shows_is_that_of_a_clock_that_was_not_changed() -> None:
    assert iso(parse_moment("2026-03-08T02:30", NOW, NEW_YORK)) == "2026-03-08T07:30:00Z"


@pytest.mark.parametrize(
    ("text", "zone", "begin"),
    [
        ("2026-11-01", "America/Havana", "2026-11-01T04:00:00Z"),  # midnight occurs twice
        ("2026-09-06", "America/Santiago", "2026-09-06T04:00:00Z"),  # and never
    ],
)
def test_day_begins_once_also_where_its_midnight_does_not(text: str, zone: str, begin: str) -> None:
    assert iso(parse_moment(text, NOW, ZoneInfo(zone))) == begin
