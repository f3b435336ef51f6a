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
from tests.contracts.concurrent_clients import run_together, send_one_by_one
from tests.contracts.databases import Place
from tests.contracts.small_site import START, allocation, contents, fill, granted, hold, project


def test_two_servers_never_overdraw_an_allocation(place: Place) -> None:
    """HADM's race: jobs of 20 SU-minutes compete for 30, from several servers at once."""
    stores = [place.open(), place.open()]
    fill(stores[0])
    clients = [
        send_one_by_one(
            stores[index % 2], *(hold(100 * index + number, 30) for number in range(1, 16))
        )
        for index in range(4)
    ]
    outcomes = run_together(*clients)
    assert sum(isinstance(outcome, Done) for outcome in outcomes) == 1_000 // 30
    assert {outcome.reason for outcome in outcomes if isinstance(outcome, Refusal)} == {
        Reason.INSUFFICIENT_CREDIT
    }
    physics = contents(stores[1])[2][0]
    assert (physics.held, physics.remaining) == (990, 10)
    assert Audit(stores[0]).verify().findings == ()


def test_circular_transfers_keep_the_sum_and_do_not_deadlock(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    outward, back = (
        Transfer(source=1, target=2, amount=SuMinutes(3)),
        Transfer(source=2, target=1, amount=SuMinutes(2)),
    )
    clients = [
        send_one_by_one(stores[number % 2], *[outward, back][:: 1 if number % 2 else -1] * 8)
        for number in range(4)
    ]
    outcomes = run_together(*clients)
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    physics, chemistry = contents(stores[0])[2]
    assert (physics.deposited, chemistry.deposited) == (1_000 - 32, 500 + 32)
    assert Audit(stores[1]).verify().findings == ()


def test_run_from_two_servers_is_held_once(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    requests = [hold(number, 2, key=f"h{number}") for number in range(1, 30)]
    outcomes = run_together(*(send_one_by_one(store, *requests) for store in stores))
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert len({outcome.entry for outcome in outcomes if isinstance(outcome, Done)}) == 29
    assert contents(stores[0])[2][0].held == 58


def test_project_created_on_two_servers_exists_once(place: Place) -> None:
    stores = [place.open(), place.open()]
    outcomes = run_together(
        *(
            send_one_by_one(store, *(project(f"p{number}", number) for number in range(1, 9)))
            for store in stores
        )
    )
    assert (
        sorted(outcome.again for outcome in outcomes if isinstance(outcome, Done))
        == [False] * 8 + [True] * 8
    )
    projects, *_ = contents(stores[0])
    assert sorted(number.gname for number in projects) == [f"p{number}" for number in range(1, 9)]


def test_one_of_two_overlapping_allocations_is_opened(place: Place) -> None:
    stores = [place.open(), place.open()]
    granted(stores[0], project("physics", 100))
    periods = [
        allocation(1, start=START + 10 * number, end=START + 10 * number + 15)
        for number in range(8)
    ]
    outcomes = run_together(*(send_one_by_one(store, *periods) for store in stores))
    terms = (row.terms for row in contents(stores[0])[2])
    opened = sorted(terms, key=lambda period: period.start)
    assert sum(isinstance(outcome, Done) for outcome in outcomes) == len(opened) >= 4
    assert all(one.end <= other.start for one, other in pairwise(opened))
    assert Audit(stores[1]).verify().findings == ()


def test_holds_on_shared_credit_are_serialised(place: Place) -> None:
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
    lines = [(2 + number % 2, 1) for number in range(4)]
    clients = [
        send_one_by_one(
            stores[index % 2],
            *(hold(100 * index + number, 10, chain=lines[index]) for number in range(1, 9)),
        )
        for index in range(4)
    ]
    outcomes = run_together(*clients)
    assert sum(isinstance(outcome, Done) for outcome in outcomes) == 12
    assert [row.remaining for row in contents(stores[1])[2]] == [0, 0, 0]
    assert Audit(stores[0]).verify().findings == ()


def test_readers_do_not_wait_for_writers(sql_place: Place) -> None:
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    before = contents(two)
    request = SubmittedRequest(hold(1, 600), START, 0)
    with one.transaction() as transaction:
        work = transaction.load(lock_set_of([request]))
        assert contents(two) == before
        transaction.write(work)
        assert contents(two) == before


def test_reader_keeps_its_snapshot(store: Store) -> None:
    fill(store)
    before = contents(store)
    with store.reading() as reader:
        assert list(reader.scan(Allocation)) == before[2]
        granted(store, hold(1, 600), project("biology", 300))
        assert list(reader.scan(Allocation)) == before[2]
        assert list(reader.scan(Entry)) == before[5]
        assert list(reader.scan(RunRecord)) == before[4]
    assert contents(store) != before


def test_one_store_writes_two_batches_concurrently(postgres_place: Place) -> None:
    store = postgres_place.open()
    fill(store)
    with store.transaction() as transaction:
        transaction.load(
            lock_set_of([SubmittedRequest(Deposit(allocation=1, amount=SuMinutes(5)), START, 0)])
        )
        granted(store, Deposit(allocation=2, amount=SuMinutes(5)))
    assert [row.deposited for row in contents(store)[2]] == [1_000, 505]


def test_concurrent_writer_threads_overdraw_nothing(postgres_place: Place) -> None:
    """Jobs of 3 SU-minutes against 1,000, a hundred in a batch, each sent twice and by two clients
    at a time.
    """
    store = postgres_place.open()
    fill(store)
    counter = WriterThreads(Ledger(store, Policy()))
    batches = [
        [
            SubmittedRequest(hold(NEXT_BATCH_MIN * batch + number, 3), START, 0)
            for number in range(1, NEXT_BATCH_MIN + 1)
        ]
        for batch in range(6)
    ]
    with closing(counter):
        outcomes = run_together(
            *(partial(counter.apply, batch) for batch in (*batches, *reversed(batches)))
        )
    held = {outcome.entry for outcome in outcomes if isinstance(outcome, Done)}
    assert len(held) == 1_000 // 3
    assert {outcome.reason for outcome in outcomes if isinstance(outcome, Refusal)} == {
        Reason.INSUFFICIENT_CREDIT
    }
    assert contents(store)[2][0].held == 3 * len(held)
    assert Audit(store).verify().findings == ()
