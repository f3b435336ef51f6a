"""Corrections of a wrong grant: another category or resource, and removal of the allocation."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.allocation import AllocationEvent, AllocationState, ShownState
from fairbank.bank.audit.fold import Fold
from fairbank.bank.entry import Entry, Kind, link_of
from fairbank.bank.query import AllocationQuery, EntryQuery
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Amend, Deposit, Refund, Request, SetCap, Withdraw
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from tests.contracts.small_site import (
    ALICE,
    END,
    PAGE,
    START,
    SnapshotReader,
    allocation,
    ask,
    charge,
    fill,
    granted,
    hold,
    job,
    numbers,
    release,
)
from tests.contracts.undo_requests import TEN, findings_of, reason_of, row_of, undo_request

TO_GPU = Amend(allocation=1, project=1, resource="cpu", new_resource="gpu")
TO_ANNUAL = Amend(allocation=1, project=1, resource="cpu", category="annual")
RELEASED = release(1, ended=START + 60, outcome="CANCELLED")


def removal(number: int, project: int = 1, resource: str = "cpu") -> Amend:
    return Amend(
        allocation=number, project=project, resource=resource, event=AllocationEvent.REMOVE
    )


def is_without_allocation(store: Store, request: Request) -> bool:
    """Return whether a hold is refused so; the journal records it."""
    (no,) = ask(store, request)
    return isinstance(no, Refusal) and no.reason is Reason.NO_ALLOCATION


def listed(store: Store, query: AllocationQuery) -> list[int]:
    return numbers(SnapshotReader(store).allocations(query, PAGE))


def test_category_and_resource_change_while_nothing_was_charged(store: Store) -> None:
    """The deposit stays, and jobs of the new resource use it; even in one batch."""
    fill(store)
    granted(store, hold(1, 60), RELEASED)
    granted(store, TO_ANNUAL, TO_GPU, hold(2, 60, resource="gpu"))
    row = row_of(store)
    assert (row.terms.category, row.terms.resource, row.deposited, row.held) == (
        "annual",
        "gpu",
        1_000,
        60,
    )
    assert is_without_allocation(store, hold(3, 60))
    granted(store, hold(4, 60, resource="gpu"), charge(2, 30))
    assert findings_of(store) == []


@pytest.mark.parametrize("change", [TO_GPU, TO_ANNUAL], ids=["resource", "category"])
@pytest.mark.parametrize(
    "used",
    [[hold(1, 60)], [hold(1, 60), charge(1, 30)], [hold(1, 60), charge(1, 30), Refund(run=job(1))]],
    ids=["held", "charged", "refunded"],
)
def test_category_and_resource_of_a_used_allocation_stay(
    store: Store, used: list[Request], change: Amend
) -> None:
    fill(store)
    granted(store, *used)
    assert reason_of(store, change) is Reason.ALLOCATION_USED


def test_new_resource_must_be_free_in_the_period(store: Store) -> None:
    fill(store)
    granted(store, allocation(1, 0, resource="gpu", start=END - 1, end=END + 9))
    assert reason_of(store, TO_GPU) is Reason.OVERLAP
    granted(store, removal(3, resource="gpu"), TO_GPU)
    assert findings_of(store) == []


def test_new_category_can_be_undone_and_a_new_resource_set_back(store: Store) -> None:
    fill(store)
    category = granted(store, TO_ANNUAL)[0].entry
    granted(store, undo_request(store, category))
    assert row_of(store).terms.category == "startup"
    resource = granted(store, TO_GPU)[0].entry
    assert reason_of(store, undo_request(store, resource)) is Reason.CANNOT_UNDO
    granted(store, Amend(allocation=1, project=1, resource="gpu", new_resource="cpu"))
    assert (row_of(store).terms.resource, findings_of(store)) == ("cpu", [])
    again = granted(store, TO_ANNUAL)[0].entry
    granted(store, hold(1, 60), charge(1, 30))
    assert reason_of(store, undo_request(store, again)) is Reason.ALLOCATION_USED


def test_allocation_ended_before_its_start_is_ended_in_all_lists(store: Store) -> None:
    fill(store)
    granted(store, allocation(1, 0, resource="gpu"))
    end = Amend(allocation=3, project=1, resource="gpu", event=AllocationEvent.END)
    ended = granted(store, end, at=START - 10)[0].entry
    assert listed(store, AllocationQuery(shown_state=(ShownState.ENDED, START))) == [3]
    assert listed(store, AllocationQuery(open_at=START)) == [1, 2]
    granted(store, undo_request(store, ended))
    assert listed(store, AllocationQuery(open_at=START)) == [1, 2, 3]
    assert findings_of(store) == []


def test_short_term_allocations_are_those_with_a_partition_or_a_reservation(store: Store) -> None:
    fill(store)
    for resource, place in (("gpu", {"partition": "p"}), ("tape", {"reservation": "r"})):
        request = allocation(1, 0, resource=resource)
        terms = msgspec.structs.replace(request.terms, **place)
        granted(store, msgspec.structs.replace(request, terms=terms))
    assert listed(store, AllocationQuery(is_short_term=True)) == [3, 4]


def test_removed_allocation_frees_its_period_and_is_hidden(store: Store) -> None:
    fill(store)
    granted(store, allocation(1, 0, resource="gpu"))
    removed = granted(store, removal(3, resource="gpu"))[0].entry
    row = next(iter(SnapshotReader(store).allocations(AllocationQuery(ids=frozenset({3})), PAGE)))
    assert (row.state, row.shown_state(END)) == (AllocationState.REMOVED, ShownState.REMOVED)
    assert listed(store, AllocationQuery()) == [1, 2]
    assert listed(store, AllocationQuery(open_at=START, or_latest=True)) == [1, 2]
    assert listed(store, AllocationQuery(shown_state=(ShownState.REMOVED, START))) == [3]
    assert listed(store, AllocationQuery(shown_state=(ShownState.ENDED, Instant(2 * END)))) == [
        1,
        2,
    ]
    assert is_without_allocation(store, hold(1, 60, resource="gpu"))
    for request in (
        Deposit(allocation=3, amount=TEN),
        SetCap(allocation=3, uid=ALICE, cap=TEN),
        removal(3, resource="gpu"),
        Amend(allocation=3, project=1, resource="gpu", end=Instant(END + 9)),
        Amend(allocation=3, project=1, resource="gpu", event=AllocationEvent.REOPEN),
    ):
        assert reason_of(store, request) is Reason.WRONG_STATE, request
    granted(store, allocation(1, 10, resource="gpu"))
    assert reason_of(store, undo_request(store, removed)) is Reason.OVERLAP
    assert findings_of(store) == []


def test_removal_can_be_undone(store: Store) -> None:
    fill(store)
    granted(store, allocation(1, 0, resource="gpu"))
    removed = granted(store, removal(3, resource="gpu"))[0].entry
    granted(store, undo_request(store, removed), Deposit(allocation=3, amount=TEN))
    granted(store, hold(1, 5, resource="gpu"))
    assert findings_of(store) == []


def test_allocation_in_which_credit_has_moved_is_not_removed(store: Store) -> None:
    """Also if it was all withdrawn."""
    fill(store)
    assert reason_of(store, removal(1)) is Reason.ALLOCATION_USED
    granted(store, Withdraw(allocation=2, amount=SuMinutes(500)))
    assert reason_of(store, removal(2, 2)) is Reason.ALLOCATION_USED


def test_audit_finds_corrections_that_no_rule_allows() -> None:
    """A forged journal: credit after a removal, and another resource after a charge."""
    store = MemoryStore()
    fill(store)
    granted(store, allocation(1, 0, resource="gpu"))
    granted(store, removal(3, resource="gpu"), hold(1, 60), charge(1, 30))
    opened = journal_of(store, 1)[0].details or ""
    for number, forged, finding in (
        (
            3,
            {"kind": Kind.DEPOSIT, "amount": 5, "deposited": 5, "details": None},
            "it moves credit in an allocation that was removed",
        ),
        (
            1,
            {"kind": Kind.TERMS, "amount": 0, "details": opened.replace('"cpu"', '"gpu"')},
            "it changes category or resource after a charge",
        ),
    ):
        journal = journal_of(store, number)
        last = journal[-1]
        changes = {"id": 99, "seq": last.seq + 1, "run": None, "owner": None, **forged}
        entry = msgspec.structs.replace(last, **changes)
        fold = Fold(number)
        for journal_entry in (
            *journal,
            msgspec.structs.replace(entry, link=link_of(entry, last.link)),
        ):
            fold.add(journal_entry)
        assert [reported.what for reported in fold.findings] == [finding]


def journal_of(store: Store, number: int) -> list[Entry]:
    entries: list[Entry] = SnapshotReader(store).entries(EntryQuery(allocation=number), PAGE)
    return entries
