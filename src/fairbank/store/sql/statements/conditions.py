"""Conditions shared by several statements, and paging."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, select, true

from fairbank.bank.query import Page
from fairbank.core.time import Instant
from fairbank.store.schema import allocation
from fairbank.store.sql.statements.visibility import Condition


def equal(column: ColumnElement[Any], value: object) -> Condition:
    return true() if value is None else column == value


def between(column: ColumnElement[Any], since: Instant | None, until: Instant | None) -> Condition:
    return and_(
        true() if since is None else column >= since, true() if until is None else column < until
    )


def covers(at: Instant | None) -> Condition:
    a = allocation.c
    return true() if at is None else and_(a.start_at <= at, a.end_at > at)


def in_allocations(
    of_allocation: ColumnElement[Any],
    resource: str | None,
    category: str | None = None,
    active_at: Instant | None = None,
) -> Condition:
    """Return the condition for rows of allocations with this resource, category and time in their
    term.
    """
    if resource is None and category is None and active_at is None:
        return true()
    a = allocation.c
    return of_allocation.in_(
        select(a.id).where(
            equal(a.resource, resource), equal(a.category, category), covers(active_at)
        )
    )


def paged(found: Select[Any], number: ColumnElement[Any], page: Page) -> Select[Any]:
    if page.after is not None:
        found = found.where(number < page.after if page.newest_first else number > page.after)
    return found.order_by(number.desc() if page.newest_first else number).limit(page.size)
