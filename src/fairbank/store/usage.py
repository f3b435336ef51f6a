"""Usage by group: names of groups, days and months for every database."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime

import msgspec

from fairbank.bank.efficiency import efficiency, failed_early
from fairbank.bank.query import GroupPage, Usage, UsageBy
from fairbank.bank.run import RunRecord
from fairbank.cluster.job import COMPLETED
from fairbank.core.time import DAY

_FIRST_DAY = date(1970, 1, 1)

UNKNOWN_STATUS = -1
"""Stands for an unknown exit status."""


def usage_of_runs(group: str | int, runs: Sequence[RunRecord]) -> Usage:
    """Return the usage of these runs together."""
    used = [efficiency(run) for run in runs]
    early = [run for run in runs if failed_early(run)]
    exits = {
        UNKNOWN_STATUS
        if run.job_details is None
        else _status_or_unknown(run.job_details.exit_status)
        for run in early
    } or {UNKNOWN_STATUS}
    return Usage(
        group,
        runs=len(runs),
        failed=sum(run.outcome != COMPLETED for run in runs),
        charged=sum(run.charged - run.refunded for run in runs),
        elapsed_seconds=sum(run.elapsed_seconds or 0 for run in runs),
        waited_seconds=sum(max(0, run.start - run.run.submitted) for run in runs),
        cpu_seconds=sum(each.used for each in used),
        given_seconds=sum(each.given for each in used),
        wasted=sum(each.wasted for each in used),
        early=len(early),
        early_exit=_exit(min(exits), max(exits)),
    )


def usage_of_row(group: str | int, figures: Sequence[int | None]) -> Usage:
    """Return the usage of a database row with the columns of `store.sql.usage_statement.usage`."""
    *sums, lowest, highest = figures
    return msgspec.structs.replace(
        Usage(group, *[int(each or 0) for each in sums]), early_exit=_exit(lowest, highest)
    )


def _status_or_unknown(status: int | None) -> int:
    return UNKNOWN_STATUS if status is None else status


def _exit(lowest: int | None, highest: int | None) -> int | None:
    """Return the exit status of all runs if it is the same."""
    return lowest if lowest == highest and lowest != UNKNOWN_STATUS else None


def _joined(one: Usage, other: Usage) -> Usage:
    """Return the sum of both under the group of the first."""
    sums = [
        a + b
        for a, b in zip(
            msgspec.structs.astuple(one)[1:-1], msgspec.structs.astuple(other)[1:-1], strict=True
        )
    ]
    exits = {each.early_exit for each in (one, other) if each.early}
    return msgspec.structs.replace(
        Usage(one.group, *sums), early_exit=exits.pop() if len(exits) == 1 else None
    )


def group_after(after: str | int | None, by: UsageBy) -> str | int | None:
    """Return the group as databases number it: the day, for a month its last day."""
    if after is None or by not in (UsageBy.DAY, UsageBy.MONTH):
        return after
    year, month, *day = map(int, str(after).split("-"))
    return (
        date(year, month, day[0] if day else calendar.monthrange(year, month)[1]) - _FIRST_DAY
    ).days


def page_days(page: GroupPage, by: UsageBy) -> int:
    """Return the number of database groups that fill a page: a month has at most 31 days."""
    return page.size * 31 if by is UsageBy.MONTH else page.size


def named_groups(groups: Iterable[Usage], by: UsageBy) -> list[Usage]:
    """Return `groups` with their names in ascending order. Days are numbered from 1970, for months
    too: a month is the sum of its days.
    """
    match by:
        case UsageBy.DAY:
            return [msgspec.structs.replace(day, group=_date(day.group)) for day in groups]
        case UsageBy.MONTH:
            return _months(groups)
        case _:
            # Sorted here, because databases order texts differently.
            return sorted(groups, key=lambda each: each.group)


def _date(day: str | int) -> str:
    return datetime.fromtimestamp(int(day) * DAY, UTC).date().isoformat()


def _months(days: Iterable[Usage]) -> list[Usage]:
    months: dict[str, Usage] = {}
    for day in days:
        month = _date(day.group)[:7]
        months[month] = _joined(months.get(month, Usage(month, 0, 0, 0, 0)), day)
    return list(months.values())
