"""Times and durations: whole seconds, UTC. Only the user interfaces convert to time zones."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import NewType, Protocol

from fairbank.core.errors import InvalidInput

Instant = NewType("Instant", int)
"""Whole seconds since 1970-01-01T00:00:00Z."""

MINUTE, DAY = 60, 86_400
LIMIT_MAX_SECONDS = 10 * 366 * DAY
"""Ten years: the longest time limit, and the longest that a run can have lasted."""
LAST_INSTANT = Instant(253_402_300_799)
"""9999-12-31T23:59:59Z: the last time that every database and calendar can print."""


class Clock(Protocol):
    """Source of the current time. Only shells own a clock; rules take `now`."""

    def now(self) -> Instant:
        """Return the current time, truncated to whole seconds."""
        ...


# Cached: all answers of one second have its time, and rows of a list are of few days.
@lru_cache(maxsize=1_024)
def iso(at: int) -> str:
    """Return the time as `2026-11-21T07:30:12Z`."""
    return f"{datetime.fromtimestamp(at, UTC).isoformat()[:19]}Z"


# Fewer digits without @ are a date that lacks its dashes.
_SECONDS = re.compile(r"@\d{1,12}|\d{9,12}", re.ASCII)
# A time all the same, but of no year with four digits.
_BEYOND = re.compile(r"@?\d{13,40}|[+-]?\d{5,40}-\d\d-\d\d(?:[T ].{0,40})?", re.ASCII)
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)


def parse_instant(text: str, *, zone: tzinfo = UTC, field: str = "time") -> Instant:
    """Parse a time, as ISO 8601 or in seconds.

    Args:
        text: `2026-11-21`, `2026-11-21T07:30[:12][Z|+01:00]`, or seconds since 1970 with nine
            digits or a leading `@`.
        zone: time zone of a text without one.
        field: name for the error.

    Raises:
        InvalidInput: the text is not a time between 1970 and 9999, or the clocks of the zone show
            it twice. A time that they leave out is that of a clock that was not changed.
    """
    return _instant(text, zone, field, _WRITE)


def parse_clock_time(
    text: str, zone: tzinfo, *, field: str, remedy: str | None = None
) -> tuple[Instant, ...]:
    """Return all times that a text of `parse_instant` can mean.

    A clock shows some times twice when summer time ends, and none of those that are left out when
    it begins. A day without a time is its beginning.

    Args:
        text: the text, in a form of `parse_instant`.
        zone: time zone of a text without one.
        field: name for the error.
        remedy: what to write instead of a text that is no time.

    Raises:
        InvalidInput: the text is not a time between 1970 and 9999.
    """
    try:
        if _SECONDS.fullmatch(text):
            return (_in_range(int(text.removeprefix("@")), text, field),)
        read = datetime.fromisoformat(text if _ISO.fullmatch(text) else "")
        seconds = int((read if read.tzinfo else read.replace(tzinfo=zone)).timestamp())
    except (ValueError, OverflowError) as bad:
        if _BEYOND.fullmatch(text):
            raise _out_of_range(text, field) from bad
        raise _not_a_time(text, field, remedy or _WRITE) from bad
    first = _in_range(seconds, text, field)
    if read.tzinfo or zone is UTC or ":" not in text:
        return (first,)
    second = int(read.replace(tzinfo=zone, fold=1).timestamp())
    shown = read.replace(microsecond=0)
    return tuple(
        Instant(at)
        for at in sorted({first, second})
        if datetime.fromtimestamp(at, zone).replace(tzinfo=None) == shown
    )


def only_instant(text: str, readings: Collection[Instant], zone: tzinfo, *, field: str) -> Instant:
    """Return the time that a text means.

    Args:
        text: the text, for the error.
        readings: the times that it can mean.
        zone: their time zone.
        field: name for the error.

    Raises:
        InvalidInput: there is not just one; the error has each with its offset.
    """
    if len(readings) == 1:
        return next(iter(readings))
    if not readings:
        raise InvalidInput(
            f"{text!r} is left out by the change to summer time",
            field=field,
            remedy="write it with Z or an offset, such as 2026-10-25T02:30:00+01:00",
        )
    written = " or ".join(datetime.fromtimestamp(at, zone).isoformat() for at in readings)
    raise InvalidInput(
        f"{text!r} occurs twice, at the change from summer time",
        field=field,
        remedy=f"write it with Z or an offset: {written}",
    )


def _instant(text: str, zone: tzinfo, field: str, remedy: str) -> Instant:
    readings = parse_clock_time(text, zone, field=field, remedy=remedy)
    if not readings:  # left out by the change to summer time
        return Instant(int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()))
    return only_instant(text, readings, zone, field=field)


_AGO = re.compile(r"now(?:([+-])(\d{1,9})([a-z]*))?", re.ASCII)
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": DAY, "weeks": 7 * DAY}
_MONTHS = {"months": 1, "years": 12}
_WALL = {
    "today": time(), "midnight": time(), "noon": time(12), "fika": time(15), "teatime": time(16),
    "tomorrow": time(),
}  # fmt: skip
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d)?", re.ASCII)
# Without a year Slurm's commands do not agree on which one is meant, so it must be there.
_MONTH_FIRST = re.compile(r"(\d\d)([/.]?)(\d\d)\2(\d\d)(?:[-t](\d\d:\d\d(?::\d\d)?))?", re.ASCII)


def parse_moment(
    text: str, now: int, zone: tzinfo = UTC, *, field: str = "time", is_future: bool = False
) -> Instant:
    """Parse a time as Slurm's commands do.

    Accepted are the forms of `parse_instant`, and `now`, `now-7days`, `now+2hours` (Slurm's units
    or their first characters; default: seconds), `now+6months`, `now+1year`, `today`, `midnight`,
    `noon`, `fika` (15:00), `teatime` (16:00), `tomorrow`, `07:30[:12]` of today, and `112126`,
    `11/21/26` or `11.21.26`, also with `-07:30[:12]`. Months and years keep day and clock time; a
    day that the month does not have becomes its last one.

    Args:
        text: time in one of these forms; blanks around it are ignored.
        now: current time in seconds since 1970.
        zone: time zone of a text without one, and of the calendar day.
        field: name for the error.
        is_future: a clock time that is over today is that of tomorrow.

    Raises:
        InvalidInput: the text is not a time, or the clocks of the zone show it twice.
    """
    word = text.strip().lower()
    match = _AGO.fullmatch(word)
    count = 0 if match is None else int((match[1] or "+") + (match[2] or "0"))
    if match and (unit := _unit(match[3])):
        seconds = now + count * unit
    elif match and (months := _unit(match[3], _MONTHS)):
        seconds = _months_later(text, now, count * months, zone, field)
    elif word in _WALL or _CLOCK.fullmatch(word):
        seconds = _clock_time(word, now, zone, field)
        if is_future and seconds < now and word != "today":
            tomorrow = datetime.fromtimestamp(now, zone) + timedelta(days=1)
            seconds = _clock_time(word, int(tomorrow.timestamp()), zone, field)
    elif date_match := _MONTH_FIRST.fullmatch(word):
        month, _, day, year, clock = date_match.groups()
        return _instant(f"20{year}-{month}-{day}T{clock or '00:00'}", zone, field, _SAY)
    else:
        return _instant(text.strip(), zone, field, _SAY)
    return _in_range(seconds, text, field)


def check_unit(text: str, *, field: str) -> None:
    """Raise InvalidInput for `now+6M`: Slurm takes M for minutes, and many people mean months."""
    if match := re.fullmatch(r"\s*(.{0,40}\d)M\s*", text, re.ASCII):
        raise InvalidInput(
            f"{text[:40]!r} is ambiguous: M may mean minutes or months",
            field=field,
            remedy=f"write {match[1]}minutes or {match[1]}months",
        )


def _unit(word: str | None, units: Mapping[str, int] = _UNITS) -> int:
    """Return the seconds or months of a unit, or 0 if the unit is unknown."""
    if not word:
        return 1
    return next((size for name, size in units.items() if name.startswith(word)), 0)


def _months_later(text: str, now: int, months: int, zone: tzinfo, field: str) -> int:
    at = datetime.fromtimestamp(now, zone)
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    if not 1970 <= year <= 9998:
        raise _out_of_range(text, field)
    last_day = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return int(at.replace(year=year, month=month + 1, day=min(at.day, last_day)).timestamp())


def _clock_time(word: str, now: int, zone: tzinfo, field: str) -> int:
    """Return the time of `noon` or `07:30` today; of `tomorrow`, its beginning."""
    day = datetime.fromtimestamp(now, zone).date() + timedelta(days=word == "tomorrow")
    if word in _WALL:
        return int(datetime.combine(day, _WALL[word], zone).timestamp())
    return _instant(f"{day}T{_clock(word, field)}", zone, field, _SAY)


def _clock(word: str, field: str) -> str:
    """Return the clock time in ISO 8601. Raises InvalidInput, which quotes it without a date."""
    clock = word if word[2] == ":" else f"0{word}"  # ISO 8601 has two digits of the hour
    try:
        time.fromisoformat(clock)
    except ValueError as bad:
        raise _not_a_time(word, field, _SAY) from bad
    return clock


_WRITE = "write 2026-11-21, 2026-11-21T07:30Z, or seconds since 1970"
_SAY = "write 2026-11-21, 2026-11-21T07:30, now-7days, now+1year, today, noon, tomorrow or 07:30"


def _in_range(seconds: int, text: str, field: str) -> Instant:
    if not 0 <= seconds <= LAST_INSTANT:
        raise _out_of_range(text, field)
    return Instant(seconds)


def _out_of_range(text: str, field: str) -> InvalidInput:
    return InvalidInput(
        f"{text[:40]!r} is out of range", field=field, remedy="a time in the years 1970 to 9999"
    )


def _not_a_time(text: str, field: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"{text[:40]!r} is not a time", field=field, remedy=remedy)


_SLURM_DURATION = re.compile(r"(?=\d)(?:(\d+)-)?(?:(\d+)(?::(\d+))?(?::(\d+))?)?", re.ASCII)


def parse_duration(text: str, *, field: str = "time limit") -> int:
    """Parse a Slurm time limit into seconds.

    It is `min`, `min:sec`, `h:m:s`, `d-`, `d-h`, `d-h:m` or `d-h:m:s`, rounded up to whole minutes,
    as Slurm does. An unlimited time is refused because a hold needs a finite limit. Source:
    sbatch(1), --time; HADM, "Design Goals".

    Raises:
        InvalidInput: the text is not a finite time limit; the error names `field`.
    """
    match = _SLURM_DURATION.fullmatch(text) if len(text) <= 32 else None
    if match is None:
        raise _not_a_limit(text, field)
    days, first, second, third = (None if part is None else int(part) for part in match.groups())
    if days is not None:
        seconds = days * DAY + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    elif third is not None:
        seconds = (first or 0) * 3600 + (second or 0) * 60 + third
    else:
        seconds = (first or 0) * 60 + (second or 0)
    if seconds == 0:  # sbatch takes 0 for no limit
        raise _not_a_limit(text, field)
    return -(-seconds // 60) * 60


def parse_limit(text: str, *, field: str) -> int:
    """Parse the time limit of a job (`parse_duration`), at most LIMIT_MAX_SECONDS."""
    seconds = parse_duration(text, field=field)
    if seconds > LIMIT_MAX_SECONDS:
        raise InvalidInput(
            f"{text[:40]!r} is longer than the bank counts",
            field=field,
            remedy=f"at most {show_duration(LIMIT_MAX_SECONDS)}",
        )
    return seconds


def _not_a_limit(text: str, field: str) -> InvalidInput:
    remedy = "write minutes, h:mm:ss or d-hh:mm:ss, for example 12:00:00"
    return InvalidInput(f"{text[:40]!r} is not a finite time limit", field=field, remedy=remedy)


def show_rounded(seconds: int) -> str:
    """Return the time in its largest unit for people: `25 min`, `3 h` or `4 days`."""
    if seconds < 90:
        return "1 min"
    for unit, size, limit in (("min", MINUTE, 90 * MINUTE), ("h", 60 * MINUTE, 2 * DAY)):
        if seconds < limit:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds / DAY):,} days"


@lru_cache(maxsize=256)  # the limits of a long list are few
def show_duration(seconds: int) -> str:
    """Return `[d-]hh:mm:ss`, as sacct and scontrol print it."""
    days, rest = divmod(seconds, DAY)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def calendar_name(day: date, by: str) -> str:
    """Return the ISO name of a day, or of its `week` or `month`."""
    if by == "week":
        # The week's own year: 2027-01-01 is a Friday of 2026-W53.
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    return day.isoformat()[: 7 if by == "month" else 10]
