"""Statements on allocations and their use by users."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, and_, false, or_, select, true, tuple_

from fairbank.bank.allocation import AllocationState, Standing
from fairbank.bank.query import AllocationQuery, DebitPage, DebitQuery, Page
from fairbank.bank.run import RunState
from fairbank.core.time import Instant
from fairbank.store.schema import allocation, run, user_sum
from fairbank.store.sql.statements.conditions import covers, equal, paged
from fairbank.store.sql.statements.visibility import Condition, is_in, is_visible, of_projects


def allocations(query: AllocationQuery, page: Page) -> Select[Any]:
    a = allocation.c
    wanted = [
        or_(
            and_(is_visible(query.visibility, a.project), is_in(a.project, query.projects)),
            and_(a.shared, is_in(a.project, query.lenders)) if query.lenders else false(),
        ),
        is_in(a.id, query.ids),
        equal(a.resource, query.resource),
        equal(a.category, query.category),
        true() if query.stands is None else _stands(*query.stands),
        covers(query.active_at),
    ]
    return paged(select(allocation).where(*wanted), a.id, page)


def users(allocations: frozenset[int], uid: int | None) -> Select[Any]:
    u = user_sum.c
    return (
        select(user_sum)
        .where(is_in(u.allocation, allocations), equal(u.uid, uid))
        .order_by(u.allocation, u.uid)
    )


def drawn(allocation: int, page: Page) -> Select[Any]:
    return paged(select(user_sum).where(user_sum.c.allocation == allocation), user_sum.c.uid, page)


def debits(query: DebitQuery, page: DebitPage) -> Select[Any]:
    """Select the charges of owners. The latest charged run is searched backwards from the owner's
    latest.
    """
    u, r = user_sum.c, run.c
    of_owner = select(r.id).where(
        r.owner == u.uid, r.allocation == u.allocation, r.state == RunState.CHARGED.value
    )
    latest = of_owner.order_by(r.id.desc()).limit(1).scalar_subquery()
    wanted = [
        u.charged > 0,
        of_projects(
            u.allocation, None if query.visibility.everything else query.visibility.projects
        ),
        of_projects(u.allocation, query.projects),
        equal(u.allocation, query.allocation),
        equal(u.uid, query.owner),
        true() if page.after is None else tuple_(u.allocation, u.uid) > page.after,
    ]
    return (
        select(u.allocation, u.uid, u.charged, latest)
        .where(*wanted)
        .order_by(u.allocation, u.uid)
        .limit(page.size)
    )


def expired(now: Instant, limit: int) -> Select[Any]:
    a = allocation.c
    return (
        select(a.id)
        .where(a.end_at <= now, a.state == AllocationState.ACTIVE.value)
        .order_by(a.end_at, a.id)
        .limit(limit)
    )


def _stands(standing: Standing, now: Instant) -> Condition:
    """Return `Allocation.standing` as SQL."""
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
