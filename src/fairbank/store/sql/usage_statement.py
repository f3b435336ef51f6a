"""Usage of groups of runs as an SQLAlchemy statement for every database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Subquery,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)

from fairbank.bank.efficiency import EARLY_OUTCOMES, EARLY_SECONDS
from fairbank.bank.query import NO_QOS, GroupPage, UsageBy, UsageQuery
from fairbank.bank.run import RESOLVED
from fairbank.cluster.job import COMPLETED
from fairbank.core.time import DAY
from fairbank.core.time_zone import ZoneOffsets
from fairbank.store.schema import allocation, run
from fairbank.store.sql.conditions import (
    GpuCount,
    between,
    bytewise,
    equal,
    in_allocations,
    is_in,
    run_is_visible,
)
from fairbank.store.usage import UNKNOWN_STATUS

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


_FIGURES: Sequence[ColumnElement[Any]] = (
    func.count().label("runs"),
    func.sum(case((_r.outcome == COMPLETED, 0), else_=1)).label("failed"),
    func.sum(_PAID).label("charged"),
    func.sum(_r.elapsed_seconds).label("elapsed"),
    func.sum(func.coalesce(_GIVEN, 0)).label("core"),
    _sum(GpuCount(_r.tres) * _r.elapsed_seconds, _r.tres.is_not(None)).label("gpu"),
    _sum(_r.start_at - _r.submitted, _r.start_at > _r.submitted).label("waited"),
    _sum(_BUSY, _MEASURED).label("busy"),
    _sum(_GIVEN, _MEASURED).label("given"),
    _sum(_PAID * (1000 - (2000 * _BUSY + _GIVEN) // (2 * _GIVEN)) // 1000, _MEASURED).label(
        "wasted"
    ),
    _sum(1, _EARLY).label("early"),
    func.min(case((_EARLY, _EXIT))).label("lowest_exit"),
    func.max(case((_EARLY, _EXIT))).label("highest_exit"),
)
_NAMES = [figure.name for figure in _FIGURES]
_HOW: Mapping[str, Callable[..., ColumnElement[Any]]] = {
    "lowest_exit": func.min,
    "highest_exit": func.max,
}
"""How figures of several groups are joined; all others are added."""


def _local_day(offsets: ZoneOffsets) -> ColumnElement[Any]:
    """Return the day of a run's end, as `core.time_zone.local_day`."""
    day = literal_column(str(DAY), BigInteger)
    if not offsets:
        return _r.ended_at // day
    whens = [(_r.ended_at >= begin, _r.ended_at + east) for begin, east in reversed(offsets)]
    return case(*whens, else_=_r.ended_at) // day


def _clusters(
    query: UsageQuery, resource: ColumnElement[Any], cluster: ColumnElement[Any]
) -> ColumnElement[Any]:
    """Return the name of the clusters that have the prices of this one."""
    whens = [
        (and_(resource == of, cluster == name), literal(clusters, Text))
        for of, name, clusters in query.price_groups
        if name != clusters
    ]
    return case(*whens, else_=cluster) if whens else cluster


def usage(query: UsageQuery, by: UsageBy, page: GroupPage) -> Select[Any]:
    """Select groups with their figures; days are numbered from 1970 (`store.usage`).

    First the runs are added up by group, allocation and cluster, then these few rows by group and
    unit: so the allocation is looked up once for each sum, not for each run.
    """
    found = _sums_of_runs(query, by)
    a, f = allocation.c, found.c
    group = {UsageBy.RESOURCE: a.resource, UsageBy.CATEGORY: a.category}.get(by, f.group)
    priced = (
        select(
            group.label("group"),
            a.resource,
            _clusters(query, a.resource, f.cluster).label("clusters"),
            *(f[name] for name in _NAMES),
        )
        .join_from(found, allocation, a.id == f.allocation)
        .subquery()
        .c
    )
    is_text = isinstance(priced.group.type, Text)
    ordered = bytewise(priced.group) if is_text else priced.group
    key = (ordered, bytewise(priced.resource), bytewise(priced.clusters))
    sums = [_HOW.get(name, func.sum)(priced[name]) for name in _NAMES]
    rows = select(*key, *sums).group_by(*key)
    if by.is_time:
        return rows
    if page.largest:
        place = func.row_number().over(
            partition_by=key[1:], order_by=(sums[_NAMES.index("charged")].desc(), ordered)
        )
        ranked = rows.add_columns(place.label("place")).subquery()
        return select(*list(ranked.c)[:-1]).where(ranked.c.place <= page.size)
    if page.after is not None:
        rows = rows.where(tuple_(*key) > tuple_(*page.after))
    return rows.order_by(*key).limit(page.size)


def _sums_of_runs(query: UsageQuery, by: UsageBy) -> Subquery:
    """Return the sums of the runs by group, allocation and cluster."""
    job = _r.cluster + literal_column("'/'", Text) + cast(_r.job_id, Text)
    by_name: dict[UsageBy, ColumnElement[Any]] = {
        UsageBy.USER: _r.owner,
        UsageBy.PROJECT: _r.project,
        UsageBy.CLUSTER: _r.cluster,
        UsageBy.PARTITION: _r.partition,
        UsageBy.JOB: job,
        UsageBy.QOS: func.coalesce(_r.qos, literal_column(f"'{NO_QOS}'", Text)),
    }
    group = _local_day(query.offsets) if by.is_time else by_name.get(by, _r.allocation)
    key = (group.label("group"), _r.allocation, _r.cluster)
    wanted = [
        _r.state.in_([each.value for each in RESOLVED]),
        run_is_visible(query.visibility),
        is_in(_r.project, query.projects),
        in_allocations(_r.allocation, query.resource),
        equal(_r.allocation, query.allocation),
        equal(_r.owner, query.owner),
        between(_r.ended_at, query.since, query.until),
    ]
    return select(*key, *_FIGURES).where(*wanted).group_by(*key).subquery()
