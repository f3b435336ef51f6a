"""A batch is written completely or not at all, and once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

import msgspec
import pytest

from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.query import AllocationQuery, Page
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Amend, Deposit, Request, SubmittedRequest, Withdraw
from fairbank.bank.rules import Done, apply
from fairbank.bank.run import RunRecord, RunState
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store, Transaction
from tests.contracts.small_site import (
    END,
    START,
    allocation,
    ask,
    charge,
    contents,
    fill,
    granted,
    hold,
    project,
)


class Cancelled(Exception):
    """Error raised between the rules and the commit."""


def test_batch_is_visible_to_the_next(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 600), hold(2, 300))
    granted(store, charge(1, 55))
    with store.reading() as reader:
        physics, chemistry = reader.allocations(AllocationQuery(), Page())
        assert (physics.charged, physics.held, physics.remaining) == (55, 300, 645)
        assert chemistry.remaining == 500
        assert [run.state for run in reader.scan(RunRecord)] == [RunState.CHARGED, RunState.HELD]


def test_raising_batch_changes_nothing(store: Store) -> None:
    fill(store)
    before = contents(store)
    with pytest.raises(Cancelled):
        _batch_that_raises(store)
    assert contents(store) == before
    granted(store, hold(1, 600))


def _batch_that_raises(store: Store) -> None:
    batch = [
        SubmittedRequest(request, START, 0)
        for request in (hold(1, 600), project("biology", 300), allocation(1, 5, resource="gpu"))
    ]
    with store.transaction() as transaction:
        work = transaction.load(lock_set_of(batch))
        assert all(isinstance(apply(work, request, Policy()), Done) for request in batch)
        transaction.write(work)
        raise Cancelled


class Counted:
    """Store that counts its transactions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.transactions = 0

    def transaction(self) -> AbstractContextManager[Transaction]:
        self.transactions += 1
        return self._store.transaction()


def test_batch_with_a_registry_refusal_takes_one_transaction(store: Store) -> None:
    fill(store)
    counted = Counted(store)
    requests = (hold(1, 600), hold(2, 5, resource="gpu"), hold(3, 600), hold(4, 300))
    outcomes = Ledger(cast("Store", counted), Policy()).apply(
        [SubmittedRequest(request, START, 0) for request in requests]
    )
    assert [outcome.reason if isinstance(outcome, Refusal) else "ok" for outcome in outcomes] == [
        "ok",
        Reason.NO_ALLOCATION,
        Reason.INSUFFICIENT_CREDIT,
        "ok",
    ]
    assert counted.transactions == 1
    assert not Audit(store).verify().findings
    with store.reading() as reader:
        assert [row.held for row in reader.allocations(AllocationQuery(), Page())] == [900, 0]
        assert reader.registry().seq == 3  # two projects, one refusal


def test_registry_refusal_in_a_batch_leaves_no_gap_in_allocation_numbers(store: Store) -> None:
    fill(store)
    opened, no = ask(store, allocation(1, 5, resource="gpu"), hold(1, 5, resource="tape"))
    assert isinstance(opened, Done)
    assert isinstance(no, Refusal)
    assert [
        outcome.allocation
        for outcome in (opened, *granted(store, allocation(2, 5, resource="gpu")))
    ] == [3, 4]


def test_unwritten_batch_changes_nothing(store: Store) -> None:
    fill(store)
    before = contents(store)
    request = SubmittedRequest(hold(1, 600), START, 0)
    with store.transaction() as transaction:
        apply(transaction.load(lock_set_of([request])), request, Policy())
    assert contents(store) == before


def test_requests_of_one_batch_see_each_other(store: Store) -> None:
    fill(store)
    batch = granted(
        store,
        project("biology", 300),
        allocation(1, 70, resource="gpu"),
        hold(1, 70, resource="gpu"),
        charge(1, 5),
    )
    assert batch[0].project == 3
    with store.reading() as reader:
        (gpu,) = reader.allocations(AllocationQuery(resource="gpu"), Page())
    assert (gpu.deposited, gpu.charged, gpu.held) == (70, 5, 0)


def test_periods_of_one_project_and_resource_do_not_overlap(store: Store) -> None:
    fill(store)
    for start, end in ((START, START + 1), (END - 1, END + 9), (START - 9, END + 9)):
        (no,) = ask(store, allocation(1, start=start, end=end))
        assert isinstance(no, Refusal)
        assert (no.reason, no.allocation) == (Reason.OVERLAP, 1)
    granted(
        store,
        allocation(1, start=END, end=END + 1),
        allocation(1, start=START - 1, end=START),
        allocation(1, resource="gpu"),
    )


def _moved(number: int, start: int, end: int, **more: Any) -> Amend:
    return Amend(
        allocation=number,
        project=1,
        resource="cpu",
        start=Instant(END + start),
        end=Instant(END + end),
        **more,
    )


PERIODS_TRADED: dict[str, list[Request]] = {
    "the later makes room for the earlier": [_moved(4, 15, 20), _moved(3, 0, 15)],
    "the earlier makes room for the later": [_moved(3, 0, 5), _moved(4, 5, 20)],
    "they change places": [_moved(3, 20, 30), _moved(4, 0, 10), _moved(3, 10, 20)],
    "and somebody else comes between": [
        _moved(3, 0, 5),
        allocation(1, start=END + 5, end=END + 8),
        _moved(5, 5, 7),
        _moved(4, 7, 20),
    ],
}


@pytest.mark.parametrize("case", PERIODS_TRADED)
def test_allocations_can_swap_periods_in_one_batch(store: Store, case: str) -> None:
    """Each step is checked and written separately, so no allocation blocks another, for any
    numbers.
    """
    fill(store)
    granted(
        store, allocation(1, start=END, end=END + 10), allocation(1, start=END + 10, end=END + 20)
    )
    granted(store, *PERIODS_TRADED[case])
    with store.reading() as reader:
        after = {
            row.id: (row.terms.start, row.terms.end)
            for row in reader.allocations(AllocationQuery(), Page())
        }
    expected = {
        request.allocation: (request.start, request.end)
        for request in PERIODS_TRADED[case]
        if isinstance(request, Amend)
    }  # the last word counts
    assert after == after | expected
    assert Audit(store).verify().findings == ()


def test_credit_and_limit_change_in_one_batch_within_constraints(store: Store) -> None:
    """A limit is lowered once a deposit pays for the credit used, and raised before more is
    used.
    """
    fill(store)
    limit = Amend(allocation=1, project=1, resource="cpu", credit_limit=SuMinutes(500))
    granted(store, limit, hold(1, 1_400))
    lower, higher = (
        msgspec.structs.replace(limit, credit_limit=SuMinutes(number)) for number in (0, 900)
    )
    granted(
        store,
        Deposit(allocation=1, amount=SuMinutes(400)),
        lower,
        higher,
        hold(2, 900),
        Withdraw(allocation=2, amount=SuMinutes(1)),
    )
    with store.reading() as reader:
        physics = reader.allocations(AllocationQuery(), Page())[0]
    assert (physics.deposited, physics.terms.credit_limit, physics.held) == (1_400, 900, 2_300)
    assert Audit(store).verify().findings == ()
