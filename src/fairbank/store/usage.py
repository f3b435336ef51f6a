"""Groups of usage under their names: days and months in UTC, whatever database counted them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from fairbank.bank.query import Usage, UsageBy
from fairbank.values.time import DAY


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
