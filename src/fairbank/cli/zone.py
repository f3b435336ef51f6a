"""The time zone of whoever sits here: what TZ or the system says, summer time included."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, tzinfo


class Local(tzinfo):
    """The system's zone. (`zoneinfo` would need its name, which the system does not tell.)"""

    def fromutc(self, at: datetime) -> datetime:
        seconds = int((at.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds())  # noqa: DTZ001  a wall clock's difference
        wall = time.localtime(seconds)
        fold = wall.tm_isdst == 0 and time.localtime(seconds - 3600).tm_isdst == 1
        return datetime(*wall[:6], tzinfo=self, fold=int(fold))

    def utcoffset(self, at: datetime | None) -> timedelta:
        return timedelta(seconds=self._read(at).tm_gmtoff)

    def dst(self, at: datetime | None) -> timedelta:
        return timedelta(hours=1) if self._read(at).tm_isdst > 0 else timedelta()

    def tzname(self, at: datetime | None) -> str:
        return self._read(at).tm_zone

    def _read(self, at: datetime | None) -> time.struct_time:
        if at is None:
            return time.localtime()
        said = (at.year, at.month, at.day, at.hour, at.minute, at.second)
        for summer in (0, 1) if at.fold else (1, 0):  # mktime shifts the clock when we guess wrong
            wall = time.localtime(time.mktime((*said, 0, 0, summer)))
            if wall[:6] == said:
                break
        return wall
