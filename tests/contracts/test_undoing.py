"""An entry is taken back once and whole, by nothing but its reverse: whoever asks, under whatever key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from fairbank.bank.allocation import NO_LINK, Allocation, AllocationEvent, AllocationState
from fairbank.bank.audit import Fold
from fairbank.bank.entry import Entry, Kind, link_of
from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.query import AllocationQuery, EntryQuery, Page, RunQuery
from fairbank.bank.refusal import Reason, Refusal, sentence
from fairbank.bank.wish import (
    Amend,
    Asked,
    Deposit,
    Expire,
    Refund,
    Request,
    SetCap,
    SetMember,
    Transfer,
    Undo,
    Withdraw,
    undo_of,
)
from fairbank.service.audit import Audit
from fairbank.service.bank import Bank
from fairbank.store.contract import Store
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes
from tests.contracts.centre import ALICE, BOB, CAROL, END, START, allocation, ask, charge, contents, granted, hold, job, project
from tests.contracts.places import Place

TEN = SuMinutes(10)


def by(store: Store, actor: int, *wishes: Request) -> list[Outcome]:
    return Bank(store, Policy()).ask([Asked(wish, START, actor) for wish in wishes])


def opened(store: Store) -> None:
    """Two allocations of one resource, 1 and 2."""
    granted(store, project("physics", 5001), project("chemistry", 5002))
    granted(store, allocation(1), allocation(2))


def undoing(store: Store, number: int, **said: Any) -> Undo:
    """The wish to undo the entry, as a door makes it."""
    with store.reading() as reader:
        (entry,) = reader.entries(EntryQuery(ids=frozenset({number})), Page())
        run = next((each.run for each in reader.runs(RunQuery(), Page(1_000)) if each.id == entry.run), None)
        project = next((each.project for each in reader.allocations(AllocationQuery(ids=frozenset({entry.book})), Page())), None)
    return undo_of(entry, run=run, project=project, **said)


def moved(store: Store, kind: str) -> int:
    """The number of an entry that moved credit."""
    wishes: dict[str, Request] = {
        "deposit": Deposit(allocation=1, amount=TEN),
        "withdraw": Withdraw(allocation=1, amount=TEN),
        "transfer": Transfer(source=1, target=2, amount=TEN),
    }
    return granted(store, wishes[kind])[0].entry


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
    assert second.reason is Reason.UNDONE
    assert f"entry {number} was taken back by entry " in sentence(second)
    assert f"of user {ALICE}" in sentence(second)
    assert contents(store) == before
    (again,) = by(store, ALICE, undoing(store, number, key="a"))
    assert isinstance(again, Done)
    assert again.again


def refunded(store: Store) -> int:
    """The number of the entry of a refund."""
    granted(store, hold(1, 60), charge(1, 40))
    return granted(store, Refund(run=job(1), amount=TEN))[0].entry


def test_a_refund_is_taken_back_once(store: Store) -> None:
    opened(store)
    granted(store, hold(2, 60), charge(2, 40), Refund(run=job(2), amount=TEN))
    number = refunded(store)
    (first,) = by(store, ALICE, undoing(store, number))
    assert isinstance(first, Done)
    (second,) = by(store, BOB, undoing(store, number))
    assert isinstance(second, Refusal)
    assert second.reason is Reason.UNDONE
    assert f"entry {number} was taken back by entry {first.entry}, of user {ALICE}" in sentence(second)
    granted(store, Refund(run=job(1), amount=TEN))  # another of the same amount is not the one that was taken back
    assert isinstance(by(store, BOB, undoing(store, number))[0], Refusal)
    granted(store, undoing(store, first.entry))  # the run is given it back once more
    assert reason_of(store, undoing(store, first.entry)) is Reason.UNDONE
    assert findings_of(store) == []


def test_nor_is_a_refund_by_two_of_one_batch(store: Store) -> None:
    opened(store)
    back = undoing(store, refunded(store))
    done, no = Bank(store, Policy()).ask([Asked(back, START, ALICE), Asked(back, START, BOB)])
    assert isinstance(done, Done)
    assert isinstance(no, Refusal)


def amended(store: Store, **changes: Any) -> int:
    return granted(store, Amend(allocation=1, project=1, resource="cpu", **changes))[0].entry


def test_terms_are_put_back_while_they_stand(store: Store) -> None:
    opened(store)
    first = amended(store, credit_limit=TEN)
    second = amended(store, shared=True)
    (no,) = ask(store, undoing(store, first))
    assert isinstance(no, Refusal)
    assert no.reason is Reason.CHANGED_SINCE
    assert f"entry {second} changed it after entry {first}" in sentence(no)
    granted(store, undoing(store, second))
    assert reason_of(store, undoing(store, second)) is Reason.UNDONE
    granted(store, undoing(store, first))
    assert (row_of(store).credit_limit, row_of(store).shared) == (0, False)
    assert findings_of(store) == []


def test_a_cap_is_put_back_while_it_stands(store: Store) -> None:
    opened(store)
    first = granted(store, capped(10))[0].entry
    second = granted(store, capped(20))[0].entry
    granted(store, SetCap(allocation=1, uid=BOB, cap=TEN), SetCap(allocation=2, uid=ALICE, cap=TEN))
    assert reason_of(store, undoing(store, first)) is Reason.CHANGED_SINCE
    granted(store, undoing(store, second))
    assert cap_of(store) == 10
    granted(store, undoing(store, first))
    assert cap_of(store) is None
    assert findings_of(store) == []


def test_a_role_is_put_back_while_it_stands(store: Store) -> None:
    """Given, changed, taken; in each project by itself."""
    opened(store)
    given, changed, elsewhere = (
        granted(store, SetMember(project=project_, uid=ALICE, role=role))[0].entry
        for project_, role in ((1, Role.MEMBER), (1, Role.COORDINATOR), (2, Role.PI))
    )
    taken = granted(store, SetMember(project=1, uid=ALICE, role=None))[0].entry
    assert reason_of(store, undoing(store, changed)) is Reason.CHANGED_SINCE
    granted(store, undoing(store, taken))
    assert roles_of(store) == {1: Role.COORDINATOR, 2: Role.PI}
    granted(store, undoing(store, changed), undoing(store, elsewhere))
    assert roles_of(store) == {1: Role.MEMBER}
    assert reason_of(store, undoing(store, taken)) is Reason.UNDONE
    (again,) = granted(store, undoing(store, given))
    assert roles_of(store) == {}
    granted(store, undoing(store, again.entry))
    assert roles_of(store) == {1: Role.MEMBER}
    assert findings_of(store) == []


def test_nobody_undoes_a_role_that_they_could_not_give(store: Store) -> None:
    opened(store)
    granted(store, SetMember(project=1, uid=BOB, role=Role.COORDINATOR), SetMember(project=1, uid=CAROL, role=Role.PI))
    (slip,) = granted(store, SetMember(project=1, uid=ALICE, role=Role.COORDINATOR))
    assert reason_of(store, undoing(store, slip.entry, by=BOB)) is Reason.ROLE_ABOVE
    granted(store, undoing(store, slip.entry, by=CAROL))
    (cap,) = granted(store, SetCap(allocation=1, uid=CAROL, cap=TEN))
    assert reason_of(store, undoing(store, cap.entry, by=BOB)) is Reason.ROLE_ABOVE


def reason_of(store: Store, wish: Request, at: int = START) -> Reason:
    before = contents(store)
    (no,) = ask(store, wish, at=at)
    assert isinstance(no, Refusal)
    assert contents(store) == before
    return no.reason


def row_of(store: Store) -> Allocation:
    row: Allocation = next(each for each in contents(store)[2] if each.id == 1)
    return row


def capped(cap: int) -> SetCap:
    return SetCap(allocation=1, uid=ALICE, cap=SuMinutes(cap))


def cap_of(store: Store) -> int | None:
    with store.reading() as reader:
        return reader.users(frozenset({1}), ALICE)[0].sums.cap


def roles_of(store: Store) -> dict[int, Role]:
    with store.reading() as reader:
        return {each.project: each.role for each in reader.memberships(ALICE)}


def test_a_cap_that_was_taken_back_and_set_anew_is_not_taken_back_with_the_first(store: Store) -> None:
    opened(store)
    first = granted(store, capped(600))[0].entry
    granted(store, undoing(store, first))
    second = granted(store, capped(600))[0].entry
    assert reason_of(store, undoing(store, first)) is Reason.UNDONE
    redone = granted(store, undoing(store, second))[0].entry
    granted(store, undoing(store, redone))
    assert cap_of(store) == 600
    assert reason_of(store, undoing(store, second)) is Reason.UNDONE
    assert findings_of(store) == []


def test_terms_that_changed_nothing_are_taken_back_once_too(store: Store) -> None:
    opened(store)
    number = amended(store, shared=False)
    assert isinstance(ask(store, undoing(store, number), undoing(store, number))[1], Refusal)
    assert reason_of(store, undoing(store, number)) is Reason.UNDONE
    assert findings_of(store) == []


def test_the_same_terms_said_anew_stand_against_it(store: Store) -> None:
    opened(store)
    first = amended(store, credit_limit=TEN)
    second = amended(store, credit_limit=SuMinutes(20))
    third = amended(store, credit_limit=TEN)
    assert reason_of(store, undoing(store, first)) is Reason.CHANGED_SINCE
    granted(store, undoing(store, third), undoing(store, second), undoing(store, first))
    assert row_of(store).credit_limit == 0
    assert findings_of(store) == []


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
    granted(store, undoing(store, slip.entry), at=later)
    row = row_of(store)
    assert (row.end, row.state) == (END, AllocationState.FROZEN if frozen else AllocationState.ACTIVE)
    assert isinstance(ask(store, hold(1, 10, start=later), at=later)[0], Refusal) == frozen
    assert reason_of(store, undoing(store, slip.entry), at=later) is Reason.UNDONE
    assert findings_of(store) == []


def test_what_the_clock_did_is_not_taken_back(store: Store) -> None:
    opened(store)
    limited = amended(store, credit_limit=TEN)
    (swept,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, undoing(store, swept.entry), at=END) is Reason.OVER
    granted(store, undoing(store, limited), at=END)
    (again,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, undoing(store, again.entry), at=END) is Reason.OVER
    assert row_of(store).credit_limit == 0
    assert findings_of(store) == []


def test_what_was_undone_before_is_found_by_the_audit(store: Store) -> None:
    """As no bank would write it, but somebody who can write into the books and chain them anew."""
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


def findings_of(store: Store) -> list[object]:
    return list(Audit(store).verify().findings)


def test_nor_do_they_in_one_batch(store: Store) -> None:
    opened(store)
    back = undoing(store, moved(store, "deposit"))
    done, no = Bank(store, Policy()).ask([Asked(back, START, ALICE), Asked(back, START, BOB)])
    assert isinstance(done, Done)
    assert isinstance(no, Refusal)
    assert no.reason is Reason.UNDONE


def test_nor_do_several_servers(sql_place: Place) -> None:
    store = sql_place.open()
    opened(store)
    back = undoing(store, moved(store, "transfer"))
    stores = [sql_place.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = [each[0] for each in pool.map(lambda store: by(store, ALICE, back), stores)]
    assert sum(isinstance(each, Done) for each in outcomes) == 1


def test_what_was_undone_may_be_done_anew_and_that_undone(store: Store) -> None:
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
    arrived = next(each.id for each in contents(store)[5] if each.kind is Kind.TRANSFER_IN and each.id > gone)
    for number in (*(each.entry for each in held), opening, arrived):
        assert reason_of(store, undoing(store, number)) is Reason.NOT_UNDONE
    assert reason_of(store, Undo(entry=999_999, book=1)) is Reason.UNKNOWN_ENTRY
    assert reason_of(store, msgspec.structs.replace(undoing(store, gone), book=2)) is Reason.UNKNOWN_ENTRY


@pytest.mark.parametrize("kind", ["deposit", "transfer", "terms", "role", "refund"])
def test_what_undoing_would_do_is_foretold(store: Store, kind: str) -> None:
    """The very entries that are written afterwards, but for their numbers; and before that nothing."""
    opened(store)
    numbers = {
        "terms": lambda: amended(store, credit_limit=TEN),
        "role": lambda: granted(store, SetMember(project=1, uid=ALICE, role=Role.PI))[0].entry,
        "refund": lambda: refunded(store),
    }
    number = numbers[kind]() if kind in numbers else moved(store, kind)
    bank, asked = Bank(store, Policy()), Asked(undoing(store, number, key="a"), START, ALICE)
    before = contents(store)
    foretold, entries = bank.foretell(asked)
    assert isinstance(foretold, Done)
    assert contents(store) == before
    (done,) = bank.ask([asked])
    assert isinstance(done, Done)
    written = sorted((each for each in contents(store)[5] if each not in before[5]), key=lambda each: each.id)
    assert [_told(each) for each in written] == [_told(each) for each in entries]
    (again, nothing) = bank.foretell(asked)
    assert isinstance(again, Done)
    assert again.again
    assert nothing == []
    no, nothing = bank.foretell(Asked(undoing(store, number, key="b"), START, ALICE))
    assert isinstance(no, Refusal)
    assert (no.reason, no.entry) == (Reason.UNDONE, None)


def _told(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, id=0, link=NO_LINK)
