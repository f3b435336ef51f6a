"""Decay and reset of usage (slurm-rules.md, "Usage decay")."""

from __future__ import annotations

import math
import sys
from datetime import datetime, timedelta, tzinfo
from enum import Enum

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY, Instant, parse_duration


class Reset(Enum):
    """Period of resets. NOW is once, when Slurm starts or reads its settings again."""

    NONE = "NONE"
    NOW = "NOW"
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    QUARTERLY = "QUARTERLY"
    YEARLY = "YEARLY"


_MONTHS = {Reset.MONTHLY: 1, Reset.QUARTERLY: 3, Reset.YEARLY: 12}


def parse_reset(text: str) -> Reset:
    """Parse a PriorityUsageResetPeriod. Raises InvalidInput."""
    try:
        return Reset(text.strip().upper())
    except ValueError as bad:
        words = ", ".join(period.value for period in Reset)
        raise InvalidInput(
            f"{text[:40]!r} is not a reset period",
            field="PriorityUsageResetPeriod",
            remedy=f"one of {words}",
        ) from bad


def last_reset(period: Reset, last: int, now: int, zone: tzinfo) -> Instant:
    """Return the last boundary of `period` in (`last`, `now`], or `last` if there is none. Usage is
    reset if it is later than `last`.

    Boundaries are local: midnight, Sunday, the first of a month, quarter or year. Days and weeks
    are steps of 86,400 s from the midnight of `last`, so that a change of the clock shifts them
    until the next reset, as in Slurm. Months follow the calendar. After NOW the caller continues
    with NONE.

    Args:
        period: PriorityUsageResetPeriod.
        last: time of the last reset, in seconds since 1970.
        now: time in seconds since 1970.
        zone: time zone of slurmctld.
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
    """Return the first boundary of a reset period after `now`; None for NONE and NOW.

    Args:
        period: PriorityUsageResetPeriod.
        now: time in seconds since 1970.
        zone: time zone of slurmctld, whose calendar counts.
    """
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
    """Return the begin of the period of `months` that contains `at`."""
    month = (at.month - 1) // months * months + 1
    return Instant(
        int(
            at.replace(
                month=month, day=1, hour=0, minute=0, second=0, microsecond=0, fold=0
            ).timestamp()
        )
    )


HALF_LIFE = 7 * DAY

_FADING = 0.693
"""Part of a half-life that decays per second in Slurm: 0.693, not ln 2."""


class Decay(msgspec.Struct, frozen=True):
    """PriorityDecayHalfLife in seconds (0: no decay) and PriorityUsageResetPeriod."""

    half_life: int = HALF_LIFE
    reset: Reset = Reset.NONE

    @property
    def a_second(self) -> float:
        """Return what is left after a second: 1 - 0.693 / half-life, as in Slurm."""
        return 1 - _FADING / self.half_life if self.half_life else 1.0

    def remaining(self, seconds: int) -> float:
        """Return what is left, never 0. Raises InvalidInput if the clock went back."""
        if seconds < 0:
            raise InvalidInput(
                f"the clock went back by {-seconds} s since the last tick",
                field="now",
                remedy="give the time of the last tick or a later one",
            )
        return max(math.pow(self.a_second, seconds), sys.float_info.min)

    def seconds_until(self, remaining: float) -> float | None:
        """Return the seconds until this part of usage, up to 1, is left; None if never. It ignores
        ticks, so the result may have a fraction.
        """
        if not 0 < remaining <= 1 or not self.half_life:
            return 0.0 if remaining == 1 else None
        return math.log(remaining) / math.log1p(-_FADING / self.half_life)


def fading(half_life: int, reset: Reset | None = None) -> Decay:
    """Return the decay with this half-life in seconds. `reset` None: slurm.conf has none.

    As in Slurm, usage without decay is refused unless PriorityUsageResetPeriod is set, even to
    NONE. Raises InvalidInput.
    """
    if not 0 <= half_life < 2**32 * 60:
        raise InvalidInput(
            f"{half_life} s is not a half-life",
            field="PriorityDecayHalfLife",
            remedy="7-0 for a week, 0 for no decay",
        )
    if half_life % 60:
        raise InvalidInput(
            f"{half_life} s is not a whole minute",
            field="PriorityDecayHalfLife",
            remedy="Slurm counts it in minutes",
        )
    if half_life == 0 and reset is None:
        raise InvalidInput(
            "with half-life 0 usage never fades and nothing resets it",
            field="PriorityUsageResetPeriod",
            remedy="write it down, if only as NONE: usage then counts for ever",
        )
    return Decay(half_life, reset or Reset.NONE)


def parse_half_life(text: str) -> int:
    """Return the seconds of a PriorityDecayHalfLife such as `7-0`, `14-00:00:00` or `0`, rounded up
    to minutes. Raises InvalidInput.
    """
    digits = text.strip().replace(":", "").replace("-", "")
    if digits and not digits.strip("0"):
        return 0
    return parse_duration(text.strip(), field="PriorityDecayHalfLife")
