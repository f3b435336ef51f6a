"""When usage is set to nothing: PriorityUsageResetPeriod (facts 2.2)."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from enum import Enum

from fairbank.values.time import DAY, Instant
from fairbank.values.trouble import Malformed


class Reset(Enum):
    """How often; NOW is once, when Slurm starts or reads its settings again."""

    NONE = "NONE"
    NOW = "NOW"
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    QUARTERLY = "QUARTERLY"
    YEARLY = "YEARLY"


_MONTHS = {Reset.MONTHLY: 1, Reset.QUARTERLY: 3, Reset.YEARLY: 12}


def parse_reset(text: str) -> Reset:
    """Read a PriorityUsageResetPeriod. Raises Malformed."""
    try:
        return Reset(text.strip().upper())
    except ValueError as bad:
        words = ", ".join(each.value for each in Reset)
        raise Malformed(
            f"{text[:40]!r} is not a reset period",
            field="PriorityUsageResetPeriod",
            remedy=f"one of {words}",
        ) from bad


def last_reset(period: Reset, last: int, now: int, zone: tzinfo) -> Instant:
    """The newest boundary of `period` in (`last`, `now`]: usage is reset when it is later than `last`, which it takes the place of.

    Boundaries are local: midnight, Sunday, the first of a month, quarter or year. Days and weeks are steps of 86,400 s from the
    midnight of `last`, so that a change of the clock shifts them until the next reset, as in Slurm; months go by the
    calendar. After NOW whoever asks goes on with NONE.
    """
    if now <= last or period is Reset.NONE:
        return Instant(last)
    if period is Reset.NOW:
        return Instant(now)
    day = datetime.fromtimestamp(last, zone).replace(
        hour=0, minute=0, second=0, microsecond=0, fold=0
    )
    if period in _MONTHS:
        return max(Instant(last), _month_begun(datetime.fromtimestamp(now, zone), _MONTHS[period]))
    days, step = (7 - day.isoweekday() % 7, 7 * DAY) if period is Reset.WEEKLY else (1, DAY)
    first = int(day.timestamp()) + days * DAY
    return Instant(first + (now - first) // step * step) if first <= now else Instant(last)


def next_reset(period: Reset, now: int, zone: tzinfo) -> Instant | None:
    """The first boundary of `period` after `now`, by the calendar of `zone`; None where none will come. NOW has been by then."""
    at = datetime.fromtimestamp(now, zone).replace(
        hour=0, minute=0, second=0, microsecond=0, fold=0
    )
    if period in (Reset.NONE, Reset.NOW):
        return None
    if period in _MONTHS:
        months = (
            at.year * 12 + (at.month - 1) // _MONTHS[period] * _MONTHS[period] + _MONTHS[period]
        )
        return Instant(int(at.replace(year=months // 12, month=months % 12 + 1, day=1).timestamp()))
    days = 7 - at.isoweekday() % 7 if period is Reset.WEEKLY else 1
    return Instant(int((at + timedelta(days)).timestamp()))


def _month_begun(at: datetime, months: int) -> Instant:
    """The first instant of the stretch of `months` that `at` lies in."""
    month = (at.month - 1) // months * months + 1
    return Instant(
        int(
            at.replace(
                month=month, day=1, hour=0, minute=0, second=0, microsecond=0, fold=0
            ).timestamp()
        )
    )
