"""Queries as SQLAlchemy statements: one each, for every database, with visibility as a
condition.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, and_, false, func, literal_column, not_, or_, select, true, tuple_

from fairbank.bank.allocation import AllocationState, ShownState
from fairbank.bank.query import AllocationQuery, DebitPage, DebitQuery, Page, ProjectQuery, RunQuery
from fairbank.bank.run import RunState
from fairbank.cluster.job import COMPLETED
from fairbank.cluster.share import ShareQuery
from fairbank.core.time import Instant
from fairbank.store.schema import allocation, member, project, run, share_figure, token, user_sum
from fairbank.store.sql.conditions import (
    Condition,
    between,
    covers,
    equal,
    has_failed,
    in_allocations,
    is_in,
    is_measured,
    is_visible,
    of_projects,
    paged,
    run_is_visible,
)

_a, _f, _p, _r, _t, _u = (
    table.c for table in (allocation, share_figure, project, run, token, user_sum)
)


# --- registry ---


def projects(query: ProjectQuery, page: Page) -> Select[Any]:
    """Select the projects of a query, by id."""
    wanted = [
        is_visible(query.visibility, _p.id),
        is_in(_p.id, query.ids),
        equal(_p.gname, query.gname),
        equal(_p.gid, query.gid),
        equal(_p.account, query.account),
        true() if query.removed is None else _p.removed.is_(query.removed),
    ]
    return paged(select(project).where(*wanted), _p.id, page)


def members(project: int, page: Page) -> Select[Any]:
    return paged(select(member).where(member.c.project == project), member.c.uid, page)


def tokens(uid: int | None, page: Page) -> Select[Any]:
    return paged(select(token).where(equal(_t.uid, uid)), _t.id, page)


# --- credit ---


def allocations(query: AllocationQuery, page: Page) -> Select[Any]:
    """Select the allocations of a query, by id."""
    wanted = [
        or_(
            and_(is_visible(query.visibility, _a.project), is_in(_a.project, query.projects)),
            and_(_a.shared, is_in(_a.project, query.lenders)) if query.lenders else false(),
        ),
        is_in(_a.id, query.ids),
        _NOT_REMOVED if query.is_without_removed else true(),
        equal(_a.resource, query.resource),
        equal(_a.category, query.category),
        true() if query.shown_state is None else _is_shown_as(*query.shown_state),
        true() if query.open_at is None else _is_open(query.open_at, query.or_latest),
        covers(query.active_at),
        or_(_a.partition.is_not(None), _a.reservation.is_not(None))
        if query.is_short_term
        else true(),
    ]
    return paged(select(allocation).where(*wanted), _a.id, page)


def users(allocations: frozenset[int], uid: int | None) -> Select[Any]:
    return (
        select(user_sum)
        .where(is_in(_u.allocation, allocations), equal(_u.uid, uid))
        .order_by(_u.allocation, _u.uid)
    )


def allocation_users(allocation: int, page: Page) -> Select[Any]:
    return paged(select(user_sum).where(_u.allocation == allocation), _u.uid, page)


def debits(query: DebitQuery, page: DebitPage) -> Select[Any]:
    """Select the charges of owners. The latest charged run is searched backwards from the owner's
    latest.
    """
    of_owner = select(_r.id).where(
        _r.owner == _u.uid, _r.allocation == _u.allocation, _r.state == RunState.CHARGED.value
    )
    latest = of_owner.order_by(_r.id.desc()).limit(1).scalar_subquery()
    wanted = [
        _u.charged > 0,
        or_(
            of_projects(
                _u.allocation, None if query.visibility.everything else query.visibility.projects
            ),
            and_(
                of_projects(_u.allocation, query.visibility.own_jobs_of),
                _u.uid == query.visibility.uid,
            ),
        ),
        of_projects(_u.allocation, query.projects),
        equal(_u.allocation, query.allocation),
        equal(_u.uid, query.owner),
        true() if page.after is None else tuple_(_u.allocation, _u.uid) > page.after,
    ]
    return (
        select(_u.allocation, _u.uid, _u.charged, latest)
        .where(*wanted)
        .order_by(_u.allocation, _u.uid)
        .limit(page.size)
    )


def expired(now: Instant, limit: int) -> Select[Any]:
    return (
        select(_a.id)
        .where(_a.end_at <= now, _a.state == AllocationState.ACTIVE.value)
        .order_by(_a.end_at, _a.id)
        .limit(limit)
    )


_NOT_REMOVED = _a.state != AllocationState.REMOVED.value


def _is_shown_as(shown: ShownState, now: Instant) -> Condition:
    """Return `Allocation.shown_state` as SQL."""
    match shown:
        case ShownState.ENDED:
            ended = [AllocationState.ENDED.value, AllocationState.CANCELLED.value]
            has_ended = or_(_a.state.in_(ended), _a.end_at <= now)
            return and_(_NOT_REMOVED, has_ended)
        case ShownState.REMOVED:
            return not_(_NOT_REMOVED)
        case ShownState.FROZEN:
            return and_(_a.state == AllocationState.FROZEN.value, _a.end_at > now)
        case ShownState.PLANNED:
            return and_(
                _a.state == AllocationState.ACTIVE.value, _a.end_at > now, _a.start_at > now
            )
        case ShownState.ACTIVE:
            return and_(
                _a.state == AllocationState.ACTIVE.value, _a.end_at > now, _a.start_at <= now
            )


def _is_open(at: Instant, or_latest: bool) -> Condition:
    """Return the condition for allocations that have not ended, and with `or_latest` for the latest
    of each project and resource.
    """
    has_not_ended = not_(_is_shown_as(ShownState.ENDED, at))
    return or_(has_not_ended, _IS_LATEST) if or_latest else has_not_ended


# An alias copies each column of its table. Made for each balance, it took a third of the time.
_later = allocation.alias().c
_IS_LATEST = ~(
    select(_later.id)
    .where(
        _later.project == _a.project,
        _later.resource == _a.resource,
        _later.end_at > _a.end_at,
        _later.state != AllocationState.REMOVED.value,
    )
    .exists()
)


# --- runs ---


def runs(query: RunQuery, page: Page) -> Select[Any]:
    """Select the runs of a query, by id."""
    wanted = [
        run_is_visible(query.visibility),
        is_in(_r.id, query.ids),
        is_in(_r.project, query.projects),
        in_allocations(_r.allocation, query.resource, query.category, query.active_at),
        equal(_r.allocation, query.allocation),
        equal(_r.owner, query.owner),
        equal(_r.state, query.state.value if query.state else None),
        (
            true()
            if query.closed is None
            else _r.state != RunState.HELD.value
            if query.closed
            else _r.state == RunState.HELD.value
        ),
        # A run without an outcome (NULL) is neither failed nor completed, nor one that never ran.
        (
            true()
            if query.failed is None
            else (has_failed(_r) if query.failed else _r.outcome == COMPLETED)
        ),
        equal(_r.cluster, query.cluster),
        equal(_r.job_id, query.job_id),
        is_in(_r.job_id, query.job_ids),
        equal(_r.partition, query.partition),
        (
            true()
            if query.measured is None
            else is_measured(_r.partition, _r.owner)
            if query.measured
            else not_(is_measured(_r.partition, _r.owner))
        ),
        between(_r.start_at, query.since, query.until),
    ]
    return paged(select(run).where(*wanted), _r.id, page)


def open_holds(allocations: frozenset[int]) -> Select[Any]:
    """Select the open holds above 0 by allocation and owner.

    Few runs of an allocation are open, so its index must not be chosen: hence the sum with 0, and
    the literal state, which names the partial index.
    """
    figures = (func.sum(_r.held), func.count(), func.max(_r.until_at), func.max(_r.set_by))
    is_open = _r.state == literal_column(f"'{RunState.HELD.value}'")
    return (
        select(_r.allocation, _r.owner, *figures)
        .where(is_in(_r.allocation + 0, allocations), is_open, _r.held > 0)
        .group_by(_r.allocation, _r.owner)
    )


def overdue(now: Instant, limit: int) -> Select[Any]:
    open_ones = select(_r.cluster, _r.job_id, _r.submitted, _r.restart).where(
        _r.state == RunState.HELD.value, _r.until_at <= now
    )
    return open_ones.order_by(_r.until_at, _r.id).limit(limit)


# --- fair share ---

# The order of the primary key.
SHARE_KEY = (_f.cluster, _f.day, _f.account, _f.login, _f.partition)


def share_records(query: ShareQuery) -> Select[Any]:
    """Select the records of shares of a query, in the order of the key with a limit."""
    wanted = [
        _f.day >= query.since,
        _f.day < query.until,
        equal(_f.cluster, query.cluster),
        is_in(_f.account, query.accounts),
        true() if query.after is None else tuple_(*SHARE_KEY) > tuple_(*query.after),
    ]
    if not query.users:
        wanted.append(_f.login == "")
    elif query.users_of is not None:
        wanted.append(or_(_f.login == "", is_in(_f.account, query.users_of)))
    statement = select(share_figure).where(*wanted)
    return statement if query.limit is None else statement.order_by(*SHARE_KEY).limit(query.limit)
