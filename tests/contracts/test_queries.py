"""Every question with every filter, page by page, and only what the asker may see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fairbank.bank.allocation import AllocationEvent, Standing
from fairbank.bank.entry import OFFICE, Entry, Kind
from fairbank.bank.project import Role
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Debit, EntryQuery, Page, ProjectQuery, RefusalQuery, RunQuery, Sight
from fairbank.bank.refusal import refusal_of
from fairbank.bank.run import RunState
from fairbank.bank.wish import Amend, Expire, Release, SetCap, SetMember
from fairbank.store.contract import Store
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes
from tests.contracts.centre import (
    ALICE,
    BOB,
    CAROL,
    END,
    START,
    Look,
    allocation,
    ask,
    charge,
    contents,
    granted,
    hold,
    job,
    project,
)
from tests.contracts.conftest import EVERYWHERE, places

NEW_YEAR = 1_767_225_600  # 2026-01-01T00:00:00Z
PAGE = Page()


@pytest.fixture(scope="module", params=EVERYWHERE)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Physics (1) with two years of CPU and a year of GPU, chemistry (2) with CPU, biology (3) with none. Only to be read."""
    for place in places(request.param, request, tmp_path_factory.mktemp("queries")):
        yield _filled(place.open())


def _filled(store: Store) -> Store:
    granted(store, project("physics", 100), project("chemistry", 200), project("biology", 300, parent=1))
    granted(store, SetMember(project=1, uid=ALICE, role=Role.PI), SetMember(project=1, uid=BOB, role=Role.MEMBER))
    granted(store, SetMember(project=2, uid=BOB, role=Role.COORDINATOR))
    granted(store, allocation(1, 1_000, start=START, end=END), allocation(1, 2_000, start=END, end=2 * END, category="annual"))
    granted(store, allocation(1, 300, resource="gpu", shared=True), allocation(2, 500, category="annual"))
    granted(store, Amend(allocation=4, project=2, resource="cpu", event=AllocationEvent.FREEZE), at=START + 5)
    granted(store, SetCap(allocation=1, uid=BOB, cap=SuMinutes(400)))
    granted(store, hold(1, 100), hold(2, 50, owner=BOB, partition="large"), hold(3, 30, resource="gpu", start=START + 50), at=START + 10)
    granted(store, hold(4, 10, start=START + 60, until=START + 61), charge(1, 55), at=START + 20)
    granted(store, Release(run=job(2), ended=Instant(START + 30), outcome="NODE_FAIL"), at=START + 30)
    ask(store, hold(5, 9_999), hold(6, 1, owner=CAROL, project=3), hold(7, 1, owner=CAROL, project=2), at=START + 40)
    return store


def numbers(rows: list[Any]) -> list[int]:
    return [row.id for row in rows]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"ids": frozenset({3, 1, 77})}, [1, 3]),
        ({"ids": frozenset()}, []),
        ({"gname": "chemistry"}, [2]),
        ({"gid": 300}, [3]),
        ({"account": "physics", "gid": 300}, []),
        ({"sight": Sight(uid=BOB, projects=frozenset({2}))}, [2]),
        ({"sight": Sight(uid=BOB)}, []),
        ({"sight": Sight(uid=BOB, projects=frozenset({2})), "gname": "physics"}, []),
    ],
)
def test_projects(filled: Store, query: dict[str, Any], expected: list[int]) -> None:
    assert numbers(Look(filled).projects(ProjectQuery(**query), PAGE)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3, 4]),
        ({"ids": frozenset({4, 2})}, [2, 4]),
        ({"projects": frozenset({1})}, [1, 2, 3]),
        ({"projects": frozenset()}, []),
        ({"resource": "gpu"}, [3]),
        ({"category": "annual"}, [2, 4]),
        ({"stands": (Standing.FROZEN, START)}, [4]),
        ({"stands": (Standing.FROZEN, END)}, []),
        ({"stands": (Standing.PLANNED, START - 1)}, [1, 2, 3]),
        ({"stands": (Standing.PLANNED, START)}, [2]),
        ({"stands": (Standing.ACTIVE, START)}, [1, 3]),
        ({"stands": (Standing.ACTIVE, END - 1), "resource": "cpu"}, [1]),
        ({"stands": (Standing.ACTIVE, END)}, [2]),
        ({"stands": (Standing.ENDED, END - 1)}, []),
        ({"stands": (Standing.ENDED, END)}, [1, 3, 4]),
        ({"active_at": END - 1}, [1, 3, 4]),
        ({"active_at": END}, [2]),
        ({"active_at": START - 1}, []),
        ({"sight": Sight(projects=frozenset({2}))}, [4]),
        ({"sight": Sight(projects=frozenset({2})), "projects": frozenset({1, 2})}, [4]),
        ({"sight": Sight(uid=ALICE)}, []),
    ],
)
def test_allocations(filled: Store, query: dict[str, Any], expected: list[int]) -> None:
    assert numbers(Look(filled).allocations(AllocationQuery(**query), PAGE)) == expected


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
        ({"cluster": "darwin"}, [1, 2, 3, 4]),
        ({"cluster": "other"}, []),
        ({"job_id": 4}, [4]),
        ({"partition": "large"}, [2]),
        ({"resource": "gpu"}, [3]),
        ({"resource": "cpu", "owner": ALICE}, [1, 4]),
        ({"category": "startup"}, [1, 2, 3, 4]),
        ({"category": "annual"}, []),
        ({"active_at": END - 1}, [1, 2, 3, 4]),
        ({"active_at": END}, []),
        ({"resource": "gpu", "category": "startup", "active_at": START, "projects": frozenset({1})}, [3]),
        ({"resource": "gpu", "sight": Sight(uid=BOB)}, []),
        ({"since": START + 50}, [3, 4]),
        ({"until": START + 60}, [1, 2, 3]),
        ({"since": START + 50, "until": START + 60}, [3]),
        ({"sight": Sight(uid=BOB)}, [2]),
        ({"sight": Sight(projects=frozenset({1}))}, [1, 2, 3, 4]),
        ({"sight": Sight(uid=ALICE, projects=frozenset({2}))}, [1, 3, 4]),
        ({"sight": Sight(uid=ALICE, projects=frozenset({2})), "owner": BOB}, []),
        ({"sight": Sight(uid=CAROL)}, []),
        ({"sight": Sight()}, []),
    ],
)
def test_runs(filled: Store, query: dict[str, Any], expected: list[int]) -> None:
    found = Look(filled).runs(RunQuery(**query), PAGE)
    assert [record.run.job_id for record in found] == expected
    assert numbers(found) == sorted(numbers(found))
    assert found == Look(filled).runs(RunQuery(ids=frozenset(numbers(found))), PAGE)


def test_a_run_by_its_name(filled: Store) -> None:
    found = Look(filled).run(job(2))
    assert (found.owner, found.state, found.outcome) == (BOB, RunState.RELEASED, "NODE_FAIL")
    for other in (job(2, restart=1), job(99), job(2)._replace(cluster="other"), job(2)._replace(submitted=1)):
        assert Look(filled).run(other) is None


def told(entries: list[Entry]) -> list[str]:
    return [f"{each.book} {each.kind.value}" for each in entries]


REFUSALS = ["1 refusal", "0 refusal", "4 refusal"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"kinds": frozenset({Kind.REFUSAL})}, REFUSALS),
        ({"kinds": frozenset()}, []),
        ({"kinds": frozenset({Kind.REFUSAL}), "projects": frozenset({1, 3})}, ["1 refusal"]),
        ({"owner": CAROL}, ["0 refusal", "4 refusal"]),
        ({"book": 4, "since": START + 5}, ["4 terms", "4 refusal"]),
        ({"book": 4, "since": START + 5, "until": START + 40}, ["4 terms"]),
        ({"book": OFFICE, "kinds": frozenset({Kind.MEMBER})}, ["0 member"] * 3),
        ({"ids": frozenset({1})}, ["0 project"]),
        ({"sight": Sight(uid=CAROL)}, ["0 refusal", "4 refusal"]),
        ({"sight": Sight(uid=BOB)}, []),
        ({"sight": Sight(uid=BOB, projects=frozenset({2})), "kinds": frozenset({Kind.REFUSAL, Kind.TERMS})}, ["4 terms", "4 refusal"]),
        ({"sight": Sight(uid=ALICE), "book": 1}, ["1 refusal"]),
        ({"sight": Sight(uid=ALICE, projects=frozenset({0, 2})), "book": OFFICE}, []),
        ({"sight": Sight(uid=CAROL, projects=frozenset({2})), "book": OFFICE}, ["0 refusal"]),
        ({"sight": Sight()}, []),
    ],
)
def test_entries(filled: Store, query: dict[str, Any], expected: list[str]) -> None:
    found = Look(filled).entries(EntryQuery(**query), PAGE)
    assert told(found) == expected
    assert numbers(found) == sorted(numbers(found))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [5, 6, 7]),
        ({"ids": frozenset()}, []),
        ({"allocation": 1}, [5]),
        ({"projects": frozenset({3})}, [6]),
        ({"projects": frozenset({1, 3})}, [5, 6]),
        ({"projects": frozenset()}, []),
        ({"resource": "cpu"}, [5, 6, 7]),
        ({"resource": "gpu"}, []),
        ({"category": "annual"}, [7]),
        ({"category": "startup"}, [5]),
        ({"active_at": END - 1}, [5, 7]),
        ({"active_at": END}, []),
        ({"owner": CAROL}, [6, 7]),
        ({"cluster": "darwin"}, [5, 6, 7]),
        ({"cluster": "DARWIN"}, []),
        ({"cluster": "dar"}, []),
        ({"cluster": "d_rwin"}, []),
        ({"job_id": 6}, [6]),
        ({"job_id": 9}, []),
        ({"job_id": 6, "cluster": "darwin", "owner": CAROL, "projects": frozenset({3})}, [6]),
        ({"since": START + 40, "until": START + 41}, [5, 6, 7]),
        ({"until": START + 40}, []),
        ({"sight": Sight(uid=CAROL)}, [6, 7]),
        ({"sight": Sight(projects=frozenset({1}))}, [5]),
        ({"sight": Sight(projects=frozenset({3}))}, [6]),
        ({"sight": Sight(uid=BOB, projects=frozenset({2, 3}))}, [6, 7]),
        ({"sight": Sight(projects=frozenset({3})), "projects": frozenset({1})}, []),
        ({"sight": Sight(uid=CAROL, projects=frozenset({1})), "resource": "cpu"}, [5, 6, 7]),
        ({"sight": Sight()}, []),
    ],
)
def test_refusals(filled: Store, query: dict[str, Any], expected: list[int]) -> None:
    found = Look(filled).refusals(RefusalQuery(**query), PAGE)
    assert [refusal_of(each).run for each in found] == [f"darwin/{number}@900.0" for number in expected]
    assert numbers(found) == sorted(numbers(found))
    assert found == Look(filled).refusals(RefusalQuery(ids=frozenset(numbers(found))), PAGE)


def test_debits_are_what_owners_were_charged(filled: Store) -> None:
    charged = next(each for each in Look(filled).runs(RunQuery(), PAGE) if each.charged)
    assert Look(filled).debits(frozenset({1, 3, 99})) == [Debit(1, ALICE, 55, charged.id)]
    assert Look(filled).debits(frozenset()) == []


def test_members_and_memberships(filled: Store) -> None:
    assert [(each.uid, each.role) for each in Look(filled).members(1, PAGE)] == [(ALICE, Role.PI), (BOB, Role.MEMBER)]
    assert [(each.project, each.role) for each in Look(filled).memberships(BOB)] == [
        (1, Role.MEMBER),
        (2, Role.COORDINATOR),
    ]
    assert Look(filled).members(3, PAGE) == []


def test_user_sums(filled: Store) -> None:
    rows = Look(filled).users(frozenset({1, 3, 99}))
    assert [(row.allocation, row.uid, row.sums.charged, row.sums.held, row.sums.cap) for row in rows] == [
        (1, ALICE, 55, 10, None),
        (1, BOB, 0, 0, 400),
        (3, ALICE, 0, 30, None),
    ]
    assert Look(filled).users(frozenset({1, 3, 99}), BOB) == rows[1:2]
    assert Look(filled).users(frozenset()) == []


PAGED: dict[str, Callable[[Store, Page], list[Any]]] = {
    "projects": lambda store, page: Look(store).projects(ProjectQuery(), page),
    "allocations": lambda store, page: Look(store).allocations(AllocationQuery(), page),
    "runs": lambda store, page: Look(store).runs(RunQuery(), page),
    "entries": lambda store, page: Look(store).entries(EntryQuery(), page),
    "refusals": lambda store, page: Look(store).refusals(RefusalQuery(), page),
    "members": lambda store, page: Look(store).members(1, page),
    "drawn": lambda store, page: Look(store).drawn(1, page),
}


def place_of(row: Any) -> int:
    """What a page's `after` is about."""
    return int(row.uid if hasattr(row, "uid") else row.id)


@pytest.mark.parametrize("what", PAGED)
def test_pages_follow_each_other_in_both_directions(filled: Store, what: str) -> None:
    whole = PAGED[what](filled, Page(PAGE_MAX))
    for newest_first in (False, True):
        expected = whole[::-1] if newest_first else whole
        found: list[Any] = []
        while page := PAGED[what](filled, Page(2, place_of(found[-1]) if found else None, newest_first)):
            assert len(page) <= 2
            found += page
        assert found == expected


@pytest.mark.parametrize("what", PAGED)
def test_a_page_beyond_the_end_or_of_no_rows_is_empty(filled: Store, what: str) -> None:
    for page in (Page(after=2**53), Page(after=0, newest_first=True), Page(0), Page(-5)):
        assert PAGED[what](filled, page) == []


def test_a_page_is_never_larger_than_the_most(store: Store) -> None:
    granted(store, *(project(f"p{number}", number) for number in range(1, PAGE_MAX + 3)))
    assert len(Look(store).projects(ProjectQuery(), Page(10**9))) == PAGE_MAX


def test_what_upkeep_asks_for(filled: Store) -> None:
    assert Look(filled).overdue(Instant(START + 60), 10) == []
    assert Look(filled).overdue(Instant(START + 61), 10) == [job(4)]
    assert Look(filled).overdue(Instant(START + 10_000), 10) == [job(4), job(3)]
    assert Look(filled).overdue(Instant(START + 10_000), 1) == [job(4)]
    assert Look(filled).expired(Instant(END - 1), 10) == []
    assert Look(filled).expired(Instant(END), 10) == [1, 3]  # 4 is frozen, and stays so
    assert Look(filled).expired(Instant(END), 1) == [1]


def test_what_has_ended_need_not_be_ended(store: Store) -> None:
    granted(_filled(store), Expire(allocation=3), at=END)
    assert Look(store).expired(Instant(END), 10) == [1]


def test_the_audit_reads_whole_tables_in_its_order(filled: Store) -> None:
    projects, members, allocations, users, runs, entries, offices, tokens = contents(filled)
    assert numbers(list(projects)) == [1, 2, 3]
    assert [(each.project, each.uid) for each in members] == [(1, ALICE), (1, BOB), (2, BOB)]
    assert numbers(list(allocations)) == [1, 2, 3, 4]
    assert [(each.allocation, each.uid) for each in users] == [(1, ALICE), (1, BOB), (3, ALICE)]
    assert [(each.allocation, each.id) for each in runs] == sorted((each.allocation, each.id) for each in runs)
    assert [(each.book, each.seq) for each in entries] == sorted((each.book, each.seq) for each in entries)
    assert Look(filled).count_entries() == len(entries)
    assert offices[0].seq == sum(each.book == OFFICE for each in entries)
    assert tokens == []


def test_streams_may_be_read_side_by_side(filled: Store) -> None:
    *_, entries, _, _ = contents(filled)
    with filled.reading() as reader:
        streams = [reader.scan_entries(), reader.scan_entries()]
        side_by_side = [next(stream) for stream in streams]
        assert reader.count_entries() == len(entries)
        assert [side_by_side[0], *streams[0]] == [side_by_side[1], *streams[1]] == entries
        assert [each.id for each in reader.scan_allocations()] == [1, 2, 3, 4]
