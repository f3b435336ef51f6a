"""Queries of entries, refusals and debits, with every filter and the visibility of the user."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.bank.entry import REGISTRY, Entry, Kind
from fairbank.bank.query import (
    Debit,
    DebitPage,
    DebitQuery,
    EntryQuery,
    RefusalQuery,
    RunQuery,
    Visibility,
)
from fairbank.bank.refusals import Reason, Refusal, refusal_of
from fairbank.store.contract import Store
from tests.contracts.small_site import (
    ALICE,
    BOB,
    CAROL,
    CLERK,
    END,
    PAGE,
    START,
    SnapshotReader,
    adjust,
    allocation,
    ask,
    charge,
    granted,
    hold,
    numbers,
    project,
)


def kinds_of(entries: list[Entry]) -> list[str]:
    return [f"{entry.allocation} {entry.kind.value}" for entry in entries]


REFUSALS = ["1 refusal", "0 refusal", "4 refusal"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"kinds": frozenset({Kind.REFUSAL})}, REFUSALS),
        ({"kinds": frozenset()}, []),
        ({"kinds": frozenset({Kind.REFUSAL}), "projects": frozenset({1, 3})}, ["1 refusal"]),
        ({"owner": CAROL}, ["0 refusal", "4 refusal"]),
        ({"allocation": 4, "since": START + 5}, ["4 terms", "4 refusal"]),
        ({"allocation": 4, "since": START + 5, "until": START + 40}, ["4 terms"]),
        ({"allocation": REGISTRY, "kinds": frozenset({Kind.MEMBER})}, ["0 member"] * 3),
        ({"ids": frozenset({1})}, ["0 project"]),
        ({"visibility": Visibility(uid=CAROL)}, ["0 refusal", "4 refusal"]),
        ({"visibility": Visibility(uid=BOB)}, []),
        (
            {
                "visibility": Visibility(uid=BOB, projects=frozenset({2})),
                "kinds": frozenset({Kind.REFUSAL, Kind.TERMS}),
            },
            ["4 terms", "4 refusal"],
        ),
        ({"visibility": Visibility(uid=ALICE), "allocation": 1}, ["1 refusal"]),
        (
            {
                "visibility": Visibility(uid=ALICE, projects=frozenset({0, 2})),
                "allocation": REGISTRY,
            },
            [],
        ),
        (
            {"visibility": Visibility(uid=CAROL, projects=frozenset({2})), "allocation": REGISTRY},
            ["0 refusal"],
        ),
        ({"visibility": Visibility()}, []),
    ],
)
def test_query_finds_visible_entries_in_their_order(
    filled: Store, query: dict[str, Any], expected: list[str]
) -> None:
    result = SnapshotReader(filled).entries(EntryQuery(**query), PAGE)
    assert kinds_of(result) == expected
    assert numbers(result) == sorted(numbers(result))


def _own_jobs(uid: int | None, project: int) -> Visibility:
    return Visibility(uid=uid, own_jobs_of=frozenset({project}))


def test_own_jobs_are_entries_of_the_user_or_of_no_job(filled: Store) -> None:
    """Project 3 is a child of 2, whose allocation 4 pays for its jobs."""
    reader = SnapshotReader(filled)
    of_users = ((1, 1, (ALICE, BOB)), (4, 2, (CAROL, BOB, None)), (4, 3, (CAROL, None)))
    for journal, number, uids in of_users:
        entries = reader.entries(EntryQuery(allocation=journal), PAGE)
        assert {None, uids[0]} <= {entry.owner for entry in entries}
        for uid in uids:
            query = EntryQuery(allocation=journal, visibility=_own_jobs(uid, number))
            of_no_job = {None} if number != 3 else set()
            assert reader.entries(query, PAGE) == [
                entry for entry in entries if entry.owner in of_no_job | ({uid} - {None})
            ], (journal, number, uid)


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
        ({"visibility": Visibility(uid=CAROL)}, [6, 7]),
        ({"visibility": Visibility(projects=frozenset({1}))}, [5]),
        ({"visibility": Visibility(projects=frozenset({3}))}, [6]),
        ({"visibility": Visibility(uid=BOB, projects=frozenset({2, 3}))}, [6, 7]),
        ({"visibility": Visibility(projects=frozenset({3})), "projects": frozenset({1})}, []),
        (
            {"visibility": Visibility(uid=CAROL, projects=frozenset({1})), "resource": "cpu"},
            [5, 6, 7],
        ),
        ({"visibility": Visibility()}, []),
    ],
)
def test_query_finds_visible_refusals_in_their_order(
    filled: Store, query: dict[str, Any], expected: list[int]
) -> None:
    result = SnapshotReader(filled).refusals(RefusalQuery(**query), PAGE)
    assert [refusal_of(row).run for row in result] == [
        f"darwin/{number}@900.0" for number in expected
    ]
    assert numbers(result) == sorted(numbers(result))
    assert result == SnapshotReader(filled).refusals(
        RefusalQuery(ids=frozenset(numbers(result))), PAGE
    )


def test_report_at_fault_is_that_of_its_sender(filled: Store) -> None:
    """The clerk reports for carol a change of a run that has no hold."""
    reader = SnapshotReader(filled)
    before = reader.refusals(RefusalQuery(owner=CAROL), PAGE)
    (refusal,) = ask(filled, adjust(77, 10, END, owner=CAROL), at=START + 50)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.NO_HOLD
    for sender, sees_it in ((None, True), (CLERK, True), (CAROL, False)):
        seen = reader.refusals(RefusalQuery(owner=CAROL, sender=sender), PAGE)
        assert [entry.id for entry in seen] == numbers(before) + [refusal.entry] * sees_it


def test_debits_are_what_owners_were_charged(filled: Store) -> None:
    charged = next(run for run in SnapshotReader(filled).runs(RunQuery(), PAGE) if run.charged)
    debit = Debit(1, ALICE, 55, charged.id)
    for query, page, expected in (
        (DebitQuery(), DebitPage(), [debit]),
        (DebitQuery(visibility=Visibility(uid=ALICE)), DebitPage(), []),
        (DebitQuery(visibility=Visibility(projects=frozenset({1}))), DebitPage(), [debit]),
        (DebitQuery(visibility=_own_jobs(ALICE, 1)), DebitPage(), [debit]),
        (DebitQuery(visibility=_own_jobs(BOB, 1)), DebitPage(), []),
        (DebitQuery(visibility=_own_jobs(ALICE, 2)), DebitPage(), []),
        (DebitQuery(projects=frozenset({2, 3})), DebitPage(), []),
        (DebitQuery(allocation=1, owner=ALICE), DebitPage(1), [debit]),
        (DebitQuery(allocation=3), DebitPage(), []),
        (DebitQuery(owner=BOB), DebitPage(), []),
        (DebitQuery(), DebitPage(after=(1, ALICE)), []),
        (DebitQuery(), DebitPage(after=(0, ALICE + 1)), [debit]),
    ):
        assert SnapshotReader(filled).debits(query, page) == expected


def test_debits_of_large_allocation_come_in_pages(store: Store) -> None:
    granted(
        store,
        project("physics", 1),
        project("optics", 2),
        allocation(1, deposit=100),
        allocation(2, deposit=100),
    )
    for number in range(1, 8):
        whose = {"project": number % 2 + 1, "owner": 1_000 + number}
        granted(store, hold(number, 5, **whose), charge(number, 5, **whose))
    reader, page, seen = SnapshotReader(store), DebitPage(3), list[Debit]()
    while result := reader.debits(DebitQuery(), page):
        assert len(result) <= 3
        seen += result
        page = DebitPage(3, (result[-1].allocation, result[-1].owner))
    owners = {1: (1_002, 1_004, 1_006), 2: (1_001, 1_003, 1_005, 1_007)}
    assert [(debit.allocation, debit.owner) for debit in seen] == [
        (number, uid) for number, uids in owners.items() for uid in uids
    ]
