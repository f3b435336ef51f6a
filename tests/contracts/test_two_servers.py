"""Two servers on one database: no overdraft, no duplicate number, and readers see one snapshot."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from itertools import pairwise

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Deposit, SubmittedRequest, Transfer
from fairbank.bank.rules import Done
from fairbank.bank.run import RunRecord
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.service.write_queue.writers import NEXT_BATCH_MIN, WriterThreads
from fairbank.store.contract import Store
from tests.contracts.concurrent_clients import at_once, one_by_one
from tests.contracts.places import Place
from tests.contracts.site import START, allocation, contents, fill, granted, hold, project


def test_one_allocation_is_never_overdrawn(place: Place) -> None:
    """HADM's race: jobs of 20 SU-minutes compete for 30, from several servers at once."""
    stores = [place.open(), place.open()]
    fill(stores[0])
    clerks = [
        one_by_one(stores[each % 2], *(hold(100 * each + number, 30) for number in range(1, 16)))
        for each in range(4)
    ]
    outcomes = at_once(*clerks)
    assert sum(isinstance(each, Done) for each in outcomes) == 1_000 // 30
    assert {each.reason for each in outcomes if isinstance(each, Refusal)} == {
        Reason.INSUFFICIENT_CREDIT
    }
    physics = contents(stores[1])[2][0]
    assert (physics.held, physics.available) == (990, 10)
    assert Audit(stores[0]).verify().findings == ()


def test_transfers_in_a_circle_neither_lose_units_nor_wait_for_each_other(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    there, back = (
        Transfer(source=1, target=2, amount=SuMinutes(3)),
        Transfer(source=2, target=1, amount=SuMinutes(2)),
    )
    clerks = [
        one_by_one(stores[each % 2], *[there, back][:: 1 if each % 2 else -1] * 8)
        for each in range(4)
    ]
    outcomes = at_once(*clerks)
    assert all(isinstance(each, Done) for each in outcomes)
    physics, chemistry = contents(stores[0])[2]
    assert (physics.deposited, chemistry.deposited) == (1_000 - 32, 500 + 32)
    assert Audit(stores[1]).verify().findings == ()


def test_the_same_run_from_two_servers_is_held_once(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    requests = [hold(number, 2, key=f"h{number}") for number in range(1, 30)]
    outcomes = at_once(*(one_by_one(store, *requests) for store in stores))
    assert all(isinstance(each, Done) for each in outcomes)
    assert len({each.entry for each in outcomes if isinstance(each, Done)}) == 29
    assert contents(stores[0])[2][0].held == 58


def test_two_founders_of_one_project_make_one(place: Place) -> None:
    stores = [place.open(), place.open()]
    outcomes = at_once(
        *(
            one_by_one(store, *(project(f"p{number}", number) for number in range(1, 9)))
            for store in stores
        )
    )
    assert (
        sorted(each.again for each in outcomes if isinstance(each, Done))
        == [False] * 8 + [True] * 8
    )
    projects, *_ = contents(stores[0])
    assert sorted(each.gname for each in projects) == [f"p{number}" for number in range(1, 9)]


def test_of_two_overlapping_allocations_one_is_opened(place: Place) -> None:
    stores = [place.open(), place.open()]
    granted(stores[0], project("physics", 100))
    periods = [
        allocation(1, start=START + 10 * each, end=START + 10 * each + 15) for each in range(8)
    ]
    outcomes = at_once(*(one_by_one(store, *periods) for store in stores))
    opened = sorted(contents(stores[0])[2], key=lambda each: each.start)
    assert sum(isinstance(each, Done) for each in outcomes) == len(opened) >= 4
    assert all(one.end <= other.start for one, other in pairwise(opened))
    assert Audit(stores[1]).verify().findings == ()


def test_what_a_parent_shares_is_drawn_on_by_one_after_the_other(place: Place) -> None:
    """Two child projects have used up their own credit: no unit of the shared credit is used
    twice.
    """
    stores = [place.open(), place.open()]
    granted(
        stores[0],
        project("college", 100),
        project("physics", 200, parent=1),
        project("optics", 300, parent=1),
    )
    granted(stores[0], allocation(1, 100, shared=True), allocation(2, 10), allocation(3, 10))
    lines = [(2 + each % 2, 1) for each in range(4)]
    clerks = [
        one_by_one(
            stores[each % 2],
            *(hold(100 * each + number, 10, chain=lines[each]) for number in range(1, 9)),
        )
        for each in range(4)
    ]
    outcomes = at_once(*clerks)
    assert sum(isinstance(each, Done) for each in outcomes) == 12
    assert [each.available for each in contents(stores[1])[2]] == [0, 0, 0]
    assert Audit(stores[0]).verify().findings == ()


def test_readers_do_not_wait_for_writers(sql_place: Place) -> None:
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    before = contents(two)
    asked = SubmittedRequest(hold(1, 600), START, 0)
    with one.transaction() as transaction:
        work = transaction.load(lock_set_of([asked]))
        assert contents(two) == before
        transaction.write(work)
        assert contents(two) == before


def test_a_reader_keeps_its_snapshot(store: Store) -> None:
    fill(store)
    before = contents(store)
    with store.reading() as reader:
        assert list(reader.scan(Allocation)) == before[2]
        granted(store, hold(1, 600), project("biology", 300))
        assert list(reader.scan(Allocation)) == before[2]
        assert list(reader.scan(Entry)) == before[5]
        assert list(reader.scan(RunRecord)) == before[4]
    assert contents(store) != before


def test_one_store_writes_two_batches_side_by_side(postgres_place: Place) -> None:
    store = postgres_place.open()
    fill(store)
    with store.transaction() as transaction:
        transaction.load(
            lock_set_of([SubmittedRequest(Deposit(allocation=1, amount=SuMinutes(5)), START, 0)])
        )
        granted(store, Deposit(allocation=2, amount=SuMinutes(5)))
    assert [each.deposited for each in contents(store)[2]] == [1_000, 505]


def test_batches_that_two_windows_judge_at_once_overdraw_nothing(postgres_place: Place) -> None:
    """Jobs of 3 SU-minutes against 1,000, a hundred in a batch, each sent twice and by two clients
    at a time.
    """
    store = postgres_place.open()
    fill(store)
    counter = WriterThreads(Ledger(store, Policy()))
    batches = [
        [
            SubmittedRequest(hold(NEXT_BATCH_MIN * batch + each, 3), START, 0)
            for each in range(1, NEXT_BATCH_MIN + 1)
        ]
        for batch in range(6)
    ]
    with closing(counter):
        outcomes = at_once(
            *(partial(counter.apply, batch) for batch in (*batches, *reversed(batches)))
        )
    held = {each.entry for each in outcomes if isinstance(each, Done)}
    assert len(held) == 1_000 // 3
    assert {each.reason for each in outcomes if isinstance(each, Refusal)} == {
        Reason.INSUFFICIENT_CREDIT
    }
    assert contents(store)[2][0].held == 3 * len(held)
    assert Audit(store).verify().findings == ()
