"""Usage of groups of runs as an SQLAlchemy statement for every database."""

from __future__ import annotations

from collections.abc import Mapping
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
    or_,
    select,
    true,
    tuple_,
    union_all,
)

from fairbank.bank.query import GroupPage, UsageQuery
from fairbank.bank.run import RESOLVED
from fairbank.core.time import DAY, Instant
from fairbank.core.time_zone import ZoneOffsets
from fairbank.core.usage_groups import UsageBy
from fairbank.store.schema import USAGE_FIGURES, allocation, run, usage_sum
from fairbank.store.sql.conditions import (
    Condition,
    between,
    bytewise,
    is_in,
    is_measured,
    run_is_visible,
)
from fairbank.store.sql.usage_sums import (
    KEY,
    LONG,
    NAMES,
    SHORT,
    add_up,
    changed_runs,
    run_figures,
    run_key,
)
from fairbank.store.usage import edge_days

_r = run.c


def _local_day(offsets: ZoneOffsets) -> ColumnElement[Any]:
    """Return the day of a run's end, as `core.time_zone.local_day`."""
    day = literal_column(str(DAY), BigInteger)
    if not offsets:
        return _r.ended_at // day
    whens = [(_r.ended_at >= begin, _r.ended_at + east) for begin, east in reversed(offsets)]
    return case(*whens, else_=_r.ended_at) // day


def _clusters(
    query: UsageQuery, resource: ColumnElement[Any], sums: Subquery
) -> ColumnElement[Any]:
    """Return the name of the clusters that have the prices of this one; empty for measured use of
    a resource that no cluster bills.
    """
    cluster = sums.c.cluster
    whens = [
        (and_(resource == of, cluster == name), literal(clusters, Text))
        for of, name, clusters in query.price_groups
        if name != clusters
    ]
    billed = sorted({of for of, _, _ in query.price_groups})
    measured = and_(sums.c.measured == 1, resource.not_in(billed) if billed else true())
    return case((measured, literal("", Text)), *whens, else_=cluster)


def usage(query: UsageQuery, by: UsageBy, page: GroupPage) -> Select[Any]:
    """Select groups with their figures; days are numbered from 1970 (`store.usage`).

    First the runs are added up by group, allocation and cluster, measured use apart, then these few
    rows by group and unit: so the allocation is looked up once for each sum, not for each run.

    Args:
        query: filters of the runs, the time zone of days, and the clusters with the same prices.
        by: how the runs are grouped.
        page: the groups of the page. By time it is not applied: `page_of_groups` cuts these rows.
    """
    grouped = _sums_of_runs(query, by)
    a, f = allocation.c, grouped.c
    group = {UsageBy.RESOURCE: a.resource, UsageBy.CATEGORY: a.category}.get(by, f.group)
    priced = (
        select(
            group.label("group"),
            a.resource,
            _clusters(query, a.resource, grouped).label("clusters"),
            *(f[name] for name in NAMES),
        )
        .join_from(grouped, allocation, a.id == f.allocation)
        .subquery()
    )
    p = priced.c
    is_text = isinstance(p.group.type, Text)
    ordered = bytewise(p.group) if is_text else p.group
    key = (ordered, bytewise(p.resource), bytewise(p.clusters))
    sums = add_up(priced)
    rows = select(*key, *sums).group_by(*key)
    if by.is_time:
        return rows
    if page.largest:
        place = func.row_number().over(
            partition_by=key[1:], order_by=(sums[USAGE_FIGURES.index("charged")].desc(), ordered)
        )
        ranked = rows.add_columns(place.label("place")).subquery()
        return select(*list(ranked.c)[:-1]).where(ranked.c.place <= page.size)
    if page.after is not None:
        rows = rows.where(tuple_(*key) > tuple_(*page.after))
    return rows.order_by(*key).limit(page.size)


def _sums_of_runs(query: UsageQuery, by: UsageBy) -> Subquery:
    """Return the sums of the runs by group, allocation and cluster, of measured use apart.

    Long blocks of days are read first, then the days at both ends, then the runs of the parts of
    days; and the runs that the sums lack. For groups of time, the days are read that lie in one
    group, and the runs of the others. Jobs are not in the sums.
    """
    since, until = query.since, query.until
    first = None if since is None else -(-since // DAY)
    last = None if until is None else until // DAY
    is_short = first is not None and last is not None and first >= last
    edges = None if by is UsageBy.JOB or is_short else _edges(query, by, first, last)
    if edges is None:
        parts = [_runs(query, by, (since, until))]
    else:
        begin, end = (None if day is None else Instant(day * DAY) for day in (first, last))
        blocks = [(SHORT, first, last)] if by.is_time else _blocks(first, last)
        parts = [_summed(query, by, edges, *some) for some in blocks]
        parts.append(_lacking(query, by, edges, begin, end))
        periods: list[Period] = [(Instant(day * DAY), Instant((day + 1) * DAY)) for day in edges]
        periods += [(since, begin)] if begin != since else []
        periods += [(end, until)] if end != until else []
        if periods:
            parts.append(_runs(query, by, *periods))
    rows = union_all(*parts).subquery() if len(parts) > 1 else parts[0].subquery()
    key = (rows.c.group, rows.c.allocation, rows.c.cluster, rows.c.measured)
    return select(*key, *add_up(rows)).group_by(*key).subquery()


EDGES_MAX = 100
"""Maximum number of days whose runs are read one by one: months of 8 years, weeks of 2."""

DAYS_MAX = 40 * 366
"""Maximum number of days that are looked at for these."""


def _edges(query: UsageQuery, by: UsageBy, first: int | None, last: int | None) -> list[int] | None:
    """Return the days whose runs are of two groups of time; None if there are too many."""
    if not by.is_time or not query.offsets:
        return []
    if first is None or last is None or last - first > DAYS_MAX:
        return None
    edges = edge_days(first, last, query.offsets, by)
    return edges if len(edges) <= EDGES_MAX else None


Blocks = tuple[int, int | None, int | None]
Period = tuple[Instant | None, Instant | None]


def _blocks(first: int | None, last: int | None) -> list[Blocks]:
    """Return the blocks that cover the days from `first` up to, not including, `last`: their days,
    the first, and the one after the last.

    >>> _blocks(None, None), _blocks(30, 70)
    ([(32, None, None)], [(32, 1, 2), (1, 30, 32), (1, 64, 70)])
    """
    begin = None if first is None else -(-first // LONG)
    end = None if last is None else last // LONG
    if begin is not None and end is not None and begin >= end:
        return [(SHORT, first, last)]
    blocks: list[Blocks] = [(LONG, begin, end)]
    if begin is not None and begin * LONG != first:
        blocks.append((SHORT, first, begin * LONG))
    if end is not None and end * LONG != last:
        blocks.append((SHORT, end * LONG, last))
    return blocks


def _runs(query: UsageQuery, by: UsageBy, *periods: Period) -> Select[Any]:
    """Select the figures of the closed runs that ended in one of these periods."""
    return select(*_key(query, by, run_key()), *run_figures()).where(
        _r.state.in_([state.value for state in RESOLVED]),
        *_wanted(query, _r),
        or_(*(between(_r.ended_at, since, until) for since, until in periods)),
    )


def _lacking(
    query: UsageQuery, by: UsageBy, edges: list[int], since: Instant | None, until: Instant | None
) -> Select[Any]:
    """Select what the sums by day lack of the runs that ended in a period, apart from `edges`, in
    the groups of the sums.
    """
    changed = changed_runs()
    day = _r.ended_at // literal_column(str(DAY), BigInteger)
    return (
        select(*_key(query, by, {**run_key(), "block": day}), *run_figures(changed))
        .join_from(changed, run, _r.id == changed.c.run)
        .where(
            *_wanted(query, _r),
            between(_r.ended_at, since, until),
            day.not_in(edges) if edges else true(),
        )
    )


def _summed(
    query: UsageQuery, by: UsageBy, edges: list[int], days: int, first: int | None, last: int | None
) -> Select[Any]:
    """Select the sums of the blocks of `days` from `first` up to, not including, `last`, apart
    from `edges`.

    Those of time are added up only once, with the runs: there are nearly as many groups as sums.
    """
    u = usage_sum.c
    key = _key(query, by, {name: u[name] for name in KEY})
    wanted = (
        u.days == literal_column(str(days)),
        *_wanted(query, u),
        true() if first is None else u.block >= first,
        true() if last is None else u.block < last,
        u.block.not_in(edges) if edges else true(),
    )
    if by.is_time:
        return select(*key, *(u[name] for name in NAMES)).where(*wanted)
    return select(*key, *add_up(usage_sum)).where(*wanted).group_by(*key)


def _key(
    query: UsageQuery, by: UsageBy, columns: Mapping[str, ColumnElement[Any]]
) -> list[ColumnElement[Any]]:
    """Return group, allocation, cluster and `measured` of a row with these `columns`."""
    # A block of the sums is a day of UTC, and here also one of the zone in the same week or month.
    day = columns["block"] if "block" in columns else _local_day(query.offsets)
    names = {UsageBy.USER: "owner", UsageBy.RESOURCE: "allocation", UsageBy.CATEGORY: "allocation"}
    measured = is_measured(columns["partition"], columns["owner"])
    group: ColumnElement[Any]
    if by is UsageBy.JOB:
        group = _part_of(_r.cluster, _r.job_id, measured)
    elif by is UsageBy.ALLOCATION_USER:
        group = _part_of(cast(columns["allocation"], Text), columns["owner"], measured)
    else:
        group = day if by.is_time else columns[names.get(by, by.value)]
    named = {
        "group": group,
        "allocation": columns["allocation"],
        "cluster": columns["cluster"],
        "measured": case((measured, 1), else_=0),
    }
    return [column.label(name) for name, column in named.items()]


def _part_of(
    whole: ColumnElement[Any], part: ColumnElement[Any], measured: ColumnElement[Any]
) -> ColumnElement[Any]:
    """Return the group of a part of another group, which measured use does not have."""
    return case((measured, whole), else_=whole + literal_column("'/'", Text) + cast(part, Text))


def _wanted(query: UsageQuery, columns: Any) -> list[Condition]:
    """Return the conditions on runs, or on sums of runs, apart from the period."""
    a, of_resources = allocation.c, None
    if query.resources is not None:
        of_resources = select(a.id).where(is_in(a.resource, query.resources))
    return [
        run_is_visible(query.visibility, columns),
        is_in(columns.project, query.projects),
        true() if of_resources is None else columns.allocation.in_(of_resources),
        is_in(columns.allocation, query.allocations),
        is_in(columns.owner, query.owners),
    ]
