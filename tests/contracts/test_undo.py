"""Undo of an entry: once and completely, by its reverse, for any user and key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from fairbank.bank.allocation import NO_LINK
from fairbank.bank.audit import Fold
from fairbank.bank.entry import Entry, Kind, link_of
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import Reason, Refusal, sentence
from fairbank.bank.requests import (
    Deposit,
    Refund,
    SetMember,
    SubmittedRequest,
    Transfer,
    Undo,
    Withdraw,
)
from fairbank.bank.rules import Done
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from tests.contracts.places import Place
from tests.contracts.site import ALICE, BOB, START, charge, contents, granted, hold, job
from tests.contracts.undo_requests import (
    TEN,
    amended,
    by,
    findings_of,
    moved,
    opened,
    reason_of,
    refunded,
    undoing,
)


@pytest.mark.parametrize("kind", ["deposit", "withdraw", "transfer"])
def test_two_people_do_not_undo_one_entry_twice(store: Store, kind: str) -> None:
    opened(store)
    start = [(each.deposited, each.charged) for each in contents(store)[2]]
    number = moved(store, kind)
    (first,) = by(store, ALICE, undoing(store, number, key="a"))
    assert isinstance(first, Done)
    before = contents(store)
    assert [(each.deposited, each.charged) for each in before[2]] == start
    (second,) = by(store, BOB, undoing(store, number))
    assert isinstance(second, Refusal)
    assert second.reason is Reason.ALREADY_UNDONE
    assert f"entry {number} was undone by entry " in sentence(second)
    assert f"of user {ALICE}" in sentence(second)
    assert contents(store) == before
    (again,) = by(store, ALICE, undoing(store, number, key="a"))
    assert isinstance(again, Done)
    assert again.again


@pytest.mark.parametrize("kind", ["deposit", "refund"])
def test_nor_do_they_in_one_batch(store: Store, kind: str) -> None:
    opened(store)
    back = undoing(store, refunded(store) if kind == "refund" else moved(store, kind))
    done, no = Ledger(store, Policy()).apply(
        [SubmittedRequest(back, START, ALICE), SubmittedRequest(back, START, BOB)]
    )
    assert isinstance(done, Done)
    assert isinstance(no, Refusal)
    assert no.reason is Reason.ALREADY_UNDONE


def test_nor_do_several_servers(sql_place: Place) -> None:
    store = sql_place.open()
    opened(store)
    back = undoing(store, moved(store, "transfer"))
    stores = [sql_place.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = [each[0] for each in pool.map(lambda store: by(store, ALICE, back), stores)]
    assert sum(isinstance(each, Done) for each in outcomes) == 1


def test_a_refund_is_taken_back_once(store: Store) -> None:
    opened(store)
    granted(store, hold(2, 60), charge(2, 40), Refund(run=job(2), amount=TEN))
    number = refunded(store)
    (first,) = by(store, ALICE, undoing(store, number))
    assert isinstance(first, Done)
    (second,) = by(store, BOB, undoing(store, number))
    assert isinstance(second, Refusal)
    assert second.reason is Reason.ALREADY_UNDONE
    assert f"entry {number} was undone by entry {first.entry}, of user {ALICE}" in sentence(second)
    granted(
        store, Refund(run=job(1), amount=TEN)
    )  # another of the same amount is not the one that was taken back
    assert isinstance(by(store, BOB, undoing(store, number))[0], Refusal)
    granted(store, undoing(store, first.entry))  # the run is given it back once more
    assert reason_of(store, undoing(store, first.entry)) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_a_run_that_is_given_back_what_was_taken_back_is_audited_to_its_end(
    sql_place: Place,
) -> None:
    """Its row then equals an earlier state. The audit, which drops closed runs that match, must
    still see the later entries.
    """
    store = sql_place.open()
    opened(store)
    number = refunded(store)
    granted(store, hold(2, 60), charge(2, 40), undoing(store, number))
    assert findings_of(store) == []
    sql_place.run("UPDATE run SET refunded = 10 WHERE job_id = 1")
    (found,) = Audit(store).verify().findings
    assert (
        found.what
        == f"the row of run {job(1)} was altered: refunded is 10 SU-minutes, due 0 SU-minutes"
    )
    sql_place.run("UPDATE run SET refunded = 0 WHERE job_id = 1")
    granted(store, Refund(run=job(1), amount=TEN))
    sql_place.run("UPDATE run SET refunded = 0 WHERE job_id = 1")
    (found,) = Audit(store).verify().findings
    assert (
        found.what
        == f"the row of run {job(1)} was altered: refunded is 0 SU-minutes, due 10 SU-minutes"
    )


def test_what_was_undone_before_is_found_by_the_audit(store: Store) -> None:
    """The bank would never write such rows, but a person who edits the tables can."""
    opened(store)
    number = granted(store, Deposit(allocation=1, amount=TEN))[0].entry
    granted(store, undoing(store, number), Withdraw(allocation=1, amount=TEN))
    lines = [each for each in contents(store)[5] if each.book == 1]
    fold, before = Fold(1), NO_LINK
    for line in (*lines[:-1], msgspec.structs.replace(lines[-1], details=lines[-2].details)):
        fold.add(msgspec.structs.replace(line, link=link_of(line, before)))
        before = link_of(line, before)
    (found,) = fold.findings
    assert f"it takes back entry {number}, which" in found.what


def test_undone_change_may_be_made_and_undone_again(store: Store) -> None:
    opened(store)
    undone = granted(store, undoing(store, moved(store, "deposit")))[0].entry
    redone = granted(store, undoing(store, undone))[0].entry
    granted(store, undoing(store, redone))
    assert findings_of(store) == []


def test_what_follows_a_job_and_what_is_not_there_is_not_undone(store: Store) -> None:
    opened(store)
    held = granted(store, hold(1, 60), charge(1, 40))
    opening = next(each.id for each in contents(store)[5] if each.kind is Kind.OPEN)
    gone = granted(store, Transfer(source=1, target=2, amount=TEN))[0].entry
    arrived = next(
        each.id for each in contents(store)[5] if each.kind is Kind.TRANSFER_IN and each.id > gone
    )
    for number in (*(each.entry for each in held), opening, arrived):
        assert reason_of(store, undoing(store, number)) is Reason.CANNOT_UNDO
    assert reason_of(store, Undo(entry=999_999, book=1)) is Reason.UNKNOWN_ENTRY
    assert (
        reason_of(store, msgspec.structs.replace(undoing(store, gone), book=2))
        is Reason.UNKNOWN_ENTRY
    )


@pytest.mark.parametrize("kind", ["deposit", "transfer", "terms", "role", "refund"])
def test_dry_run_of_undo_shows_the_result(store: Store, kind: str) -> None:
    """The dry run shows the entries that are written afterwards, except their numbers, and writes
    none.
    """
    opened(store)
    numbers = {
        "terms": lambda: amended(store, credit_limit=TEN),
        "role": lambda: granted(store, SetMember(project=1, uid=ALICE, role=Role.PI))[0].entry,
        "refund": lambda: refunded(store),
    }
    number = numbers[kind]() if kind in numbers else moved(store, kind)
    bank, asked = (
        Ledger(store, Policy()),
        SubmittedRequest(undoing(store, number, key="a"), START, ALICE),
    )
    before = contents(store)
    foretold, work = bank.dry_run(asked)
    assert isinstance(foretold, Done)
    assert contents(store) == before
    (done,) = bank.apply([asked])
    assert isinstance(done, Done)
    written = sorted(
        (each for each in contents(store)[5] if each not in before[5]), key=lambda each: each.id
    )
    assert [_told(each) for each in written] == [_told(each) for each in work.entries]
    again, nothing = bank.dry_run(asked)
    assert isinstance(again, Done)
    assert again.again
    assert nothing.entries == []
    no, nothing = bank.dry_run(SubmittedRequest(undoing(store, number, key="b"), START, ALICE))
    assert isinstance(no, Refusal)
    assert (no.reason, no.entry) == (Reason.ALREADY_UNDONE, None)


def _told(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, id=0, link=NO_LINK)
