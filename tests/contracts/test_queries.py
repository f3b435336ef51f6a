"""Queries of the current state, with every filter and the visibility of the user."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.bank.allocation import Allocation, ShownState
from fairbank.bank.entry import REGISTRY, Entry
from fairbank.bank.project import Role
from fairbank.bank.query import AllocationQuery, ProjectQuery, RunQuery, Visibility
from fairbank.bank.requests import Expire
from fairbank.bank.run import RunState
from fairbank.core.time import Instant
from fairbank.store.contract import Store
from tests.contracts.small_site import (
    ALICE,
    BOB,
    CAROL,
    END,
    PAGE,
    START,
    SnapshotReader,
    contents,
    fill_with_runs,
    granted,
    job,
    numbers,
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"ids": frozenset({3, 1, 77})}, [1, 3]),
        ({"ids": frozenset()}, []),
        ({"gname": "chemistry"}, [2]),
        ({"gid": 300}, [3]),
        ({"account": "physics", "gid": 300}, []),
        ({"visibility": Visibility(uid=BOB, projects=frozenset({2}))}, [2]),
        ({"visibility": Visibility(uid=BOB)}, []),
        ({"visibility": Visibility(uid=BOB, projects=frozenset({2})), "gname": "physics"}, []),
    ],
)
def test_query_finds_visible_projects(
    filled: Store, query: dict[str, Any], expected: list[int]
) -> None:
    assert numbers(SnapshotReader(filled).projects(ProjectQuery(**query), PAGE)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3, 4]),
        ({"ids": frozenset({4, 2})}, [2, 4]),
        ({"projects": frozenset({1})}, [1, 2, 3]),
        ({"projects": frozenset()}, []),
        ({"resource": "gpu"}, [3]),
        ({"category": "annual"}, [2, 4]),
        ({"shown_state": (ShownState.FROZEN, START)}, [4]),
        ({"shown_state": (ShownState.FROZEN, END)}, []),
        ({"shown_state": (ShownState.PLANNED, START - 1)}, [1, 2, 3]),
        ({"shown_state": (ShownState.PLANNED, START)}, [2]),
        ({"shown_state": (ShownState.ACTIVE, START)}, [1, 3]),
        ({"shown_state": (ShownState.ACTIVE, END - 1), "resource": "cpu"}, [1]),
        ({"shown_state": (ShownState.ACTIVE, END)}, [2]),
        ({"shown_state": (ShownState.ENDED, END - 1)}, []),
        ({"shown_state": (ShownState.ENDED, END)}, [1, 3, 4]),
        ({"active_at": END - 1}, [1, 3, 4]),
        ({"active_at": END}, [2]),
        ({"active_at": START - 1}, []),
        ({"open_at": END - 1}, [1, 2, 3, 4]),
        ({"open_at": END}, [2]),
        # Allocation 1 ended, but allocation 2 follows it; nothing follows 3 and 4.
        ({"open_at": END, "or_latest": True}, [2, 3, 4]),
        ({"visibility": Visibility(projects=frozenset({2}))}, [4]),
        ({"visibility": Visibility(projects=frozenset({2})), "projects": frozenset({1, 2})}, [4]),
        ({"visibility": Visibility(uid=ALICE)}, []),
    ],
)
def test_query_finds_visible_allocations(
    filled: Store, query: dict[str, Any], expected: list[int]
) -> None:
    assert numbers(SnapshotReader(filled).allocations(AllocationQuery(**query), PAGE)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3, 4]),
        ({"projects": frozenset({2})}, []),
        ({"projects": frozenset({1, 2})}, [1, 2, 3, 4]),
        ({"allocation": 3}, [3]),
        ({"owner": BOB}, [2]),
        ({"state": RunState.HELD}, [3, 4]),
        ({"state": RunState.RELEASED}, [2]),
        ({"failed": True}, [2]),
        ({"failed": False}, [1]),
        ({"cluster": "darwin"}, [1, 2, 3, 4]),
        ({"cluster": "other"}, []),
        ({"job_id": 4}, [4]),
        ({"job_ids": frozenset({2, 4, 99})}, [2, 4]),
        ({"partition": "large"}, [2]),
        ({"resource": "gpu"}, [3]),
        ({"resource": "cpu", "owner": ALICE}, [1, 4]),
        ({"category": "startup"}, [1, 2, 3, 4]),
        ({"category": "annual"}, []),
        ({"active_at": END - 1}, [1, 2, 3, 4]),
        ({"active_at": END}, []),
        (
            {
                "resource": "gpu",
                "category": "startup",
                "active_at": START,
                "projects": frozenset({1}),
            },
            [3],
        ),
        ({"resource": "gpu", "visibility": Visibility(uid=BOB)}, []),
        ({"since": START + 50}, [3, 4]),
        ({"until": START + 60}, [1, 2, 3]),
        ({"since": START + 50, "until": START + 60}, [3]),
        ({"visibility": Visibility(uid=BOB)}, [2]),
        ({"visibility": Visibility(projects=frozenset({1}))}, [1, 2, 3, 4]),
        ({"visibility": Visibility(uid=ALICE, projects=frozenset({2}))}, [1, 3, 4]),
        ({"visibility": Visibility(uid=ALICE, projects=frozenset({2})), "owner": BOB}, []),
        ({"visibility": Visibility(uid=CAROL)}, []),
        ({"visibility": Visibility()}, []),
    ],
)
def test_query_finds_visible_runs_in_their_order(
    filled: Store, query: dict[str, Any], expected: list[int]
) -> None:
    result = SnapshotReader(filled).runs(RunQuery(**query), PAGE)
    assert [record.reported.run.job_id for record in result] == expected
    assert numbers(result) == sorted(numbers(result))
    assert result == SnapshotReader(filled).runs(RunQuery(ids=frozenset(numbers(result))), PAGE)


def test_members_and_memberships(filled: Store) -> None:
    assert [(member.uid, member.role) for member in SnapshotReader(filled).members(1, PAGE)] == [
        (ALICE, Role.PI),
        (BOB, Role.MEMBER),
    ]
    assert [
        (membership.project, membership.role)
        for membership in SnapshotReader(filled).memberships(BOB)
    ] == [(1, Role.MEMBER), (2, Role.COORDINATOR)]
    assert SnapshotReader(filled).members(3, PAGE) == []


def test_user_sums(filled: Store) -> None:
    rows = SnapshotReader(filled).users(frozenset({1, 3, 99}))
    assert [
        (row.allocation, row.uid, row.sums.charged, row.sums.held, row.sums.cap) for row in rows
    ] == [(1, ALICE, 55, 10, None), (1, BOB, 0, 0, 400), (3, ALICE, 0, 30, None)]
    assert SnapshotReader(filled).users(frozenset({1, 3, 99}), BOB) == rows[1:2]
    assert SnapshotReader(filled).users(frozenset()) == []


def test_upkeep_queries(filled: Store) -> None:
    assert SnapshotReader(filled).overdue_runs(Instant(START + 60), 10) == []
    assert SnapshotReader(filled).overdue_runs(Instant(START + 61), 10) == [job(4)]
    assert SnapshotReader(filled).overdue_runs(Instant(START + 10_000), 10) == [job(4), job(3)]
    assert SnapshotReader(filled).overdue_runs(Instant(START + 10_000), 1) == [job(4)]
    assert SnapshotReader(filled).expired_allocations(Instant(END - 1), 10) == []
    assert SnapshotReader(filled).expired_allocations(Instant(END), 10) == [
        1,
        3,
    ]  # 4 is frozen, and stays so
    assert SnapshotReader(filled).expired_allocations(Instant(END), 1) == [1]


def test_ended_allocations_are_not_due_to_end(store: Store) -> None:
    granted(fill_with_runs(store), Expire(allocation=3), at=END)
    assert SnapshotReader(store).expired_allocations(Instant(END), 10) == [1]


def test_audit_reads_whole_tables_in_order(filled: Store) -> None:
    projects, members, allocations, users, runs, entries, registries, tokens = contents(filled)
    assert numbers(list(projects)) == [1, 2, 3]
    assert [(member.project, member.uid) for member in members] == [(1, ALICE), (1, BOB), (2, BOB)]
    assert numbers(list(allocations)) == [1, 2, 3, 4]
    assert [(user.allocation, user.uid) for user in users] == [(1, ALICE), (1, BOB), (3, ALICE)]
    assert [(run.allocation, run.id) for run in runs] == sorted(
        (run.allocation, run.id) for run in runs
    )
    assert [(entry.allocation, entry.seq) for entry in entries] == sorted(
        (entry.allocation, entry.seq) for entry in entries
    )
    assert SnapshotReader(filled).count_entries() == len(entries)
    assert registries[0].seq == sum(entry.allocation == REGISTRY for entry in entries)
    assert tokens == []


def test_streams_can_be_read_concurrently(filled: Store) -> None:
    *_, entries, _, _ = contents(filled)
    with filled.reading() as reader:
        streams = [reader.scan(Entry), reader.scan(Entry)]
        side_by_side = [next(stream) for stream in streams]
        assert reader.count_entries() == len(entries)
        assert [side_by_side[0], *streams[0]] == [side_by_side[1], *streams[1]] == entries
        assert [row.id for row in reader.scan(Allocation)] == [1, 2, 3, 4]
