"""Usage by group: sums of runs, and days, weeks and months, for every database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import msgspec

from fairbank.bank.efficiency import efficiency, is_early_failure
from fairbank.bank.query import GroupPage, Usage
from fairbank.bank.run import RunRecord
from fairbank.cluster.job import NO_DETAILS, JobDetails
from fairbank.core.time import DAY, calendar_name
from fairbank.core.time_zone import ZoneOffsets, local_day
from fairbank.core.tres import gpu_count
from fairbank.core.usage_groups import UsageBy

_FIRST_DAY = date(1970, 1, 1)

UNKNOWN_STATUS = -1
"""Stands for an unknown exit status."""


def usage_of_runs(key: tuple[str | int, str, str], runs: Sequence[RunRecord]) -> Usage:
    """Return the usage of these runs together; `key` is their group and unit."""
    used = [efficiency(run) for run in runs]
    early = [run for run in runs if is_early_failure(run)]
    exits = {
        UNKNOWN_STATUS
        if run.reported.job_details is None
        else _status_or_unknown(run.reported.job_details.exit_status)
        for run in early
    } or {UNKNOWN_STATUS}
    return Usage(
        *key,
        runs=sum(not run.is_measured for run in runs),
        failed=sum(run.end is not None and run.end.is_failure for run in runs),
        charged=sum(run.charged - run.refunded for run in runs),
        elapsed_seconds=sum(_elapsed(run) for run in runs),
        core_seconds=sum((_details(run).cpus or 0) * _elapsed(run) for run in runs),
        gpu_seconds=sum(gpu_count(_details(run).tres or "") * _elapsed(run) for run in runs),
        waited_seconds=sum(max(0, run.reported.start - run.reported.run.submitted) for run in runs),
        cpu_seconds=sum(figures.used for figures in used),
        given_seconds=sum(figures.given for figures in used),
        wasted=sum(figures.wasted for figures in used),
        occupied=sum(run.occupied or 0 for run in runs),
        without_size=sum(run.occupied is None for run in runs),
        early=len(early),
        early_exit=_exit(min(exits), max(exits)),
    )


def _details(run: RunRecord) -> JobDetails:
    return run.reported.job_details or NO_DETAILS


def _elapsed(run: RunRecord) -> int:
    return run.end.elapsed_seconds if run.end else 0


def usage_of_row(row: Sequence[Any]) -> Usage:
    """Return the usage of a database row with the columns of `store.sql.usage_statement.usage`."""
    group, resource, clusters, *sums, lowest, highest = row
    usage = Usage(group, resource, clusters, *[int(number or 0) for number in sums])
    return msgspec.structs.replace(usage, early_exit=_exit(lowest, highest))


def _status_or_unknown(status: int | None) -> int:
    return UNKNOWN_STATUS if status is None else status


def _exit(lowest: int | None, highest: int | None) -> int | None:
    """Return the exit status of all runs if it is the same."""
    return lowest if lowest == highest and lowest != UNKNOWN_STATUS else None


def page_of_groups(groups: Iterable[Usage], by: UsageBy, page: GroupPage) -> list[Usage]:
    """Return one page of the groups, with the names of their days, weeks or months.

    Rows of time are numbered by days from 1970: databases disagree on calendars. They are few, so
    all of them are read. Sorted here, because databases order texts differently.

    Args:
        groups: the groups in any order. By time they are days, of which weeks and months are the
            sums; else they may be cut to the page already.
        by: how the runs were grouped.
        page: the key after which the page begins, or only the largest groups of each unit.
    """
    if by.is_time:
        groups = _calendar_groups(groups, by)
    if page.largest and by.is_time:
        ordered = sorted(groups, key=lambda group: (*group.key[1:], group.group))
        units = groupby(ordered, key=lambda group: group.key[1:])
        parts = [list(rows) for _, rows in units]
        return [group for rows in parts for group in rows[max(0, len(rows) - page.size) :]]
    if page.largest:
        ranked = sorted(groups, key=lambda group: (*group.key[1:], -group.charged, group.group))
        units = groupby(ranked, key=lambda group: group.key[1:])
        return [group for _, rows in units for group in list(rows)[: page.size]]
    after = page.after
    wanted = (group for group in groups if after is None or group.key > after)
    return sorted(wanted, key=lambda group: group.key)[: page.size]


def _calendar_groups(days: Iterable[Usage], by: UsageBy) -> list[Usage]:
    """Return the sums of days, which are numbered from 1970, by their day, week or month."""
    groups: dict[tuple[str | int, str, str], Usage] = {}
    for day in days:
        named = msgspec.structs.replace(day, group=_name(int(day.group), by))
        before = groups.get(named.key)
        groups[named.key] = named if before is None else before.plus(named)
    return list(groups.values())


def edge_days(first: int, last: int, offsets: ZoneOffsets, by: UsageBy) -> list[int]:
    """Return the UTC days that are in two days, weeks or months of a zone.

    Args:
        first: the first day, numbered from 1970.
        last: the day after the last.
        offsets: time zone.
        by: which part of the calendar.
    """
    return [
        day
        for day in range(first, last)
        if _name(local_day(day * DAY, offsets), by)
        != _name(local_day((day + 1) * DAY - 1, offsets), by)
    ]


def _name(day: int, by: UsageBy) -> str:
    return calendar_name(_FIRST_DAY + timedelta(days=day), by.value)
