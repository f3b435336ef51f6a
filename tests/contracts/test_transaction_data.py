"""Transaction data: only the rows that a batch needs are loaded, with enough numbers."""

from __future__ import annotations

from fairbank.bank.lock_set import LockSet, lock_set_of
from fairbank.bank.requests import Amend, Refund, Request, SetCap, SetMember, SubmittedRequest
from fairbank.bank.transaction_data import TransactionData
from fairbank.store.contract import Store
from tests.contracts.small_site import (
    ALICE,
    BOB,
    START,
    allocation,
    contents,
    fill,
    granted,
    hold,
    job,
    late_charge,
    project,
)


def test_only_needed_rows_are_loaded(store: Store) -> None:
    fill(store)
    granted(
        store,
        hold(1, 10),
        hold(2, 20, owner=BOB),
        hold(3, 30, project=2),
        allocation(1, resource="gpu"),
        project("biology", 300),
    )
    work = _loaded(store, hold(4, 1))
    assert (
        sorted(work.allocations),
        sorted(work.users),
        work.runs,
        work.projects,
        work.registry,
    ) == ([1], [(1, ALICE)], {}, {}, None)
    work = _loaded(store, Refund(run=job(3)))
    assert (sorted(work.allocations), sorted(work.users), sorted(work.runs)) == (
        [2],
        [(2, ALICE)],
        [job(3)],
    )
    work = _loaded(store, project("other", 200), SetMember(project=3, uid=BOB, role=None))
    assert (sorted(work.projects), work.registry is not None, work.allocations) == (
        [2, 3],
        True,
        {},
    )
    assert sorted(_loaded(store, allocation(1)).allocations) == [1]
    assert sorted(_loaded(store, SetCap(allocation=1, uid=BOB, cap=None)).users) == [(1, BOB)]


def test_charge_loads_project_chain_only_without_hold(store: Store) -> None:
    fill(store)
    granted(
        store,
        project("optics", 101, parent=1),
        allocation(3, 50),
        Amend(allocation=1, project=1, resource="cpu", shared=True),
    )
    own, lent = hold(1, 10, project=3, chain=(3, 1)), hold(2, 60, project=3, chain=(3, 1))
    assert [outcome.allocation for outcome in granted(store, own, lent)] == [3, 1]
    ends = [late_charge(number, 5, chain=(3, 1)) for number in (1, 2, 99)]
    assert [sorted(_loaded(store, end).allocations) for end in ends] == [[3], [1], [1, 3]]
    assert sorted(_loaded(store, ends[0], ends[2]).allocations) == [1, 3]
    assert sorted(_loaded(store, ends[0], hold(3, 5, project=2)).allocations) == [2, 3]
    granted(store, *ends)
    assert [row.charged for row in contents(store)[2]] == [5, 0, 10]
    assert sorted(_loaded(store, ends[2]).allocations) == [3], "now it is in the ledger"


def _loaded(store: Store, *requests: Request) -> TransactionData:
    with store.transaction() as transaction:
        return transaction.load(
            lock_set_of([SubmittedRequest(request, START, 0) for request in requests])
        )


def test_empty_batch_loads_nothing(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.write(transaction.load(LockSet()))
    assert contents(store)[5] == []


def test_new_numbers_suffice_for_a_large_batch(store: Store) -> None:
    fill(store)
    granted(store, *(hold(number, 1) for number in range(1, 801)))
    granted(store, *(late_charge(number, 0) for number in range(1_001, 2_001)), at=START + 1)
    numbers = [entry.id for entry in contents(store)[5]]
    assert len(set(numbers)) == len(numbers) == 1_806
