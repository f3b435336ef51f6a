"""Usage of groups of runs as an SQLAlchemy statement for every database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    literal_column,
    select,
    true,
)

from fairbank.bank.efficiency import EARLY_OUTCOMES, EARLY_SECONDS
from fairbank.bank.query import NO_QOS, GroupPage, UsageBy, UsageQuery
from fairbank.bank.run import RESOLVED
from fairbank.cluster.job import COMPLETED
from fairbank.core.time import DAY
from fairbank.core.time_zone import ZoneOffsets
from fairbank.store.schema import run
from fairbank.store.sql.conditions import (
    between,
    bytewise,
    equal,
    in_allocations,
    is_in,
    run_is_visible,
)
from fairbank.store.usage import UNKNOWN_STATUS, group_after, page_days

_r = run.c
_GIVEN = _r.cpus * _r.elapsed_seconds
_MEASURED = and_(_r.cpu_seconds.is_not(None), _GIVEN > 0)
_BUSY = case((_r.cpu_seconds < _GIVEN, _r.cpu_seconds), else_=_GIVEN)
_EARLY = and_(_r.outcome.in_(sorted(EARLY_OUTCOMES)), _r.elapsed_seconds <= EARLY_SECONDS)
_PAID = _r.charged - _r.refunded
_EXIT = func.coalesce(_r.exit_status, UNKNOWN_STATUS)


def _sum(figure: ColumnElement[Any] | int, of: ColumnElement[bool]) -> ColumnElement[Any]:
    """Return the sum over the runs that fulfil the condition. Others are not evaluated: their time
    may be zero and would be a divisor.
    """
    return func.sum(case((of, figure), else_=0))


_FIGURES: tuple[ColumnElement[Any], ...] = (
    func.count(),
    func.sum(case((_r.outcome == COMPLETED, 0), else_=1)),
    func.sum(_PAID),
    func.sum(_r.elapsed_seconds),
    _sum(_r.start_at - _r.submitted, _r.start_at > _r.submitted),
    _sum(_BUSY, _MEASURED),
    _sum(_GIVEN, _MEASURED),
    _sum(_PAID * (1000 - (2000 * _BUSY + _GIVEN) // (2 * _GIVEN)) // 1000, _MEASURED),
    _sum(1, _EARLY),
    func.min(case((_EARLY, _EXIT))),
    func.max(case((_EARLY, _EXIT))),
)


def _local_day(offsets: ZoneOffsets) -> ColumnElement[Any]:
    """Return the day of a run's end, as `core.time_zone.local_day`."""
    day = literal_column(str(DAY), BigInteger)
    if not offsets:
        return _r.ended_at // day
    whens = [(_r.ended_at >= begin, _r.ended_at + east) for begin, east in reversed(offsets)]
    return case(*whens, else_=_r.ended_at) // day


def usage(query: UsageQuery, by: UsageBy, page: GroupPage) -> Select[Any]:
    """Select groups with their figures. Days are numbered from 1970, for months too: databases
    disagree on calendars.
    """
    job = _r.cluster + literal_column("'/'", Text) + cast(_r.job_id, Text)
    by_name = {
        UsageBy.USER: _r.owner,
        UsageBy.PARTITION: bytewise(_r.partition),
        UsageBy.ALLOCATION: _r.allocation,
        UsageBy.JOB: bytewise(job),
        UsageBy.QOS: bytewise(func.coalesce(_r.qos, literal_column(f"'{NO_QOS}'", Text))),
    }
    group = by_name.get(by, _local_day(query.offsets))
    after = group_after(page.after, by)
    wanted = [
        _r.state.in_([each.value for each in RESOLVED]),
        run_is_visible(query.visibility),
        is_in(_r.project, query.projects),
        in_allocations(_r.allocation, query.resource),
        equal(_r.allocation, query.allocation),
        equal(_r.owner, query.owner),
        between(_r.ended_at, query.since, query.until),
        true() if after is None else group > after,
    ]
    return (
        select(group, *_FIGURES)
        .where(*wanted)
        .group_by(group)
        .order_by(group)
        .limit(page_days(page, by))
    )
