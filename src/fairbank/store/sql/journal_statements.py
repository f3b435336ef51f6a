"""Queries of the journal as SQLAlchemy statements, with visibility as a condition."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    case,
    cast,
    func,
    or_,
    select,
    text,
    true,
)

from fairbank.bank.entry import OF_TERMS, Kind
from fairbank.bank.query import EntryQuery, JournalRange, Page, RefusalQuery, Visibility
from fairbank.bank.refusals import CREDIT_REASONS
from fairbank.store.schema import IS_READ_BY_UNDO, journal
from fairbank.store.sql.conditions import (
    IS_REFUSAL,
    Condition,
    between,
    entry_is_visible,
    equal,
    in_allocations,
    is_in,
    is_visible_or_owned,
    json_member,
    of_entries,
    paged,
)
from fairbank.store.time_index import ALLOCATION, count_before_sql

_j = journal.c


def of_journals(column: ColumnElement[int], journals: JournalRange) -> list[Condition]:
    """Return the condition for rows of a range of journals."""
    return [
        *([] if journals.first is None else [column >= journals.first]),
        *([] if journals.end is None else [column < journals.end]),
    ]


def entries(query: EntryQuery, page: Page) -> Select[Any]:
    """Select the journal entries of a query, by id."""
    wanted = [
        entry_is_visible(query.visibility),
        is_in(_j.id, query.ids),
        equal(_j.allocation, query.allocation),
        of_entries(query.projects),
        _of_kinds(query.kinds),
        equal(_j.owner, query.owner),
        between(_j.at, query.since, query.until),
    ]
    return paged(select(journal).where(*wanted), _j.id, page)


def _of_kinds(kinds: frozenset[Kind] | None) -> Condition:
    return is_in(_j.kind, None if kinds is None else {kind.value for kind in kinds})


def term_entries(allocations: frozenset[int]) -> Select[Any]:
    """Select the entries of terms. The condition of the partial index is repeated, for SQLite."""
    return (
        select(journal)
        .where(is_in(_j.allocation, allocations), text(IS_READ_BY_UNDO), _of_kinds(OF_TERMS))
        .order_by(_j.allocation, _j.seq)
    )


def undoing_entries(allocations: frozenset[int], runs: frozenset[int], after: int) -> Select[Any]:
    """Select what undid others, and refunds. Partial index as in `term_entries`."""
    is_refund = _of_kinds(frozenset({Kind.REFUND, Kind.RECHARGE}))
    return (
        select(journal)
        .where(
            is_in(_j.allocation, allocations),
            text(IS_READ_BY_UNDO),
            _j.id > after,
            or_(_j.details.contains('"undoes":'), and_(is_refund, is_in(_j.run, runs))),
        )
        .order_by(_j.id)
    )


def repeated_keys(limit: int) -> Select[Any]:
    """Select repeated keys. The condition is written so that SQLite does not use the index of the
    keys, since entries missing there are what is looked for.
    """
    some = func.coalesce(_j.key, "") != ""
    repeated = (
        select(_j.actor, _j.key, func.min(_j.id), func.max(_j.id))
        .where(some)
        .group_by(_j.actor, _j.key)
        .having(func.count() > 1)
    )
    return repeated.order_by(_j.actor, _j.key).limit(limit)


def refusals(query: RefusalQuery, page: Page) -> Select[Any]:
    """Select the refusals of a query, by id."""
    wanted = [
        IS_REFUSAL,
        _seen_or_refused(query.visibility),
        is_in(_j.id, query.ids),
        equal(_j.allocation, query.allocation),
        _asked_for(query.projects, query.account),
        equal(_refused("resource"), query.resource),
        _concerns(query.sender),
        in_allocations(_j.allocation, None, query.category, query.active_at),
        equal(_j.owner, query.owner),
        _of_job(query.cluster, query.job_id),
        between(_j.at, query.since, query.until),
    ]
    return paged(select(journal).where(*wanted), _j.id, page)


def _refused(member: str) -> ColumnElement[Any]:
    """Return a member of a refusal's details. Other entries are not read: their details need not be
    JSON.
    """
    return case((IS_REFUSAL, json_member(_j.details, member)))


_PROJECT_REFUSED = cast(_refused("project"), BigInteger)


def _asked_for(projects: frozenset[int] | None, account: str | None) -> Condition:
    of_projects = is_in(_PROJECT_REFUSED, projects)
    return of_projects if account is None else or_(of_projects, _refused("account") == account)


def _concerns(sender: int | None) -> Condition:
    """Return the condition for jobs without credit, and for reports at fault of this sender."""
    if sender is None:
        return true()
    reasons = [reason.name for reason in CREDIT_REASONS]
    return or_(_refused("reason").in_(reasons), _j.actor == sender)


def _seen_or_refused(visibility: Visibility) -> Condition:
    """Return the condition for visible entries and refusals of jobs of visible projects."""
    visible = is_visible_or_owned(visibility, _j.allocation, _j.owner == visibility.uid)
    return (
        visible
        if visibility.everything or not visibility.projects
        else or_(visible, is_in(_PROJECT_REFUSED, visibility.projects))
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


# Built once, because that is slow. Parameters: `allocation`, `since` and `until`, or `allocation`
# and `at`.
_STATEMENT = select(journal).where(
    _j.allocation == ALLOCATION,
    _j.seq > count_before_sql("since"),
    _j.seq <= count_before_sql("until"),
)


BEFORE = select(journal).where(_j.allocation == ALLOCATION, _j.seq == count_before_sql("at"))


def statement(page: Page, kinds: frozenset[Kind] | None = None) -> Select[Any]:
    return paged(_STATEMENT if kinds is None else _STATEMENT.where(_of_kinds(kinds)), _j.seq, page)
