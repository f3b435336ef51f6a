"""Undo of an entry: once and completely, by its reverse, for any user and key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from fairbank.bank.allocation import NO_LINK
from fairbank.bank.audit import Fold
from fairbank.bank.audit.transfers import TRANSFER_KINDS
from fairbank.bank.entry import Entry, Kind, link_of, undone_entry
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import Reason, Refusal, sentence
from fairbank.bank.requests import (
    Deposit,
    Refund,
    SetCap,
    SetMember,
    SubmittedRequest,
    Transfer,
    Undo,
    Withdraw,
)
from fairbank.bank.rules import Done
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.service.undo import reversals
from fairbank.store.contract import Store
from tests.contracts.databases import Place
from tests.contracts.small_site import ALICE, BOB, START, charge, contents, granted, hold, job
from tests.contracts.undo_requests import (
    TEN,
    amend_allocation,
    by,
    findings_of,
    move_credit,
    open_allocations,
    reason_of,
    refund_run,
    undo_request,
)


@pytest.mark.parametrize("kind", ["deposit", "withdraw", "transfer"])
def test_entry_is_undone_once_by_two_users(store: Store, kind: str) -> None:
    open_allocations(store)
    start = [(row.deposited, row.charged) for row in contents(store)[2]]
    number = move_credit(store, kind)
    (first,) = by(store, ALICE, undo_request(store, number, key="a"))
    assert isinstance(first, Done)
    before = contents(store)
    assert [(row.deposited, row.charged) for row in before[2]] == start
    (second,) = by(store, BOB, undo_request(store, number))
    assert isinstance(second, Refusal)
    assert second.reason is Reason.ALREADY_UNDONE
    assert f"entry {number} was undone by entry " in sentence(second)
    assert f"of user {ALICE}" in sentence(second)
    assert contents(store) == before
    (again,) = by(store, ALICE, undo_request(store, number, key="a"))
    assert isinstance(again, Done)
    assert again.again


@pytest.mark.parametrize("kind", ["deposit", "refund"])
def test_entry_is_undone_once_in_one_batch(store: Store, kind: str) -> None:
    open_allocations(store)
    back = undo_request(store, refund_run(store) if kind == "refund" else move_credit(store, kind))
    done, no = Ledger(store, Policy()).apply(
        [SubmittedRequest(back, START, ALICE), SubmittedRequest(back, START, BOB)]
    )
    assert isinstance(done, Done)
    assert isinstance(no, Refusal)
    assert no.reason is Reason.ALREADY_UNDONE


def test_entry_is_undone_once_by_several_servers(sql_place: Place) -> None:
    store = sql_place.open()
    open_allocations(store)
    back = undo_request(store, move_credit(store, "transfer"))
    stores = [sql_place.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = [
            outcomes[0] for outcomes in pool.map(lambda store: by(store, ALICE, back), stores)
        ]
    assert sum(isinstance(outcome, Done) for outcome in outcomes) == 1


def test_refund_is_undone_once(store: Store) -> None:
    open_allocations(store)
    granted(store, hold(2, 60), charge(2, 40), Refund(run=job(2), amount=TEN))
    number = refund_run(store)
    (first,) = by(store, ALICE, undo_request(store, number))
    assert isinstance(first, Done)
    (second,) = by(store, BOB, undo_request(store, number))
    assert isinstance(second, Refusal)
    assert second.reason is Reason.ALREADY_UNDONE
    assert f"entry {number} was undone by entry {first.entry}, of user {ALICE}" in sentence(second)
    granted(
        store, Refund(run=job(1), amount=TEN)
    )  # another of the same amount is not the one that was taken back
    assert isinstance(by(store, BOB, undo_request(store, number))[0], Refusal)
    granted(store, undo_request(store, first.entry))  # the run is given it back once more
    assert reason_of(store, undo_request(store, first.entry)) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_undone_entry_names_the_entry_that_undid_it(store: Store) -> None:
    """Of two equal transfers of the same second only the first is undone."""
    open_allocations(store)
    undone = {kind: move_credit(store, kind) for kind in ("deposit", "withdraw", "transfer")}
    second = move_credit(store, "transfer")
    undoing = {
        kind: granted(store, undo_request(store, number))[0].entry
        for kind, number in undone.items()
    }
    journals = {1: journal_of(store, 1), 2: journal_of(store, 2)}
    (incoming, _, reverse) = [entry.id for entry in journals[2] if entry.kind in TRANSFER_KINDS]
    (back,) = (entry.id for entry in journals[1] if undone_entry(entry) == undone["transfer"])
    expected = {
        undone["deposit"]: undoing["deposit"],
        undone["withdraw"]: undoing["withdraw"],
        undone["transfer"]: back,
        incoming: reverse,
    }
    assert second not in expected
    check_reversals(store, [*journals[1], *journals[2]], expected)


def test_charge_names_the_refund_after_which_nothing_of_it_is_left(store: Store) -> None:
    """It was charged 40, of which 10 are refunded, charged again, and then refunded as 15 and 25.
    The other run keeps 30.
    """
    open_allocations(store)
    granted(store, hold(2, 60), charge(2, 40), Refund(run=job(2), amount=TEN))
    refund = refund_run(store)
    recharge = granted(store, undo_request(store, refund))[0].entry
    check_reversals(store, journal_of(store, 1), {refund: recharge})
    granted(store, Refund(run=job(1), amount=SuMinutes(15)))
    check_reversals(store, journal_of(store, 1), {refund: recharge})
    last = granted(store, Refund(run=job(1), amount=None))[0].entry
    of_run = next(entry.run for entry in journal_of(store, 1) if entry.id == refund)
    (charged,) = [
        entry.id
        for entry in journal_of(store, 1)
        if (entry.run, entry.kind) == (of_run, Kind.CHARGE)
    ]
    check_reversals(store, journal_of(store, 1), {refund: recharge, charged: last})


def test_undone_terms_and_caps_name_the_entry_that_undid_them(store: Store) -> None:
    open_allocations(store)
    changed = amend_allocation(store, credit_limit=TEN)
    (capped,) = granted(store, SetCap(allocation=1, uid=ALICE, cap=TEN))
    expected = {
        number: granted(store, undo_request(store, number))[0].entry
        for number in (capped.entry, changed)
    }
    check_reversals(store, journal_of(store, 1), expected)


def journal_of(store: Store, allocation: int) -> list[Entry]:
    return [entry for entry in contents(store)[5] if entry.allocation == allocation]


def check_reversals(store: Store, entries: list[Entry], expected: dict[int, int]) -> None:
    """Check them for a page with all entries, and for pages with one each."""
    with store.reading() as reader:
        assert reversals(reader, entries) == expected
        for entry in entries:
            only = {entry.id} & expected.keys()
            assert reversals(reader, [entry]) == {number: expected[number] for number in only}


def test_refund_after_undone_refund_passes_the_audit(sql_place: Place) -> None:
    """Its row then equals an earlier state. The audit, which drops closed runs that match, must
    still see the later entries.
    """
    store = sql_place.open()
    open_allocations(store)
    number = refund_run(store)
    granted(store, hold(2, 60), charge(2, 40), undo_request(store, number))
    assert findings_of(store) == []
    sql_place.run("UPDATE run SET refunded = 10 WHERE job_id = 1")
    (result,) = Audit(store).verify().findings
    assert (
        result.what
        == f"the row of run {job(1)} was altered: refunded is 10 SU-minutes, due 0 SU-minutes"
    )
    sql_place.run("UPDATE run SET refunded = 0 WHERE job_id = 1")
    granted(store, Refund(run=job(1), amount=TEN))
    sql_place.run("UPDATE run SET refunded = 0 WHERE job_id = 1")
    (result,) = Audit(store).verify().findings
    assert (
        result.what
        == f"the row of run {job(1)} was altered: refunded is 0 SU-minutes, due 10 SU-minutes"
    )


def test_audit_finds_second_undo_of_an_entry(store: Store) -> None:
    """The bank would never write such rows, but a person who edits the tables can."""
    open_allocations(store)
    number = granted(store, Deposit(allocation=1, amount=TEN))[0].entry
    granted(store, undo_request(store, number), Withdraw(allocation=1, amount=TEN))
    lines = [row for row in contents(store)[5] if row.allocation == 1]
    fold, before = Fold(1), NO_LINK
    for line in (*lines[:-1], msgspec.structs.replace(lines[-1], details=lines[-2].details)):
        fold.add(msgspec.structs.replace(line, link=link_of(line, before)))
        before = link_of(line, before)
    (result,) = fold.findings
    assert f"it takes back entry {number}, which" in result.what


def test_undone_change_may_be_made_and_undone_again(store: Store) -> None:
    open_allocations(store)
    undone = granted(store, undo_request(store, move_credit(store, "deposit")))[0].entry
    redone = granted(store, undo_request(store, undone))[0].entry
    granted(store, undo_request(store, redone))
    assert findings_of(store) == []


def test_job_entries_and_unknown_entries_cannot_be_undone(store: Store) -> None:
    open_allocations(store)
    held = granted(store, hold(1, 60), charge(1, 40))
    opening = next(row.id for row in contents(store)[5] if row.kind is Kind.OPEN)
    gone = granted(store, Transfer(source=1, target=2, amount=TEN))[0].entry
    arrived = next(
        row.id for row in contents(store)[5] if row.kind is Kind.TRANSFER_IN and row.id > gone
    )
    for number in (*(row.entry for row in held), opening, arrived):
        assert reason_of(store, undo_request(store, number)) is Reason.CANNOT_UNDO
    assert reason_of(store, Undo(entry=999_999, allocation=1)) is Reason.UNKNOWN_ENTRY
    assert (
        reason_of(store, msgspec.structs.replace(undo_request(store, gone), allocation=2))
        is Reason.UNKNOWN_ENTRY
    )


@pytest.mark.parametrize("kind", ["deposit", "transfer", "terms", "role", "refund"])
def test_dry_run_of_undo_shows_the_result(store: Store, kind: str) -> None:
    """The dry run shows the entries that are written afterwards, except their numbers, and writes
    none.
    """
    open_allocations(store)
    numbers = {
        "terms": lambda: amend_allocation(store, credit_limit=TEN),
        "role": lambda: granted(store, SetMember(project=1, uid=ALICE, role=Role.PI))[0].entry,
        "refund": lambda: refund_run(store),
    }
    number = numbers[kind]() if kind in numbers else move_credit(store, kind)
    bank, submitted = (
        Ledger(store, Policy()),
        SubmittedRequest(undo_request(store, number, key="a"), START, ALICE),
    )
    before = contents(store)
    dry_run, work = bank.dry_run(submitted)
    assert isinstance(dry_run, Done)
    assert contents(store) == before
    (done,) = bank.apply([submitted])
    assert isinstance(done, Done)
    written = sorted(
        (row for row in contents(store)[5] if row not in before[5]), key=lambda entry: entry.id
    )
    assert [_facts(entry) for entry in written] == [_facts(entry) for entry in work.entries]
    again, nothing = bank.dry_run(submitted)
    assert isinstance(again, Done)
    assert again.again
    assert nothing.entries == []
    no, nothing = bank.dry_run(SubmittedRequest(undo_request(store, number, key="b"), START, ALICE))
    assert isinstance(no, Refusal)
    assert (no.reason, no.entry) == (Reason.ALREADY_UNDONE, None)


def _facts(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, id=0, link=NO_LINK)
