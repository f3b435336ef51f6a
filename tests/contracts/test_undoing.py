"""An entry that moved credit is taken back once, whole, and by nothing but its reverse: whoever asks, under whatever key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from fairbank.bank.allocation import NO_LINK, Allocation, AllocationEvent, AllocationState
from fairbank.bank.audit import Fold
from fairbank.bank.entry import link_of
from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.policy import Policy
from fairbank.bank.refusal import Reason, Refusal, sentence
from fairbank.bank.wish import Amend, Asked, Deposit, Expire, Recharge, Refund, Request, SetCap, Transfer, Withdraw
from fairbank.service.audit import Audit
from fairbank.service.bank import Bank
from fairbank.store.contract import Store
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes
from tests.contracts.centre import ALICE, BOB, END, START, allocation, ask, charge, contents, fill, granted, hold, job, project
from tests.contracts.places import Place

TEN = SuMinutes(10)


def by(store: Store, actor: int, *wishes: Request) -> list[Outcome]:
    return Bank(store, Policy()).ask([Asked(wish, START, actor) for wish in wishes])


def opened(store: Store) -> None:
    """Two allocations of one resource, 1 and 2."""
    granted(store, project("physics", 5001), project("chemistry", 5002))
    granted(store, allocation(1), allocation(2))


def moved(store: Store, kind: str) -> tuple[int, Deposit | Withdraw | Transfer]:
    """The number of an entry, and the wish that undoes it."""
    if kind == "deposit":
        number = granted(store, Deposit(allocation=1, amount=TEN))[0].entry
        return number, Withdraw(allocation=1, amount=TEN, undoes=number)
    if kind == "withdraw":
        number = granted(store, Withdraw(allocation=1, amount=TEN))[0].entry
        return number, Deposit(allocation=1, amount=TEN, undoes=number)
    number = granted(store, Transfer(source=1, target=2, amount=TEN))[0].entry
    return number, Transfer(source=2, target=1, amount=TEN, undoes=number)


@pytest.mark.parametrize("kind", ["deposit", "withdraw", "transfer"])
def test_two_people_do_not_undo_one_entry_twice(store: Store, kind: str) -> None:
    opened(store)
    number, back = moved(store, kind)
    (first,) = by(store, ALICE, msgspec.structs.replace(back, key="a"))
    assert isinstance(first, Done)
    before = contents(store)
    (second,) = by(store, BOB, back)
    assert isinstance(second, Refusal)
    assert second.reason is Reason.UNDONE
    assert f"entry {number} was taken back by entry " in sentence(second)
    assert f"of user {ALICE}" in sentence(second)
    assert contents(store) == before
    (again,) = by(store, ALICE, msgspec.structs.replace(back, key="a"))
    assert isinstance(again, Done)
    assert again.again


def refunded(store: Store) -> Recharge:
    """The wish that takes back the refund of a run."""
    granted(store, hold(1, 60), charge(1, 40))
    return Recharge(run=job(1), undoes=granted(store, Refund(run=job(1), amount=TEN))[0].entry)


def test_a_refund_is_taken_back_once(store: Store) -> None:
    opened(store)
    before = None
    granted(store, hold(2, 60), charge(2, 40), Refund(run=job(2), amount=TEN))
    back = refunded(store)
    (first,) = by(store, ALICE, back)
    assert isinstance(first, Done)
    before = contents(store)
    (second,) = by(store, BOB, back)
    assert isinstance(second, Refusal)
    assert second.reason is Reason.UNDONE
    assert f"entry {back.undoes} was taken back by entry {first.entry}, of user {ALICE}" in sentence(second)
    granted(store, Refund(run=job(1), amount=TEN))  # another of the same amount is not the one that was taken back
    (third,) = by(store, BOB, back)
    assert isinstance(third, Refusal)
    assert before != contents(store)


def test_nor_is_a_refund_by_two_of_one_batch(store: Store) -> None:
    opened(store)
    back = refunded(store)
    done, no = Bank(store, Policy()).ask([Asked(back, START, ALICE), Asked(back, START, BOB)])
    assert isinstance(done, Done)
    assert isinstance(no, Refusal)


def amended(store: Store, **changes: Any) -> int:
    return granted(store, Amend(allocation=1, project=1, resource="cpu", **changes))[0].entry


def restoring(undoes: int, **changes: Any) -> Amend:
    return Amend(allocation=1, project=1, resource="cpu", undoes=undoes, **changes)


def test_terms_are_put_back_while_they_stand(store: Store) -> None:
    opened(store)
    first = amended(store, credit_limit=TEN)
    second = amended(store, shared=True)
    for too_late in (first, 999_999, 1):
        (no,) = ask(store, restoring(too_late, credit_limit=SuMinutes(0)))
        assert isinstance(no, Refusal)
        assert no.reason is (Reason.CHANGED_SINCE if too_late == first else Reason.NO_REVERSE)
        assert (f"entry {second} changed it after entry {first}" in sentence(no)) == (too_late == first)
    granted(store, restoring(second, shared=False))
    (no,) = ask(store, restoring(second, shared=False))
    assert isinstance(no, Refusal)
    assert no.reason is Reason.UNDONE
    granted(store, restoring(first, credit_limit=SuMinutes(0)))
    assert findings_of(store) == []


def test_a_cap_is_put_back_while_it_stands(store: Store) -> None:
    opened(store)
    first = granted(store, SetCap(allocation=1, uid=ALICE, cap=TEN))[0].entry
    second = granted(store, SetCap(allocation=1, uid=ALICE, cap=SuMinutes(20)))[0].entry
    granted(store, SetCap(allocation=1, uid=BOB, cap=TEN))
    for wish in (
        SetCap(allocation=1, uid=ALICE, cap=None, undoes=first),
        SetCap(allocation=1, uid=BOB, cap=None, undoes=first),
        SetCap(allocation=2, uid=ALICE, cap=None, undoes=second),
    ):
        (no,) = ask(store, wish)
        assert isinstance(no, Refusal)
    granted(store, SetCap(allocation=1, uid=ALICE, cap=TEN, undoes=second))
    granted(store, SetCap(allocation=1, uid=ALICE, cap=None, undoes=first))
    assert findings_of(store) == []


def reason_of(store: Store, wish: Request, at: int = START) -> Reason:
    before = contents(store)
    (no,) = ask(store, wish, at=at)
    assert isinstance(no, Refusal)
    assert contents(store) == before
    return no.reason


def row_of(store: Store) -> Allocation:
    row: Allocation = next(each for each in contents(store)[2] if each.id == 1)
    return row


def capped(cap: int | None, undoes: int | None = None) -> SetCap:
    return SetCap(allocation=1, uid=ALICE, cap=None if cap is None else SuMinutes(cap), undoes=undoes)


def test_a_cap_that_was_taken_back_and_set_anew_is_not_taken_back_with_the_first(store: Store) -> None:
    opened(store)
    first = granted(store, capped(600))[0].entry
    granted(store, capped(None, undoes=first))
    second = granted(store, capped(600))[0].entry
    assert reason_of(store, capped(None, undoes=first)) is Reason.UNDONE
    redone = granted(store, capped(None, undoes=second))[0].entry
    granted(store, capped(600, undoes=redone))
    assert reason_of(store, capped(None, undoes=second)) is Reason.UNDONE
    assert findings_of(store) == []


def test_terms_that_changed_nothing_are_taken_back_once_too(store: Store) -> None:
    opened(store)
    number = amended(store, shared=False)
    assert isinstance(ask(store, restoring(number), restoring(number))[1], Refusal)
    assert reason_of(store, restoring(number)) is Reason.UNDONE
    assert findings_of(store) == []


def test_the_same_terms_said_anew_stand_against_it(store: Store) -> None:
    opened(store)
    first = amended(store, credit_limit=TEN)
    second = amended(store, credit_limit=SuMinutes(20))
    third = amended(store, credit_limit=TEN)
    assert reason_of(store, restoring(first)) is Reason.CHANGED_SINCE
    granted(store, restoring(third), restoring(second), restoring(first))
    assert row_of(store).credit_limit == 0
    assert findings_of(store) == []


def test_nothing_is_put_back_but_what_was_before(store: Store) -> None:
    opened(store)
    cap = granted(store, capped(600))[0].entry
    terms = amended(store, credit_limit=TEN, shared=True)
    assert reason_of(store, capped(9_999, undoes=cap)) is Reason.NO_REVERSE
    assert reason_of(store, capped(0, undoes=cap)) is Reason.NO_REVERSE
    assert reason_of(store, restoring(terms, credit_limit=SuMinutes(99))) is Reason.NO_REVERSE
    assert reason_of(store, restoring(terms, end=Instant(END - 1))) is Reason.NO_REVERSE
    assert reason_of(store, restoring(terms, event=AllocationEvent.FREEZE)) is Reason.NO_REVERSE
    granted(store, capped(None, undoes=cap), restoring(terms))
    row = row_of(store)
    assert (row.credit_limit, row.shared, row.state) == (0, False, AllocationState.ACTIVE)


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_an_end_that_was_put_into_the_past_by_mistake_is_taken_back_whole(store: Store, swept: bool, frozen: bool) -> None:
    opened(store)
    if frozen:
        amended(store, event=AllocationEvent.FREEZE)
    later = START + 100
    (slip,) = granted(store, Amend(allocation=1, project=1, resource="cpu", end=Instant(START + 50)), at=later)
    if swept:
        assert isinstance(ask(store, Expire(allocation=1), at=later)[0], Refusal) == frozen  # a freeze outlives the end
    assert isinstance(ask(store, hold(1, 10, start=later), at=later)[0], Refusal)
    granted(store, restoring(slip.entry), at=later)
    row = row_of(store)
    assert (row.end, row.state) == (END, AllocationState.FROZEN if frozen else AllocationState.ACTIVE)
    assert isinstance(ask(store, hold(1, 10, start=later), at=later)[0], Refusal) == frozen
    assert reason_of(store, restoring(slip.entry), at=later) is Reason.UNDONE
    assert findings_of(store) == []


def test_what_the_clock_did_is_not_taken_back(store: Store) -> None:
    opened(store)
    limited = amended(store, credit_limit=TEN)
    (swept,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, restoring(swept.entry), at=END) is Reason.OVER
    granted(store, restoring(limited), at=END)
    (again,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, restoring(again.entry), at=END) is Reason.OVER
    assert row_of(store).credit_limit == 0
    assert findings_of(store) == []


def test_what_was_undone_before_is_found_by_the_audit(store: Store) -> None:
    """As no bank would write it, but somebody who can write into the books and chain them anew."""
    opened(store)
    number = granted(store, Deposit(allocation=1, amount=TEN))[0].entry
    granted(store, Withdraw(allocation=1, amount=TEN, undoes=number), Withdraw(allocation=1, amount=TEN))
    lines = [each for each in contents(store)[5] if each.book == 1]
    fold, before = Fold(1), NO_LINK
    for line in (*lines[:-1], msgspec.structs.replace(lines[-1], details=lines[-2].details)):
        fold.add(msgspec.structs.replace(line, link=link_of(line, before)))
        before = link_of(line, before)
    (found,) = fold.findings
    assert f"it takes back entry {number}, which" in found.what


def findings_of(store: Store) -> list[object]:
    return list(Audit(store).verify().findings)


def test_nor_do_they_in_one_batch(store: Store) -> None:
    opened(store)
    _, back = moved(store, "deposit")
    done, no = Bank(store, Policy()).ask([Asked(back, START, ALICE), Asked(back, START, BOB)])
    assert isinstance(done, Done)
    assert isinstance(no, Refusal)
    assert no.reason is Reason.UNDONE


def test_nor_do_several_servers(sql_place: Place) -> None:
    opened(sql_place.open())
    _, back = moved(sql_place.open(), "transfer")
    stores = [sql_place.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = [each[0] for each in pool.map(lambda store: by(store, ALICE, back), stores)]
    assert sum(isinstance(each, Done) for each in outcomes) == 1


def test_what_was_undone_may_be_done_anew_and_that_undone(store: Store) -> None:
    opened(store)
    _, back = moved(store, "deposit")
    undone = granted(store, back)[0].entry
    redone = granted(store, Deposit(allocation=1, amount=TEN, undoes=undone))[0].entry
    granted(store, Withdraw(allocation=1, amount=TEN, undoes=redone))


def test_only_the_reverse_undoes(store: Store) -> None:
    fill(store)
    opened_too = granted(store, allocation(1, resource="gpu"), allocation(2, resource="gpu"))
    one, other = (each.allocation or 0 for each in opened_too)
    number = granted(store, Deposit(allocation=one, amount=TEN))[0].entry
    gone = granted(store, Transfer(source=one, target=other, amount=TEN))[0].entry
    wrong: list[Request] = [
        Withdraw(allocation=one, amount=SuMinutes(9), undoes=number),
        Withdraw(allocation=other, amount=TEN, undoes=number),
        Deposit(allocation=one, amount=TEN, undoes=number),
        Withdraw(allocation=one, amount=TEN, undoes=gone),
        Transfer(source=one, target=other, amount=TEN, undoes=gone),
        Transfer(source=other, target=one, amount=TEN, undoes=gone + 1),
        Withdraw(allocation=one, amount=TEN, undoes=999_999),
    ]
    for wish in wrong:
        (no,) = ask(store, wish)
        assert isinstance(no, Refusal), wish
        assert no.reason is Reason.NO_REVERSE
