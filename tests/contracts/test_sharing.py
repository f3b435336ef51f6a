"""Two servers over one database: no unit is drawn twice, no number given twice, and nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.ledger import Done, Outcome, judge
from fairbank.bank.needs import Needs, needs_of
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.wish import Asked, Deposit, Note, Request, SetCap, SetMember, Transfer
from fairbank.service.audit import Audit
from fairbank.store.contract import Contention, Store
from fairbank.values.units import SuMinutes
from tests.contracts.centre import ALICE, BOB, END, START, allocation, ask, contents, fill, granted, hold, job, late_charge, project
from tests.contracts.places import Place
from tests.support.waiting import wait_until

Clerk = Callable[[], list[Outcome]]


def at_once(*clerks: Clerk) -> list[Outcome]:
    """Let all of them begin at the same moment; what they were answered, in their order."""
    start = threading.Barrier(len(clerks))

    def work(clerk: Clerk) -> list[Outcome]:
        start.wait(30)
        return clerk()

    with ThreadPoolExecutor(len(clerks)) as pool:
        return [outcome for answers in pool.map(work, clerks) for outcome in answers]


def one_by_one(store: Store, *wishes: Request) -> Clerk:
    return lambda: [outcome for wish in wishes for outcome in ask(store, wish)]


def test_one_allocation_is_never_overdrawn(place: Place) -> None:
    """HADM's race: jobs of 20 SU-minutes against 30, from everywhere at once."""
    stores = [place.open(), place.open()]
    fill(stores[0])
    clerks = [one_by_one(stores[each % 2], *(hold(100 * each + number, 30) for number in range(1, 16))) for each in range(4)]
    outcomes = at_once(*clerks)
    assert sum(isinstance(each, Done) for each in outcomes) == 1_000 // 30
    assert {each.reason for each in outcomes if isinstance(each, Refusal)} == {Reason.OVERDRAWN}
    physics = contents(stores[1])[2][0]
    assert (physics.held, physics.available) == (990, 10)
    assert Audit(stores[0]).verify().findings == ()


def test_transfers_in_a_circle_neither_lose_units_nor_wait_for_each_other(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    there, back = Transfer(source=1, target=2, amount=SuMinutes(3)), Transfer(source=2, target=1, amount=SuMinutes(2))
    clerks = [one_by_one(stores[each % 2], *[there, back][:: 1 if each % 2 else -1] * 8) for each in range(4)]
    outcomes = at_once(*clerks)
    assert all(isinstance(each, Done) for each in outcomes)
    physics, chemistry = contents(stores[0])[2]
    assert (physics.deposited, chemistry.deposited) == (1_000 - 32, 500 + 32)
    assert Audit(stores[1]).verify().findings == ()


def test_the_same_run_from_two_servers_is_held_once(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    wishes = [hold(number, 2, key=f"h{number}") for number in range(1, 30)]
    outcomes = at_once(*(one_by_one(store, *wishes) for store in stores))
    assert all(isinstance(each, Done) for each in outcomes)
    assert len({each.entry for each in outcomes if isinstance(each, Done)}) == 29
    assert contents(stores[0])[2][0].held == 58


def test_two_founders_of_one_project_make_one(place: Place) -> None:
    stores = [place.open(), place.open()]
    outcomes = at_once(*(one_by_one(store, *(project(f"p{number}", number) for number in range(1, 9))) for store in stores))
    assert sorted(each.again for each in outcomes if isinstance(each, Done)) == [False] * 8 + [True] * 8
    projects, *_ = contents(stores[0])
    assert sorted(each.gname for each in projects) == [f"p{number}" for number in range(1, 9)]


def test_of_two_overlapping_allocations_one_is_opened(place: Place) -> None:
    stores = [place.open(), place.open()]
    granted(stores[0], project("physics", 100))
    periods = [allocation(1, start=START + 10 * each, end=START + 10 * each + 15) for each in range(8)]
    outcomes = at_once(*(one_by_one(store, *periods) for store in stores))
    opened = sorted(contents(stores[0])[2], key=lambda each: each.start)
    assert sum(isinstance(each, Done) for each in outcomes) == len(opened) >= 4
    assert all(one.end <= other.start for one, other in pairwise(opened))
    assert Audit(stores[1]).verify().findings == ()


def test_entries_of_two_servers_have_different_numbers(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    at_once(*(one_by_one(store, *(late_charge(100 * each + number, 1) for number in range(20))) for each, store in enumerate(stores, 1)))
    numbers = [entry.id for entry in contents(stores[0])[5]]
    assert len(set(numbers)) == len(numbers) == 46


def test_a_batch_waits_for_the_one_that_holds_its_rows(sql_place: Place) -> None:
    """What is read after the wait is what the other has written, not what was there before."""
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> list[Outcome]:
        with one.transaction() as transaction:
            transaction.load(needs_of([Asked(hold(1, 600), START, 0)]))
            begun.set()
            assert go_on.wait(30)
        return []

    def quick() -> list[Outcome]:
        assert begun.wait(30)
        go_on.set()
        return ask(two, Deposit(allocation=1, amount=SuMinutes(5)))

    assert all(isinstance(each, Done) for each in at_once(slow, quick))
    assert contents(one)[2][0].deposited == 1_005


def test_who_draws_on_something_else_does_not_wait(postgres_place: Place) -> None:
    """Not for the holds of a sibling, while the parent shares nothing at that time; nor for who changes the allocation of another year."""
    one, two = postgres_place.open(), postgres_place.open()
    granted(one, project("college", 100), project("physics", 200, parent=1), project("optics", 300, parent=1))
    granted(one, allocation(1, 1_000), allocation(1, 500, start=END, end=2 * END, shared=True))
    granted(one, allocation(2, 1_000), allocation(3, 1_000), allocation(3, 500, start=END, end=2 * END))
    physics, optics = hold(1, 600, line=(2, 1)), hold(2, 600, line=(3, 1))
    with one.transaction() as transaction:
        asked = [
            Asked(wish, START, 0)
            for wish in (physics, Deposit(allocation=1, amount=SuMinutes(5)), Deposit(allocation=5, amount=SuMinutes(5)))
        ]
        work = transaction.load(needs_of(asked))
        assert set(work.allocations) == {1, 3, 5}
        (held,) = granted(two, optics)
        assert held.allocation == 4
        transaction.write(work)


def test_the_end_of_a_held_run_does_not_wait_for_what_a_parent_shares(postgres_place: Place) -> None:
    """Each report of an end tells the whole line; only the allocation that carries the hold is locked."""
    one, two = postgres_place.open(), postgres_place.open()
    granted(one, project("college", 100), project("physics", 200, parent=1), allocation(1, 1_000, shared=True), allocation(2, 1_000))
    granted(one, hold(1, 600, line=(2, 1)))
    with one.transaction() as transaction:
        transaction.load(needs_of([Asked(Deposit(allocation=1, amount=SuMinutes(5)), START, 0)]))
        (charged,) = granted(two, late_charge(1, 7, line=(2, 1)))
        assert charged.allocation == 2


def test_what_was_opened_since_the_first_locks_is_not_locked_after_them(postgres_place: Place) -> None:
    """It may have a lower number than what is locked: two servers could wait for each other in a circle."""
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    batch = [Asked(hold(1, 5, project=2), START, 0), Asked(hold(2, 5, resource="gpu"), START, 0)]
    with two.transaction() as transaction:
        assert sorted(transaction.load(needs_of(batch)).allocations) == [2]
        (opened,) = granted(one, allocation(1, 100, resource="gpu"))
        work = transaction.load(needs_of(batch, office=True))
        assert (sorted(work.allocations), work.office is not None) == ([2], True)
        granted(one, Deposit(allocation=opened.allocation or 0, amount=SuMinutes(5)))
    assert all(isinstance(each, Done) for each in ask(two, *(each.wish for each in batch)))


def test_who_sets_a_cap_by_a_role_still_has_it(postgres_place: Place) -> None:
    """The role is taken away while the cap waits: it is judged by the roles as they are then, and written before they change again."""
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    granted(one, SetMember(project=1, uid=ALICE, role=Role.PI), SetMember(project=1, uid=BOB, role=Role.MEMBER))
    taken, cap = SetMember(project=1, uid=ALICE, role=None), SetCap(allocation=1, uid=BOB, cap=SuMinutes(5), project=1, by=ALICE)
    begun = threading.Event()

    def first() -> list[Outcome]:
        with one.transaction() as transaction:
            work = transaction.load(needs_of([Asked(taken, START, 0)]))
            begun.set()
            outcome = judge(work, Asked(taken, START, 0), Policy())
            transaction.write(work)
            wait_until(lambda: _waiting(postgres_place), "the second server to wait for the office")
        return [outcome]

    def second() -> list[Outcome]:
        assert begun.wait(30)
        return ask(two, cap)

    gone, no = at_once(first, second)
    assert isinstance(gone, Done)
    assert isinstance(no, Refusal)
    assert no.reason is Reason.ROLE_ABOVE


def test_what_a_parent_shares_is_drawn_on_by_one_after_the_other(place: Place) -> None:
    """Two children whose own credit is used up: of what is shared, no unit is drawn twice."""
    stores = [place.open(), place.open()]
    granted(stores[0], project("college", 100), project("physics", 200, parent=1), project("optics", 300, parent=1))
    granted(stores[0], allocation(1, 100, shared=True), allocation(2, 10), allocation(3, 10))
    lines = [(2 + each % 2, 1) for each in range(4)]
    clerks = [
        one_by_one(stores[each % 2], *(hold(100 * each + number, 10, line=lines[each]) for number in range(1, 9))) for each in range(4)
    ]
    outcomes = at_once(*clerks)
    assert sum(isinstance(each, Done) for each in outcomes) == 12
    assert [each.available for each in contents(stores[1])[2]] == [0, 0, 0]
    assert Audit(stores[0]).verify().findings == ()


def test_readers_do_not_wait_for_writers(sql_place: Place) -> None:
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    before = contents(two)
    asked = Asked(hold(1, 600), START, 0)
    with one.transaction() as transaction:
        work = transaction.load(needs_of([asked]))
        assert contents(two) == before
        transaction.write(work)
        assert contents(two) == before


def test_a_reader_keeps_its_snapshot(store: Store) -> None:
    fill(store)
    before = contents(store)
    with store.reading() as reader:
        assert list(reader.scan_allocations()) == before[2]
        granted(store, hold(1, 600), project("biology", 300))
        assert list(reader.scan_allocations()) == before[2]
        assert list(reader.scan_entries()) == before[5]
        assert reader.run(job(1)) is None
    assert contents(store) != before


def test_a_run_that_arrives_while_we_wait_for_our_locks_is_contention(postgres_place: Place) -> None:
    """The charge names another project than the one that carries the run. The next try finds the run and locks what it needs."""
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    begun = threading.Event()

    def first() -> list[Outcome]:
        asked = Asked(hold(1, 10, project=2), START, 0)
        with one.transaction() as transaction:
            work = transaction.load(Needs(allocations={1, 2}, runs={job(1)}, entries=2))
            begun.set()
            wait_until(lambda: _waiting(postgres_place), "the second server to wait for a lock")
            outcome = judge(work, asked, Policy())
            transaction.write(work)
        return [outcome]

    def second() -> list[Outcome]:
        assert begun.wait(30)
        wish = late_charge(1, 7)
        with pytest.raises(Contention), two.transaction() as transaction:
            transaction.load(needs_of([Asked(wish, START, 0)]))
        return ask(two, wish)

    outcomes = at_once(first, second)
    assert [each.allocation for each in outcomes] == [2, 2]
    assert contents(one)[2][1].charged == 7


def _waiting(place: Place) -> bool:
    return bool(place.run("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"))


def test_the_numbers_of_two_servers_follow_time(sql_place: Place) -> None:
    """Lists are in the order of the numbers, and who follows them goes on from the highest."""
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    told: list[Done] = []
    for number in range(1, 7, 2):
        told += granted(one, hold(number, 10))
        told += granted(two, hold(number + 1, 10), Note(details="as it happened"))
    entries = [each.entry or 0 for each in told]
    assert entries == sorted(set(entries))


def test_numbers_are_drawn_when_the_rows_are_locked(postgres_place: Place) -> None:
    """So the entries of a book are numbered in its order, whoever waited for whom."""
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    locked, drawn = threading.Event(), list[int]()

    def first() -> list[Outcome]:
        with one.transaction() as transaction:
            transaction.load(Needs(allocations={1}))
            locked.set()
            wait_until(lambda: _waiting(postgres_place), "the second server to wait for a lock")
            drawn.append(postgres_place.run("SELECT nextval('entry_id_seq')")[0][0])
        return []

    def second() -> list[Outcome]:
        assert locked.wait(30)
        return ask(two, hold(1, 10))

    at_once(first, second)
    assert [each.id > drawn[0] for each in contents(one)[5] if each.kind is Kind.HOLD] == [True]


@pytest.mark.parametrize("wish", [Note(details="as it happened"), hold(2, 10, resource="gpu"), hold(2, 10, line=())])
def test_the_numbers_of_the_office_s_book_rise_too(postgres_place: Place, wish: Request) -> None:
    """They are drawn when the office is locked, which is the last lock; also where only judging shows that it is wanted."""
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    locked, drawn = threading.Event(), list[int]()

    def first() -> list[Outcome]:
        with one.transaction() as transaction:
            transaction.load(Needs(office=True))
            locked.set()
            wait_until(lambda: _waiting(postgres_place), "the second server to wait for the office")
            drawn.append(postgres_place.run("SELECT nextval('entry_id_seq')")[0][0])
        return []

    def second() -> list[Outcome]:
        assert locked.wait(30)
        return ask(two, hold(1, 10), wish)

    at_once(first, second)
    late = [each for each in contents(one)[5] if each.kind in (Kind.HOLD, Kind.REFUSAL, Kind.NOTE)]
    assert [each.id > drawn[0] for each in late] == [True, True]
