"""Time zones: names, offsets over a period, and local days."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.query import GroupPage, Usage
from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.core.time_zone import local_day, parse_zone, zone_offsets
from fairbank.core.usage_groups import UsageBy
from fairbank.store.usage import page_of_groups

CENTURY = 130 * 366 * DAY
ZONES = st.sampled_from(sorted(available_timezones() - {"localtime"}))


@given(ZONES, st.integers(0, CENTURY), st.integers(1, 800), st.data())
def test_days_are_those_of_the_calendar_of_the_zone(
    name: str, since: int, days: int, data: st.DataObject
) -> None:
    zone = parse_zone(name)
    until = since + days * DAY
    at = data.draw(st.integers(since, until))
    expected = datetime.fromtimestamp(at, zone).date() - date(1970, 1, 1)
    assert local_day(at, zone_offsets(zone, since, until)) == expected.days


@given(ZONES, st.integers(0, CENTURY), st.lists(st.integers(0, 800 * DAY), min_size=1, max_size=20))
def test_months_of_a_zone_partition_the_time(name: str, since: int, later: list[int]) -> None:
    """Each run counts once, in the month of the calendar of the zone."""
    zone, times = parse_zone(name), [since + seconds for seconds in later]
    offsets = zone_offsets(zone, since, max(times))
    days = [Usage(local_day(at, offsets), "cpu", "lab", 1, 0, 60, 3_600) for at in times]
    months = page_of_groups(days, UsageBy.MONTH, GroupPage(len(days)))
    assert {month.group: month.runs for month in months} == Counter(
        datetime.fromtimestamp(at, zone).strftime("%Y-%m") for at in times
    )


def test_offsets_change_in_the_second_in_which_summer_time_begins() -> None:
    begin, end = (int(datetime(2026, month, 1, tzinfo=UTC).timestamp()) for month in (3, 11))
    march = int(datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp())
    october = int(datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp())
    assert zone_offsets(parse_zone("Europe/Rome"), begin, end) == (
        (begin, 3_600),
        (march, 7_200),
        (october, 3_600),
    )


@pytest.mark.parametrize(("text", "seconds"), [("+05:30", 19_800), ("-03:00", -10_800)])
def test_offset_is_read_as_a_zone(text: str, seconds: int) -> None:
    zone = parse_zone(text)
    assert (zone_offsets(zone, 0, DAY), str(zone)) == (((0, seconds),), text)


@pytest.mark.parametrize(
    "text",
    ["", "Rome", "Europe", "/etc/localtime", "../Rome", "+24:00", "+5:30", "CET-1CEST", "\0"],
)
def test_unknown_zone_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time zone") as refused:
        parse_zone(text)
    assert refused.value.field == "zone"
