"""Idempotency: a repeated key, report, run or batch gets the recorded answer."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Deposit, Request, SubmittedRequest
from fairbank.bank.rules import Done, apply
from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.transaction_data import NewIds, TransactionData
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Contention, Store
from tests.contracts.databases import Place
from tests.contracts.small_site import (
    ALICE,
    BOB,
    CAROL,
    END,
    START,
    adjust,
    ask,
    charge,
    contents,
    deposits,
    fill,
    granted,
    hold,
    job,
    late_charge,
    release,
)


def test_job_number_can_be_reused(store: Store) -> None:
    """A job on another cluster, after a requeue, or after the numbers restarted is a separate
    run.
    """
    fill(store)
    runs = [
        job(1),
        job(1)._replace(cluster="caviness"),
        job(1)._replace(restart=1),
        job(1)._replace(submitted=901),
    ]
    for run in runs:
        granted(store, hold(1, 10, run=run))
    granted(store, charge(1, 5, run=runs[1]))
    with store.reading() as reader:
        assert {row.reported.run: row.state for row in reader.scan(RunRecord)} == dict.fromkeys(
            runs, RunState.HELD
        ) | {runs[1]: RunState.CHARGED}


def test_key_is_known_to_later_transactions(store: Store) -> None:
    fill(store)
    (first,) = granted(store, Deposit(allocation=1, amount=SuMinutes(10), key="d1"))
    (again,) = granted(store, Deposit(allocation=1, amount=SuMinutes(10), key="d1"))
    (other,) = ask(store, Deposit(allocation=1, amount=SuMinutes(11), key="d1"))
    assert (again.entry, again.again) == (first.entry, True)
    assert isinstance(other, Refusal)
    assert other.reason is Reason.KEY_REUSED
    assert contents(store)[2][0].deposited == 1_010


def test_key_belongs_to_its_actor_in_every_store(store: Store) -> None:
    fill(store)
    bank, request = Ledger(store, Policy()), Deposit(allocation=1, amount=SuMinutes(10), key="d1")
    together = bank.apply([SubmittedRequest(request, START, actor) for actor in (ALICE, BOB)])
    later = bank.apply([SubmittedRequest(request, START, actor) for actor in (BOB, CAROL, ALICE)])
    firsts = [
        outcome
        for outcome in (*together, *later)
        if isinstance(outcome, Done) and not outcome.again
    ]
    assert len({first.entry for first in firsts}) == 3
    assert [(outcome.entry, outcome.again) for outcome in later if isinstance(outcome, Done)] == [
        (firsts[1].entry, True),
        (firsts[2].entry, False),
        (firsts[0].entry, True),
    ]
    assert contents(store)[2][0].deposited == 1_030
    assert Audit(store).verify().findings == ()


LIVES: dict[str, list[Request]] = {
    "hold": [hold(1, 600)],
    "adjust": [hold(1, 600), adjust(1, 700, END)],
    "charge": [hold(1, 600), charge(1, 55)],
    "release": [hold(1, 600), release(1)],
    "late charge": [late_charge(1, 55)],
}


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("together", [True, False])
def test_repeated_report_gets_entry_named_in_run_row(
    store: Store, life: str, together: bool
) -> None:
    """In the same batch, or read from the journal by another server."""
    fill(store)
    *before, report = LIVES[life]
    granted(store, *before)
    first, *rest = granted(store, report, report) if together else granted(store, report)
    (again,) = rest or granted(store, report)
    (row,) = contents(store)[4]
    assert again == msgspec.structs.replace(first, again=True)
    assert row.set_by == again.entry
    assert Audit(store).verify().findings == ()


def test_run_is_held_and_closed_once(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 600))
    granted(store, charge(1, 55))
    assert granted(store, charge(1, 55))[0].again
    (no,) = ask(store, charge(1, 56))
    assert isinstance(no, Refusal)
    assert no.reason is Reason.RUN_CLOSED


def test_requeued_run_is_another_run(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 100), hold(1, 100, run=job(1, restart=1)))
    assert len(contents(store)[4]) == 2


def test_same_batch_twice_is_one_batch(store: Store) -> None:
    fill(store)
    requests = (
        hold(1, 10, key="h1"),
        Deposit(allocation=2, amount=SuMinutes(5), key="d1"),
        charge(1, 3, key="c1"),
    )
    first, before = granted(store, *requests), contents(store)
    again = granted(store, *requests)
    assert [outcome.entry for outcome in again] == [outcome.entry for outcome in first]
    assert contents(store) == before


@pytest.mark.parametrize("others", [0, 400])
def test_contended_batch_can_be_retried(sql_place: Place, others: int) -> None:
    """Two servers read the same rows. The second finds the key taken, and on its retry finds the
    answer.
    """
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    requests = [*deposits(others), Deposit(allocation=1, amount=SuMinutes(10), key="d1")]
    batch = [SubmittedRequest(request, START, 0) for request in requests]
    stale = TransactionData(
        allocations=contents(one)[2], ids=NewIds(entries=range(900_001, 902_000))
    )
    for submitted in batch:
        apply(stale, submitted, Policy())
    granted(two, requests[-1])
    with pytest.raises(Contention), one.transaction() as transaction:
        transaction.load(lock_set_of(batch))
        transaction.write(stale)
    assert granted(one, *requests)[-1].again
    assert Audit(one).verify().findings == ()
