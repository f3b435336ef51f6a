"""Statements on the journal: entries, refusals, the statement of one book."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, case, cast, func, or_, select, true

from fairbank.bank.query import Books, EntryQuery, Page, RefusalQuery, Visibility
from fairbank.store.schema import journal
from fairbank.store.sql.dialects import json_member
from fairbank.store.sql.statements.conditions import between, equal, in_allocations, paged
from fairbank.store.sql.statements.visibility import (
    IS_REFUSAL,
    Condition,
    entry_is_visible,
    is_in,
    is_visible_or_owned,
    of_entries,
)
from fairbank.store.sql.time_index import BOOK, count_before_sql


def of_books(book: ColumnElement[int], books: Books) -> list[Condition]:
    """Return the condition for rows of a range of books."""
    return [
        *([] if books.first is None else [book >= books.first]),
        *([] if books.end is None else [book < books.end]),
    ]


def entries(query: EntryQuery, page: Page) -> Select[Any]:
    j = journal.c
    wanted = [
        entry_is_visible(query.visibility),
        is_in(j.id, query.ids),
        equal(j.book, query.book),
        of_entries(query.projects),
        is_in(j.kind, None if query.kinds is None else {kind.value for kind in query.kinds}),
        equal(j.owner, query.owner),
        between(j.at, query.since, query.until),
    ]
    return paged(select(journal).where(*wanted), j.id, page)


def repeated_keys(limit: int) -> Select[Any]:
    """Select repeated keys. The condition is written so that SQLite does not use the index of the
    keys, since entries missing there are what is looked for.
    """
    j = journal.c
    some = func.coalesce(j.key, "") != ""
    repeated = (
        select(j.actor, j.key, func.min(j.id), func.max(j.id))
        .where(some)
        .group_by(j.actor, j.key)
        .having(func.count() > 1)
    )
    return repeated.order_by(j.actor, j.key).limit(limit)


def refusals(query: RefusalQuery, page: Page) -> Select[Any]:
    j = journal.c
    wanted = [
        IS_REFUSAL,
        _seen_or_refused(query.visibility),
        is_in(j.id, query.ids),
        equal(j.book, query.allocation),
        _asked_for(query.projects, query.account),
        equal(_refused("resource"), query.resource),
        in_allocations(j.book, None, query.category, query.active_at),
        equal(j.owner, query.owner),
        _of_job(query.cluster, query.job_id),
        between(j.at, query.since, query.until),
    ]
    return paged(select(journal).where(*wanted), j.id, page)


def _refused(member: str) -> ColumnElement[Any]:
    """Return a member of a refusal's details. Other entries are not read: their details need not be
    JSON.
    """
    return case((IS_REFUSAL, json_member(journal.c.details, member)))


_PROJECT_REFUSED = cast(_refused("project"), BigInteger)


def _asked_for(projects: frozenset[int] | None, account: str | None) -> Condition:
    of_projects = is_in(_PROJECT_REFUSED, projects)
    return of_projects if account is None else or_(of_projects, _refused("account") == account)


def _seen_or_refused(visibility: Visibility) -> Condition:
    """Also select entries of jobs that asked for these projects' credit, in whatever book they
    are.
    """
    seen = is_visible_or_owned(visibility, journal.c.book, journal.c.owner == visibility.uid)
    return (
        seen
        if visibility.everything or not visibility.projects
        else or_(seen, is_in(_PROJECT_REFUSED, visibility.projects))
    )


def _of_job(cluster: str | None, job_id: int | None) -> Condition:
    """Return the condition for a refused run, cluster/job@submitted.restart; cluster names have no
    slash.
    """
    run = _refused("run")
    of_cluster = (
        true() if cluster is None else func.substr(run, 1, len(cluster) + 1) == f"{cluster}/"
    )
    return and_(of_cluster, true() if job_id is None else run.like(f"%/{job_id}@%"))


# Built once, because that is slow. Parameters: `book`, `since` and `until`, or `book` and `at`.
_STATEMENT = select(journal).where(
    journal.c.book == BOOK,
    journal.c.seq > count_before_sql("since"),
    journal.c.seq <= count_before_sql("until"),
)
BEFORE = select(journal).where(journal.c.book == BOOK, journal.c.seq == count_before_sql("at"))


def statement(page: Page) -> Select[Any]:
    return paged(_STATEMENT, journal.c.seq, page)
