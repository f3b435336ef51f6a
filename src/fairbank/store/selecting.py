"""Queries as SQL: one statement each, the same for every database, with what the asker may see decided inside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, case, false, func, literal_column, or_, select, true

from fairbank.bank.allocation import AllocationState
from fairbank.bank.entry import OFFICE, Kind
from fairbank.bank.query import AllocationQuery, EntryQuery, Page, ProjectQuery, RunQuery, Sight, UsageBy, UsageQuery
from fairbank.bank.run import RunState
from fairbank.cluster.job import COMPLETED
from fairbank.store.schema import allocation, journal, project, run
from fairbank.values.time import DAY, Instant

Condition = ColumnElement[bool]


def projects(query: ProjectQuery, page: Page) -> Select[Any]:
    p = project.c
    wanted = [
        _seen(query.sight, p.id),
        _among(p.id, query.ids),
        _equal(p.gname, query.gname),
        _equal(p.gid, query.gid),
        _equal(p.account, query.account),
    ]
    return _paged(select(project).where(*wanted), p.id, page)


def allocations(query: AllocationQuery, page: Page) -> Select[Any]:
    a = allocation.c
    wanted = [
        _seen(query.sight, a.project),
        _among(a.id, query.ids),
        _among(a.project, query.projects),
        _equal(a.resource, query.resource),
        _equal(a.category, query.category),
        _equal(a.state, query.state.value if query.state else None),
    ]
    if query.active_at is not None:
        wanted += [a.start_at <= query.active_at, a.end_at > query.active_at]
    return _paged(select(allocation).where(*wanted), a.id, page)


def runs(query: RunQuery, page: Page) -> Select[Any]:
    r = run.c
    wanted = [
        _seen_or_owned(query.sight, r.allocation, r.owner == query.sight.uid),
        _among(r.id, query.ids),
        _of_projects(r.allocation, query.projects),
        _equal(r.allocation, query.allocation),
        _equal(r.owner, query.owner),
        _equal(r.state, query.state.value if query.state else None),
        _equal(r.cluster, query.cluster),
        _equal(r.job_id, query.job_id),
        _equal(r.partition, query.partition),
        _during(r.start_at, query.since, query.until),
    ]
    return _paged(select(run).where(*wanted), r.id, page)


def entries(query: EntryQuery, page: Page) -> Select[Any]:
    j = journal.c
    wanted = [
        _seen_or_owned(query.sight, j.book, and_(j.owner == query.sight.uid, j.kind == Kind.REFUSAL.value)),
        _among(j.id, query.ids),
        _equal(j.book, query.book),
        _of_projects(j.book, query.projects),
        _among(j.kind, None if query.kinds is None else {kind.value for kind in query.kinds}),
        _equal(j.owner, query.owner),
        _during(j.at, query.since, query.until),
    ]
    return _paged(select(journal).where(*wanted), j.id, page)


def statement(book: int, since: Instant, until: Instant, page: Page) -> Select[Any]:
    j = journal.c
    opening, closing = (func.coalesce(before(book, at).with_only_columns(j.seq).scalar_subquery(), 0) for at in (since, until))
    return _paged(select(journal).where(j.book == book, j.seq > opening, j.seq <= closing), j.seq, page)


def before(book: int, at: Instant) -> Select[Any]:
    """Found from the end of the book backwards; not even looked for when the book's first entry is not before `at`."""
    j = journal.c
    first = select(j.at).where(j.book == book).order_by(j.seq).limit(1).correlate(None).scalar_subquery()
    return select(journal).where(j.book == book, j.at < at, first < at).order_by(j.seq.desc()).limit(1)


def usage(query: UsageQuery, by: UsageBy) -> Select[Any]:
    """Groups with their figures. Days are numbered from 1970, also where months are wanted: databases disagree on calendars."""
    r = run.c
    by_name = {UsageBy.USER: r.owner, UsageBy.PARTITION: r.partition, UsageBy.ALLOCATION: r.allocation}
    group = by_name.get(by, r.ended_at // literal_column(str(DAY), BigInteger))
    wanted = [
        r.state == RunState.CHARGED.value,
        _seen_or_owned(query.sight, r.allocation, r.owner == query.sight.uid),
        _of_projects(r.allocation, query.projects),
        _equal(r.allocation, query.allocation),
        _equal(r.owner, query.owner),
        _during(r.ended_at, query.since, query.until),
    ]
    if query.resource is not None:
        wanted.append(r.allocation.in_(select(allocation.c.id).where(allocation.c.resource == query.resource)))
    figures = (
        func.count(),
        func.sum(case((r.outcome == COMPLETED, 0), else_=1)),
        func.sum(r.charged - r.refunded),
        func.sum(r.elapsed_seconds),
    )
    return select(group, *figures).where(*wanted).group_by(group).order_by(group)


def overdue(now: Instant, limit: int) -> Select[Any]:
    r = run.c
    open_ones = select(r.cluster, r.job_id, r.submitted, r.restart).where(r.state == RunState.HELD.value, r.until_at <= now)
    return open_ones.order_by(r.until_at, r.id).limit(limit)


def expired(now: Instant, limit: int) -> Select[Any]:
    a = allocation.c
    return select(a.id).where(a.end_at <= now, a.state != AllocationState.ENDED.value).order_by(a.end_at, a.id).limit(limit)


def _paged(found: Select[Any], number: ColumnElement[Any], page: Page) -> Select[Any]:
    if page.after is not None:
        found = found.where(number < page.after if page.newest_first else number > page.after)
    return found.order_by(number.desc() if page.newest_first else number).limit(page.size)


def _equal(column: ColumnElement[Any], value: object) -> Condition:
    return true() if value is None else column == value


def _among(column: ColumnElement[Any], values: Iterable[Any] | None) -> Condition:
    return true() if values is None else column.in_(sorted(values))


def _during(column: ColumnElement[Any], since: Instant | None, until: Instant | None) -> Condition:
    return and_(true() if since is None else column >= since, true() if until is None else column < until)


def _seen(sight: Sight, of_project: ColumnElement[Any]) -> Condition:
    return true() if sight.everything else _among(of_project, sight.projects)


def _of_projects(of_allocation: ColumnElement[Any], projects: frozenset[int] | None) -> Condition:
    """Rows of allocations of these projects; the office's book is of none."""
    if projects is None:
        return true()
    theirs = select(allocation.c.id).where(allocation.c.project.in_(sorted(projects)))
    return and_(of_allocation != OFFICE, of_allocation.in_(theirs)) if projects else false()


def _seen_or_owned(sight: Sight, of_allocation: ColumnElement[Any], owned: Condition) -> Condition:
    if sight.everything:
        return true()
    return or_(_of_projects(of_allocation, sight.projects), false() if sight.uid is None else owned)
