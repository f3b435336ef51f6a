"""Groups of usage under their names: days and months in UTC, whatever database counted them."""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from datetime import UTC, date, datetime

from fairbank.bank.query import GroupPage, Usage, UsageBy
from fairbank.values.time import DAY

_FIRST_DAY = date(1970, 1, 1)


def beyond(after: str | int | None, by: UsageBy) -> str | int | None:
    """The group as databases count it: the day's number, for a month the number of its last day."""
    if after is None or by not in (UsageBy.DAY, UsageBy.MONTH):
        return after
    year, month, *day = map(int, str(after).split("-"))
    return (date(year, month, day[0] if day else calendar.monthrange(year, month)[1]) - _FIRST_DAY).days


def days_of(page: GroupPage, by: UsageBy) -> int:
    """How many groups of the database surely make a page: a month has 31 days at most."""
    return page.size * 31 if by is UsageBy.MONTH else page.size


def named(groups: Iterable[Usage], by: UsageBy) -> list[Usage]:
    """`groups` in rising order. Days come numbered from 1970 and in order, also for months: a month is the sum of its days."""
    match by:
        case UsageBy.DAY:
            return [Usage(_date(day.group), day.runs, day.failed, day.charged, day.elapsed_seconds) for day in groups]
        case UsageBy.MONTH:
            return _months(groups)
        case _:
            return sorted(groups, key=lambda each: each.group)  # here, since databases order texts in ways of their own


def _date(day: str | int) -> str:
    return datetime.fromtimestamp(int(day) * DAY, UTC).date().isoformat()


def _months(days: Iterable[Usage]) -> list[Usage]:
    months: dict[str, Usage] = {}
    for day in days:
        month = _date(day.group)[:7]
        known = months.get(month, Usage(month, 0, 0, 0, 0))
        months[month] = Usage(
            month,
            known.runs + day.runs,
            known.failed + day.failed,
            known.charged + day.charged,
            known.elapsed_seconds + day.elapsed_seconds,
        )
    return list(months.values())
