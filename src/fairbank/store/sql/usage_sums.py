"""Sums of closed runs by blocks of days, which `usage` reads instead of a million runs.

The journal tells what the sums lack: each allocation has the position of the last entry in them.
A reader adds the runs of later entries; `fold` adds them to the table. Nothing is done when a run
is charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    delete,
    func,
    literal_column,
    not_,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects import postgresql, sqlite

from fairbank.bank.efficiency import EARLY_OUTCOMES, EARLY_SECONDS
from fairbank.bank.entry import Kind
from fairbank.bank.query import NO_QOS
from fairbank.core.time import DAY
from fairbank.store.schema import USAGE_FIGURES, allocation, journal, run, usage_head, usage_sum
from fairbank.store.sql.conditions import GpuCount, IdlePart, has_failed, is_measured
from fairbank.store.usage import UNKNOWN_STATUS

ENTRIES_AT_ONCE = 5_000
"""Entries of one transaction, unless an allocation alone has more. They take about 0.1 s."""

EXITS = ("lowest_exit", "highest_exit")
NAMES = (*USAGE_FIGURES, *EXITS)
KEY = ("days", "block", "allocation", "project", "cluster", "owner", "partition", "qos")
SHORT, LONG = 1, 32
"""Days of a block: whole long blocks are read first, then the days at both ends of a period."""

_r, _j, _h = run.c, journal.c, usage_head.c
_GIVEN = _r.cpus * _r.elapsed_seconds
_MEASURED = and_(_r.cpu_seconds.is_not(None), _GIVEN > 0)
_BUSY = case((_r.cpu_seconds < _GIVEN, _r.cpu_seconds), else_=_GIVEN)
_EARLY = and_(_r.outcome.in_(sorted(EARLY_OUTCOMES)), _r.elapsed_seconds <= EARLY_SECONDS)
_NO_JOB = is_measured(_r.partition, _r.owner)
_PAID = _r.charged - _r.refunded
_COST = _r.charged + _r.written_off
_WITHOUT_SIZE = and_(_r.occupied.is_(None), _COST == 0, _r.elapsed_seconds > 0, not_(_NO_JOB))
_EXIT = func.coalesce(_r.exit_status, UNKNOWN_STATUS)
_CLOSING = (Kind.CHARGE.value, Kind.RELEASE.value)
_MOVING = (*_CLOSING, Kind.REFUND.value, Kind.RECHARGE.value)


def run_key() -> dict[str, ColumnElement[Any]]:
    """Return the columns by which runs are added up, apart from their time."""
    return {
        "allocation": _r.allocation,
        "project": _r.project,
        "cluster": _r.cluster,
        "owner": _r.owner,
        "partition": _r.partition,
        "qos": func.coalesce(_r.qos, literal_column(f"'{NO_QOS}'")),
    }


def run_figures(changed: FromClause | None = None) -> list[ColumnElement[Any]]:
    """Return the figures of a run, or what entries changed of them (`changed_runs`).

    An entry either closes its run or moves some of its charge. Figures of runs that do not fulfil
    the condition are not evaluated: their time may be zero and would be a divisor.
    """
    closed = [] if changed is None else [changed.c.closed == 1]

    def of(figure: Any, *conditions: ColumnElement[bool]) -> ColumnElement[Any]:
        when = [*closed, *conditions]
        return case((and_(*when), figure), else_=0) if when else literal_column(str(figure))

    charged: ColumnElement[Any] = _PAID
    wasted = case((_MEASURED, IdlePart(_PAID, _BUSY, _GIVEN)), else_=0)
    if changed is not None:
        charged = case((closed[0], _PAID), else_=-changed.c.back)
        before = case((closed[0], 0), else_=IdlePart(_PAID + changed.c.back, _BUSY, _GIVEN))
        wasted = case((_MEASURED, IdlePart(_PAID, _BUSY, _GIVEN) - before), else_=0)
    figures: dict[str, ColumnElement[Any]] = {
        "runs": case((and_(*closed, _NO_JOB), 0), else_=of(1)),
        "failed": of(1, has_failed(_r)),
        "charged": charged,
        "elapsed": of(_r.elapsed_seconds, _r.elapsed_seconds.is_not(None)),
        "core": of(_GIVEN, _GIVEN.is_not(None)),
        "gpu": of(GpuCount(_r.tres) * _r.elapsed_seconds, _r.tres.is_not(None)),
        "waited": of(_r.start_at - _r.submitted, _r.start_at > _r.submitted),
        "busy": of(_BUSY, _MEASURED),
        "given": of(_GIVEN, _MEASURED),
        "wasted": wasted,
        "occupied": of(func.coalesce(_r.occupied, _COST), _r.elapsed_seconds.is_not(None)),
        "without_size": of(1, _WITHOUT_SIZE),
        "early": of(1, _EARLY),
    }
    failed_early = case((and_(*closed, _EARLY), _EXIT))
    exits = [failed_early.label(name) for name in EXITS]
    return [*(figures[name].label(name) for name in USAGE_FIGURES), *exits]


def add_up(source: FromClause) -> list[ColumnElement[Any]]:
    """Return the sums of the figures that a source has as columns."""
    lowest, highest = (source.c[name] for name in EXITS)
    return [
        *(func.sum(source.c[name]).label(name) for name in USAGE_FIGURES),
        func.min(lowest).label("lowest_exit"),
        func.max(highest).label("highest_exit"),
    ]


def changed_runs(allocations: Sequence[int] | None = None) -> CTE:
    """Select the runs of entries that the sums lack: `closed`, and what came `back` of the charge.

    The row of a run has all its entries, so it must be of the same snapshot as the journal.
    """
    back = case((_j.kind == Kind.REFUND.value, _j.amount), else_=0)
    again = case((_j.kind == Kind.RECHARGE.value, _j.amount), else_=0)
    a = allocation.c
    statement = (
        select(
            _j.run,
            func.max(case((_j.kind.in_(_CLOSING), 1), else_=0)).label("closed"),
            func.sum(back - again).label("back"),
        )
        .select_from(allocation)
        .outerjoin(usage_head, _h.allocation == a.id)
        # An expression has no index, so databases do not read the whole journal and look up the
        # allocation of each entry, but begin with the few allocations that lack entries.
        .join(
            journal,
            and_(_j.allocation == a.id + literal_column("0"), _j.seq > func.coalesce(_h.seq, 0)),
        )
        .where(a.seq > func.coalesce(_h.seq, 0), _j.kind.in_(_MOVING), _j.run.is_not(None))
        .group_by(_j.run)
    )
    if allocations is not None:
        statement = statement.where(a.id.in_(allocations))
    return statement.cte("changed")


def fold(connection: Connection) -> int:
    """Add entries that the sums lack, in a transaction with one snapshot.

    Returns the number of entries; 0 if there are none.
    """
    a = allocation.c
    lacking = (a.seq - func.coalesce(_h.seq, 0)).label("lacking")
    behind = (
        select(a.id, lacking)
        .select_from(allocation)
        .outerjoin(usage_head, _h.allocation == a.id)
        .where(lacking > 0)
        .order_by(a.id)
    )
    chosen: list[int] = []
    entries = 0
    for number, lacking_entries in connection.execute(behind):
        if chosen and entries + lacking_entries > ENTRIES_AT_ONCE:
            break
        chosen.append(number)
        entries += lacking_entries
    if not chosen:
        return 0
    insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert
    sums = insert(usage_sum).from_select([*KEY, *USAGE_FIGURES, *EXITS], _lacking_sums(chosen))
    old, new = usage_sum.c, sums.excluded
    joined = {name: old[name] + new[name] for name in USAGE_FIGURES}
    # Either may be null: no run failed early.
    for name, is_better in (
        ("lowest_exit", new.lowest_exit < old.lowest_exit),
        ("highest_exit", new.highest_exit > old.highest_exit),
    ):
        joined[name] = func.coalesce(case((is_better, new[name]), else_=old[name]), new[name])
    connection.execute(sums.on_conflict_do_update(index_elements=list(KEY), set_=joined))
    position = insert(usage_head).from_select(
        ["allocation", "seq"], select(a.id, a.seq).where(a.id.in_(chosen))
    )
    connection.execute(
        position.on_conflict_do_update(
            index_elements=["allocation"], set_={"seq": position.excluded.seq}
        )
    )
    return entries


def delete_sums(connection: Connection) -> None:
    """Delete all sums and positions, before the ledger is replaced."""
    connection.execute(delete(usage_head))
    connection.execute(delete(usage_sum))


def wrong_sums(limit: int) -> Select[Any]:
    """Select the allocations whose sums lack no entry, but have other charges: of blocks of either
    length.

    Allocations that lack entries are left out: to add these up takes longer than all else, and the
    upkeep does it every minute.
    """
    a, u = allocation.c, usage_sum.c
    of_length = (
        func.sum(case((u.days == literal_column(str(days)), u.charged), else_=0)).label(name)
        for name, days in (("short", SHORT), ("long", LONG))
    )
    sums = select(u.allocation, *of_length).group_by(u.allocation).subquery()
    short, long = (func.coalesce(sums.c[name], 0) for name in ("short", "long"))
    return (
        select(a.id, case((short != a.charged, short), else_=long), a.charged)
        .join_from(allocation, usage_head, _h.allocation == a.id)
        .outerjoin(sums, sums.c.allocation == a.id)
        .where(_h.seq >= a.seq, or_(short != a.charged, long != a.charged))
        .order_by(a.id)
        .limit(limit)
    )


def _lacking_sums(allocations: Sequence[int]) -> Select[Any]:
    changed = changed_runs(allocations)
    day = (_r.ended_at // literal_column(str(DAY))).label("day")
    key = [column.label(name) for name, column in run_key().items()]
    rows = select(day, *key, *run_figures(changed)).join_from(changed, run, _r.id == changed.c.run)
    by_run = rows.subquery()
    by_day = [by_run.c.day, *(by_run.c[name] for name in KEY[2:])]
    of_days = select(*by_day, *add_up(by_run)).group_by(*by_day).cte("of_days")
    lengths: list[Select[Any]] = [
        select(literal_column(str(days)).label("days")) for days in (SHORT, LONG)
    ]
    spans = union_all(*lengths).subquery("spans")
    span = spans.c.days
    block = (of_days.c.day // span).label("block")
    grouped = [span, block, *(of_days.c[name] for name in KEY[2:])]
    sums = select(*grouped, *add_up(of_days)).select_from(of_days.join(spans, true()))
    # SQLite reads ON CONFLICT as a part of a join without a WHERE.
    return sums.where(literal_column("1 = 1")).group_by(*grouped)
