"""Strategies for queries on the ledger that `tests.bank.request_strategies` creates."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from fairbank.bank.allocation import ShownState
from fairbank.bank.entry import Kind
from fairbank.bank.query import (
    AllocationQuery,
    DebitPage,
    DebitQuery,
    EntryQuery,
    GroupPage,
    Page,
    ProjectQuery,
    RefusalQuery,
    RunQuery,
    UsageQuery,
    Visibility,
)
from fairbank.bank.run import RunState
from fairbank.core.time import DAY, Instant
from fairbank.core.usage_groups import UsageBy
from tests.bank import request_strategies as strategies

Query = tuple[str, tuple[Any, ...]]
"""The name of a reader's method, and what it is given."""

ats = st.integers(0, 120).map(Instant)
instant = st.none() | ats
number = st.none() | st.integers(0, 9)
owners = st.none() | strategies.uids
resources = st.none() | strategies.resources
categories = st.none() | st.sampled_from(["startup", "nosuch"])
clusters = st.none() | st.sampled_from(["darwin", "nosuch"])
partitions = st.none() | st.sampled_from(["", "std"])
names = st.none() | st.sampled_from(["g1", "g2", "g5"])
some_projects = st.frozensets(st.integers(0, 6), max_size=4)
projects = st.none() | some_projects
kinds = st.none() | st.frozensets(st.sampled_from(Kind), max_size=4)
some_ids = st.none() | st.frozensets(st.integers(0, 60), max_size=8)
sights = st.just(Visibility(everything=True)) | st.builds(
    Visibility, uid=owners, projects=some_projects
)
# The local day changes at 30, and back at 60 with the offset.
zone_offsets = st.sampled_from([(), ((0, 3_600),), ((0, DAY - 30), (60, 3_600))])
prices = st.sampled_from([(), (("cpu", "darwin", "all"), ("gpu", "darwin", "darwin"))])
pages = st.builds(
    Page, limit=st.integers(0, 9), after=st.none() | st.integers(0, 60), newest_first=st.booleans()
)


def _query(query: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Query]:
    return st.tuples(st.just(query), st.tuples(*arguments))


def _few_fields(query: type[Struct], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw queries with a few fields at a time, so that rows match, from every field of the query.
    A new field must be added here, or no store is tested with it.
    """
    undrawn = set(query.__struct_fields__) - set(fields)
    assert not undrawn, f"{query.__name__} is never asked by {', '.join(sorted(undrawn))}"
    few = st.lists(st.sampled_from(sorted(set(fields) - {"visibility"})), max_size=4, unique=True)
    return few.flatmap(
        lambda chosen: st.builds(
            query, **{field: fields[field] for field in ("visibility", *chosen)}
        )
    )


usage_queries: st.SearchStrategy[Query] = st.one_of(
    _query(
        "usage",
        _few_fields(
            UsageQuery,
            visibility=sights,
            projects=projects,
            allocations=some_ids,
            resources=st.none() | st.frozensets(strategies.resources, max_size=2),
            owners=st.none() | st.frozensets(strategies.uids, max_size=2),
            since=instant,
            until=instant,
            offsets=zone_offsets,
            price_groups=prices,
        ),
        st.sampled_from([UsageBy.USER, UsageBy.PROJECT, UsageBy.ALLOCATION]),
        st.builds(
            GroupPage,
            limit=st.integers(0, 9),
            after=st.none() | st.tuples(strategies.uids, strategies.resources, st.just("darwin")),
        ),
    ),
    _query(
        "usage",
        st.builds(UsageQuery, visibility=sights, since=instant, offsets=zone_offsets),
        st.sampled_from(UsageBy),
        st.builds(GroupPage, limit=st.just(3), largest=st.booleans()),
    ),
)

queries: st.SearchStrategy[Query] = st.one_of(
    _query(
        "projects",
        _few_fields(
            ProjectQuery,
            visibility=sights,
            ids=some_ids,
            gname=names,
            gid=number,
            account=names,
            removed=st.none() | st.booleans(),
        ),
        pages,
    ),
    _query(
        "allocations",
        _few_fields(
            AllocationQuery,
            visibility=sights,
            ids=some_ids,
            projects=projects,
            resource=resources,
            category=categories,
            shown_state=st.none() | st.tuples(st.sampled_from(ShownState), ats),
            active_at=instant,
            open_at=instant,
            or_latest=st.booleans(),
            is_short_term=st.booleans(),
            lenders=sights.map(lambda sight: sight.projects),
        ),
        pages,
    ),
    _query(
        "runs",
        _few_fields(
            RunQuery,
            visibility=sights,
            ids=some_ids,
            projects=projects,
            resource=resources,
            category=categories,
            active_at=instant,
            allocation=number,
            owner=owners,
            cluster=clusters,
            partition=partitions,
            failed=st.none() | st.booleans(),
            measured=st.none() | st.booleans(),
            state=st.none() | st.sampled_from(RunState),
            closed=st.none() | st.booleans(),
            job_id=number,
            job_ids=some_ids,
            since=instant,
            until=instant,
        ),
        pages,
    ),
    _query(
        "entries",
        _few_fields(
            EntryQuery,
            visibility=sights,
            ids=some_ids,
            allocation=number,
            projects=projects,
            kinds=kinds,
            owner=owners,
            since=instant,
            until=instant,
        ),
        pages,
    ),
    _query(
        "refusals",
        _few_fields(
            RefusalQuery,
            visibility=sights,
            ids=some_ids,
            allocation=number,
            projects=projects,
            account=names,
            sender=owners,
            resource=resources,
            category=categories,
            cluster=clusters,
            active_at=instant,
            owner=owners,
            job_id=number,
            since=instant,
            until=instant,
        ),
        pages,
    ),
    usage_queries,
    _query("statement", st.integers(0, 9), ats, ats, pages, kinds),
    _query("open_holds", st.frozensets(st.integers(0, 9), max_size=4)),
    _query("term_entries", st.frozensets(st.integers(0, 9), max_size=4)),
    _query("entry_before", st.integers(0, 9), ats),
    _query("users", st.frozensets(st.integers(0, 9), max_size=4), owners),
    _query("members", strategies.projects, pages),
    _query("allocation_users", st.integers(0, 9), pages),
    _query(
        "debits",
        _few_fields(
            DebitQuery, visibility=sights, projects=projects, allocation=number, owner=owners
        ),
        st.builds(
            DebitPage,
            limit=st.integers(0, 9),
            after=st.none() | st.tuples(st.integers(0, 9), strategies.uids),
        ),
    ),
    _query("memberships", strategies.uids),
    _query("overdue_runs", ats, st.integers(0, 9)),
    _query("expired_allocations", ats, st.integers(0, 9)),
)
