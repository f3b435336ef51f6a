"""Conditions of queries, as SQL has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from fairbank.bank.allocation import Allocation
from fairbank.bank.query import Page, RefusalQuery
from fairbank.bank.refusals import Refusal
from fairbank.cluster.job import Run
from fairbank.core.time import Instant

T = TypeVar("T")


def is_matching_allocation(
    allocation: Allocation | None,
    resource: str | None,
    category: str | None = None,
    active_at: Instant | None = None,
) -> bool:
    """Return whether an allocation has this resource and category and its term includes that time.

    Args:
        allocation: the allocation; None for a row without one, which matches only if no filter is
            given.
        resource: its resource; None: any.
        category: its category; None: any.
        active_at: a time in its term; None: any.
    """
    if resource is None and category is None and active_at is None:
        return True
    if allocation is None or (active_at is not None and not allocation.is_in_period(active_at)):
        return False
    return all_equal((allocation.terms.resource, resource), (allocation.terms.category, category))


def is_matching_refusal(no: Refusal, query: RefusalQuery) -> bool:
    """Return whether the job of a refusal matches the query."""
    run = None if no.run is None else Run.parse(no.run)
    cluster, job_id = (None, None) if run is None else (run.cluster, run.job_id)
    of_account = query.account is not None and no.account == query.account
    if not of_account and not is_one_of(no.project, query.projects):
        return False
    return all_equal(
        (no.resource, query.resource), (cluster, query.cluster), (job_id, query.job_id)
    )


def is_one_of(value: object, wanted: frozenset[T] | None) -> bool:
    """Return whether the value is among those wanted; None matches all."""
    return wanted is None or value in wanted


def has_fields(row: object, query: object, *names: str) -> bool:
    """Return whether each of these fields equals that of the query; None matches all."""
    return all_equal(*((getattr(row, name), getattr(query, name)) for name in names))


def all_equal(*pairs: tuple[object, object]) -> bool:
    """Return whether each value equals the wanted one beside it; None matches all."""
    return all(wanted is None or value == wanted for value, wanted in pairs)


def is_between(at: int, since: Instant | None, until: Instant | None) -> bool:
    """Return whether `since` <= at < `until`.

    Args:
        at: the time to test, in seconds since 1970.
        since: the start of the period; None is unbounded.
        until: its end, which is excluded; None is unbounded.
    """
    return (since is None or at >= since) and (until is None or at < until)


def page_of(rows: Iterable[T], number: Callable[[T], int], page: Page) -> list[T]:
    """Return the rows of one page, ordered by `number`.

    Args:
        rows: all rows that match the query, in any order.
        number: returns the number of a row, with which `page.after` is compared.
        page: the number after which the page begins, its direction and its size.
    """
    after = page.after
    if after is not None:
        rows = (
            row
            for row in rows
            if (number(row) < after if page.newest_first else number(row) > after)
        )
    return sorted(rows, key=number, reverse=page.newest_first)[: page.size]
