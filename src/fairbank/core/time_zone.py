"""Time zones: their offsets from UTC over a period, and the days of their calendars."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY, LAST_INSTANT

ZoneOffsets = tuple[tuple[int, int], ...]
"""(instant, seconds east of UTC from then on), ascending; empty for UTC."""

_FIXED = re.compile(r"([+-])(\d\d):([0-5]\d)", re.ASCII)


def parse_zone(text: str) -> tzinfo:
    """Parse the name of a time zone (`Europe/Rome`, `UTC`) or a fixed offset (`+05:30`).

    Raises:
        InvalidInput: there is no such zone here.
    """
    try:
        if match := _FIXED.fullmatch(text):
            east = timedelta(hours=int(match[2]), minutes=int(match[3]))
            return timezone(-east if match[1] == "-" else east, text)
        return UTC if text == "UTC" else ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInput(
            f"{text[:40]!r} is not a time zone that is known here",
            field="zone",
            remedy="write a name of the tz database such as Europe/Rome, UTC, or +05:30",
        ) from error


def zone_offsets(zone: tzinfo, since: int, until: int) -> ZoneOffsets:
    """Return the offsets of a zone in a period, with the times of changes; none for UTC.

    Args:
        zone: time zone, which is assumed to change its offset at most once a day.
        since: start of the period in seconds since 1970.
        until: end of the period in seconds since 1970.
    """
    if zone is UTC:
        return ()
    changes = [(since, _offset(zone, since))]
    before = since
    while before < until:
        after = min(before + DAY, until)
        if (offset := _offset(zone, after)) != changes[-1][1]:
            changes.append((_change(zone, before, after), offset))
        before = after
    return tuple(changes)


def _offset(zone: tzinfo, at: int) -> int:
    # The last day of the calendar has no later day in zones east of UTC.
    shown = datetime.fromtimestamp(min(at, LAST_INSTANT - DAY), zone)
    return int((shown.utcoffset() or timedelta()).total_seconds())


def _change(zone: tzinfo, before: int, after: int) -> int:
    """Return the first second with the offset of `after`."""
    new = _offset(zone, after)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _offset(zone, middle) == new else (middle, after)
    return after


def local_day(at: int, offsets: ZoneOffsets) -> int:
    """Return the day of an instant in a zone, numbered from 1970-01-01."""
    east = next((offset for begin, offset in reversed(offsets) if begin <= at), 0)
    return (at + east) // DAY
