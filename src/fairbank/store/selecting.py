"""Queries as SQL: one statement each, the same for every database, with what the asker may see decided inside it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, Text, and_, case, cast, false, func, literal_column, or_, select, true

from fairbank.bank.allocation import AllocationState, Standing
from fairbank.bank.query import (
    NO_QOS,
    AllocationQuery,
    Books,
    EntryQuery,
    GroupPage,
    Page,
    ProjectQuery,
    RefusalQuery,
    RunQuery,
    Sight,
    UsageBy,
    UsageQuery,
)
from fairbank.bank.run import RunState
from fairbank.store.cutting import BOOK, cut_in_sql
from fairbank.store.dialects import bytewise, fact
from fairbank.store.schema import allocation, journal, member, project, run, token, user_sum
from fairbank.store.seeing import IS_REFUSAL, Condition, among, of_entries, seen, seen_or_owned, sees_entry, sees_run
from fairbank.store.usage import beyond, days_of
from fairbank.store.using import FIGURES
from fairbank.values.time import DAY, Instant


def of_books(book: ColumnElement[int], books: Books) -> list[Condition]:
    """Those whose book lies in the stretch."""
    return [*([] if books.first is None else [book >= books.first]), *([] if books.end is None else [book < books.end])]


def projects(query: ProjectQuery, page: Page) -> Select[Any]:
    p = project.c
    wanted = [
        seen(query.sight, p.id),
        among(p.id, query.ids),
        _equal(p.gname, query.gname),
        _equal(p.gid, query.gid),
        _equal(p.account, query.account),
        true() if query.removed is None else p.removed.is_(query.removed),
    ]
    return _paged(select(project).where(*wanted), p.id, page)


def allocations(query: AllocationQuery, page: Page) -> Select[Any]:
    a = allocation.c
    wanted = [
        or_(
            and_(seen(query.sight, a.project), among(a.project, query.projects)),
            and_(a.shared, among(a.project, query.lenders)) if query.lenders else false(),
        ),
        among(a.id, query.ids),
        _equal(a.resource, query.resource),
        _equal(a.category, query.category),
        true() if query.stands is None else _stands(*query.stands),
        _covers(query.active_at),
    ]
    return _paged(select(allocation).where(*wanted), a.id, page)


def users(allocations: frozenset[int], uid: int | None) -> Select[Any]:
    u = user_sum.c
    return select(user_sum).where(among(u.allocation, allocations), _equal(u.uid, uid)).order_by(u.allocation, u.uid)


def runs(query: RunQuery, page: Page) -> Select[Any]:
    r = run.c
    wanted = [
        sees_run(query.sight),
        among(r.id, query.ids),
        among(r.project, query.projects),
        _of_allocations(r.allocation, query.resource, query.category, query.active_at),
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
        sees_entry(query.sight),
        among(j.id, query.ids),
        _equal(j.book, query.book),
        of_entries(query.projects),
        among(j.kind, None if query.kinds is None else {kind.value for kind in query.kinds}),
        _equal(j.owner, query.owner),
        _during(j.at, query.since, query.until),
    ]
    return _paged(select(journal).where(*wanted), j.id, page)


def refusals(query: RefusalQuery, page: Page) -> Select[Any]:
    j = journal.c
    wanted = [
        IS_REFUSAL,
        _seen_or_refused(query.sight),
        among(j.id, query.ids),
        _equal(j.book, query.allocation),
        among(_PROJECT_REFUSED, query.projects),
        _equal(_refused("resource"), query.resource),
        _of_allocations(j.book, None, query.category, query.active_at),
        _equal(j.owner, query.owner),
        _of_job(query.cluster, query.job_id),
        _during(j.at, query.since, query.until),
    ]
    return _paged(select(journal).where(*wanted), j.id, page)


def _refused(member: str) -> ColumnElement[Any]:
    """What a refusal says of itself. Other kinds of entries are not read: their details need be no JSON."""
    return case((IS_REFUSAL, fact(journal.c.details, member)))


_PROJECT_REFUSED = cast(_refused("project"), BigInteger)


def _seen_or_refused(sight: Sight) -> Condition:
    """Also those of jobs that asked for these projects' credit, in whatever book they are kept."""
    seen = seen_or_owned(sight, journal.c.book, journal.c.owner == sight.uid)
    return seen if sight.everything or not sight.projects else or_(seen, among(_PROJECT_REFUSED, sight.projects))


def _of_job(cluster: str | None, job_id: int | None) -> Condition:
    """A refused run is written cluster/job@submitted.restart, and no cluster's name has a slash."""
    run = _refused("run")
    of_cluster = true() if cluster is None else func.substr(run, 1, len(cluster) + 1) == f"{cluster}/"
    return and_(of_cluster, true() if job_id is None else run.like(f"%/{job_id}@%"))


# Built once, for it takes long: carried out with `book`, `since` and `until`, or with `book` and `at`.
_STATEMENT = select(journal).where(journal.c.book == BOOK, journal.c.seq > cut_in_sql("since"), journal.c.seq <= cut_in_sql("until"))
BEFORE = select(journal).where(journal.c.book == BOOK, journal.c.seq == cut_in_sql("at"))


def statement(page: Page) -> Select[Any]:
    return _paged(_STATEMENT, journal.c.seq, page)


def members(project: int, page: Page) -> Select[Any]:
    return _paged(select(member).where(member.c.project == project), member.c.uid, page)


def drawn(allocation: int, page: Page) -> Select[Any]:
    return _paged(select(user_sum).where(user_sum.c.allocation == allocation), user_sum.c.uid, page)


def debits(allocations: frozenset[int]) -> Select[Any]:
    """The latest charged run is looked for from the owner's latest backwards."""
    u, r = user_sum.c, run.c
    of_owner = select(r.id).where(r.owner == u.uid, r.allocation == u.allocation, r.state == RunState.CHARGED.value)
    latest = of_owner.order_by(r.id.desc()).limit(1).scalar_subquery()
    found = select(u.allocation, u.uid, u.charged, latest).where(among(u.allocation, allocations), u.charged > 0)
    return found.order_by(u.allocation, u.uid)


def tokens(uid: int | None, page: Page | None) -> Select[Any]:
    found = select(token).where(_equal(token.c.uid, uid))
    return found.order_by(token.c.id) if page is None else _paged(found, token.c.id, page)


def usage(query: UsageQuery, by: UsageBy, page: GroupPage) -> Select[Any]:
    """Groups with their figures. Days are numbered from 1970, also where months are wanted: databases disagree on calendars."""
    r = run.c
    job = r.cluster + literal_column("'/'", Text) + cast(r.job_id, Text)
    by_name = {
        UsageBy.USER: r.owner,
        UsageBy.PARTITION: bytewise(r.partition),
        UsageBy.ALLOCATION: r.allocation,
        UsageBy.JOB: bytewise(job),
        UsageBy.QOS: bytewise(func.coalesce(r.qos, literal_column(f"'{NO_QOS}'", Text))),
    }
    group = by_name.get(by, r.ended_at // literal_column(str(DAY), BigInteger))
    after = beyond(page.after, by)
    wanted = [
        r.state == RunState.CHARGED.value,
        sees_run(query.sight),
        among(r.project, query.projects),
        _of_allocations(r.allocation, query.resource),
        _equal(r.allocation, query.allocation),
        _equal(r.owner, query.owner),
        _during(r.ended_at, query.since, query.until),
        true() if after is None else group > after,
    ]
    return select(group, *FIGURES).where(*wanted).group_by(group).order_by(group).limit(days_of(page, by))


def overdue(now: Instant, limit: int) -> Select[Any]:
    r = run.c
    open_ones = select(r.cluster, r.job_id, r.submitted, r.restart).where(r.state == RunState.HELD.value, r.until_at <= now)
    return open_ones.order_by(r.until_at, r.id).limit(limit)


def expired(now: Instant, limit: int) -> Select[Any]:
    a = allocation.c
    return select(a.id).where(a.end_at <= now, a.state == AllocationState.ACTIVE.value).order_by(a.end_at, a.id).limit(limit)


def _paged(found: Select[Any], number: ColumnElement[Any], page: Page) -> Select[Any]:
    if page.after is not None:
        found = found.where(number < page.after if page.newest_first else number > page.after)
    return found.order_by(number.desc() if page.newest_first else number).limit(page.size)


def _equal(column: ColumnElement[Any], value: object) -> Condition:
    return true() if value is None else column == value


def _during(column: ColumnElement[Any], since: Instant | None, until: Instant | None) -> Condition:
    return and_(true() if since is None else column >= since, true() if until is None else column < until)


def _covers(at: Instant | None) -> Condition:
    a = allocation.c
    return true() if at is None else and_(a.start_at <= at, a.end_at > at)


def _stands(standing: Standing, now: Instant) -> Condition:
    """`Allocation.standing` as SQL."""
    a = allocation.c
    match standing:
        case Standing.ENDED:
            return or_(a.state == AllocationState.ENDED.value, a.end_at <= now)
        case Standing.FROZEN:
            return and_(a.state == AllocationState.FROZEN.value, a.end_at > now)
        case Standing.PLANNED:
            return and_(a.state == AllocationState.ACTIVE.value, a.end_at > now, a.start_at > now)
        case Standing.ACTIVE:
            return and_(a.state == AllocationState.ACTIVE.value, a.end_at > now, a.start_at <= now)


def _of_allocations(
    of_allocation: ColumnElement[Any], resource: str | None, category: str | None = None, active_at: Instant | None = None
) -> Condition:
    """Rows of allocations of this resource and category whose period holds that instant."""
    if resource is None and category is None and active_at is None:
        return true()
    a = allocation.c
    return of_allocation.in_(select(a.id).where(_equal(a.resource, resource), _equal(a.category, category), _covers(active_at)))
