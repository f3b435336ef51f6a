"""Statements on runs and overdue holds."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select, true

from fairbank.bank.query import Page, RunQuery
from fairbank.bank.run import RunState
from fairbank.cluster.job import COMPLETED
from fairbank.core.time import Instant
from fairbank.store.schema import run
from fairbank.store.sql.statements.conditions import between, equal, in_allocations, paged
from fairbank.store.sql.statements.visibility import is_in, run_is_visible


def runs(query: RunQuery, page: Page) -> Select[Any]:
    r = run.c
    wanted = [
        run_is_visible(query.visibility),
        is_in(r.id, query.ids),
        is_in(r.project, query.projects),
        in_allocations(r.allocation, query.resource, query.category, query.active_at),
        equal(r.allocation, query.allocation),
        equal(r.owner, query.owner),
        equal(r.state, query.state.value if query.state else None),
        (
            true()
            if query.failed is None
            else (r.outcome != COMPLETED if query.failed else r.outcome == COMPLETED)
        ),  # NULL is neither
        equal(r.cluster, query.cluster),
        equal(r.job_id, query.job_id),
        equal(r.partition, query.partition),
        between(r.start_at, query.since, query.until),
    ]
    return paged(select(run).where(*wanted), r.id, page)


def overdue(now: Instant, limit: int) -> Select[Any]:
    r = run.c
    open_ones = select(r.cluster, r.job_id, r.submitted, r.restart).where(
        r.state == RunState.HELD.value, r.until_at <= now
    )
    return open_ones.order_by(r.until_at, r.id).limit(limit)
