"""Locks between batches: only rows that a batch needs, and never in a cycle."""

from __future__ import annotations

import threading

import pytest

from fairbank.bank.lock_set import LockSet, lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Deposit, SetCap, SetMember, SubmittedRequest
from fairbank.bank.rules import Done, Outcome, apply
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Contention
from tests.contracts.concurrent_clients import is_waiting_for_lock, run_together
from tests.contracts.databases import Place
from tests.contracts.small_site import (
    ALICE,
    BOB,
    END,
    START,
    allocation,
    ask,
    contents,
    fill,
    granted,
    hold,
    job,
    late_charge,
    project,
)
from tests.support.conditions import wait_until


def test_batch_waits_for_locks_on_its_rows(sql_place: Place) -> None:
    """After the wait, the batch reads the values that the other one wrote."""
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> list[Outcome]:
        with one.transaction() as transaction:
            transaction.load(lock_set_of([SubmittedRequest(hold(1, 600), START, 0)]))
            begun.set()
            assert go_on.wait(30)
        return []

    def quick() -> list[Outcome]:
        assert begun.wait(30)
        go_on.set()
        return ask(two, Deposit(allocation=1, amount=SuMinutes(5)))

    assert all(isinstance(result, Done) for result in run_together(slow, quick))
    assert contents(one)[2][0].deposited == 1_005


def test_batches_on_other_allocations_do_not_wait(postgres_place: Place) -> None:
    """A batch does not wait for holds of a sibling project while the parent shares no credit, nor
    for a change of another year's allocation.
    """
    one, two = postgres_place.open(), postgres_place.open()
    granted(
        one,
        project("college", 100),
        project("physics", 200, parent=1),
        project("optics", 300, parent=1),
    )
    granted(one, allocation(1, 1_000), allocation(1, 500, start=END, end=2 * END, shared=True))
    granted(
        one, allocation(2, 1_000), allocation(3, 1_000), allocation(3, 500, start=END, end=2 * END)
    )
    physics, optics = hold(1, 600, chain=(2, 1)), hold(2, 600, chain=(3, 1))
    with one.transaction() as transaction:
        submitted = [
            SubmittedRequest(request, START, 0)
            for request in (
                physics,
                Deposit(allocation=1, amount=SuMinutes(5)),
                Deposit(allocation=5, amount=SuMinutes(5)),
            )
        ]
        work = transaction.load(lock_set_of(submitted))
        assert set(work.allocations) == {1, 3, 5}
        (held,) = granted(two, optics)
        assert held.allocation == 4
        transaction.write(work)


def test_charge_of_held_run_does_not_lock_shared_credit(postgres_place: Place) -> None:
    """Each report of an end names the project chain; only the allocation that carries the hold is
    locked.
    """
    one, two = postgres_place.open(), postgres_place.open()
    granted(
        one,
        project("college", 100),
        project("physics", 200, parent=1),
        allocation(1, 1_000, shared=True),
        allocation(2, 1_000),
    )
    granted(one, hold(1, 600, chain=(2, 1)))
    with one.transaction() as transaction:
        transaction.load(
            lock_set_of([SubmittedRequest(Deposit(allocation=1, amount=SuMinutes(5)), START, 0)])
        )
        (charged,) = granted(two, late_charge(1, 7, chain=(2, 1)))
        assert charged.allocation == 2


def test_allocation_opened_after_first_lock_is_not_locked(postgres_place: Place) -> None:
    """A new allocation may have a lower number than the locked ones, so two servers could
    deadlock.
    """
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    batch = [
        SubmittedRequest(hold(1, 5, project=2), START, 0),
        SubmittedRequest(hold(2, 5, resource="gpu"), START, 0),
    ]
    with two.transaction() as transaction:
        assert sorted(transaction.load(lock_set_of(batch)).allocations) == [2]
        (opened,) = granted(one, allocation(1, 100, resource="gpu"))
        work = transaction.load(lock_set_of(batch, registry=True))
        assert (sorted(work.allocations), work.registry is not None) == ([2], True)
        granted(one, Deposit(allocation=opened.allocation or 0, amount=SuMinutes(5)))
    assert all(isinstance(outcome, Done) for outcome in ask(two, *(item.request for item in batch)))


def test_cap_by_role_is_checked_when_applied(postgres_place: Place) -> None:
    """The role is removed while the request waits. The request is checked against the roles at that
    time, and written before they change again.
    """
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    granted(
        one,
        SetMember(project=1, uid=ALICE, role=Role.PI),
        SetMember(project=1, uid=BOB, role=Role.MEMBER),
    )
    taken, cap = (
        SetMember(project=1, uid=ALICE, role=None),
        SetCap(allocation=1, uid=BOB, cap=SuMinutes(5), project=1, by=ALICE),
    )
    begun = threading.Event()

    def first() -> list[Outcome]:
        with one.transaction() as transaction:
            work = transaction.load(lock_set_of([SubmittedRequest(taken, START, 0)]))
            begun.set()
            outcome = apply(work, SubmittedRequest(taken, START, 0), Policy())
            transaction.write(work)
            wait_until(
                lambda: is_waiting_for_lock(postgres_place),
                "the second server to wait for the registry",
            )
        return [outcome]

    def second() -> list[Outcome]:
        assert begun.wait(30)
        return ask(two, cap)

    gone, no = run_together(first, second)
    assert isinstance(gone, Done)
    assert isinstance(no, Refusal)
    assert no.reason is Reason.ROLE_ABOVE


def test_run_written_during_lock_wait_is_contention(postgres_place: Place) -> None:
    """The charge names another project than the one of the run. The retry finds the run, locks its
    allocation, and refuses.
    """
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    begun = threading.Event()

    def first() -> list[Outcome]:
        result = SubmittedRequest(hold(1, 10, project=2), START, 0)
        with one.transaction() as transaction:
            work = transaction.load(LockSet(allocations={1, 2}, runs={job(1)}, entries=2))
            begun.set()
            wait_until(
                lambda: is_waiting_for_lock(postgres_place), "the second server to wait for a lock"
            )
            outcome = apply(work, result, Policy())
            transaction.write(work)
        return [outcome]

    def second() -> list[Outcome]:
        assert begun.wait(30)
        request = late_charge(1, 7)
        with pytest.raises(Contention), two.transaction() as transaction:
            transaction.load(lock_set_of([SubmittedRequest(request, START, 0)]))
        return ask(two, request)

    held, no = run_together(first, second)
    assert (held.allocation, no.allocation) == (2, 2)
    assert isinstance(no, Refusal)
    assert no.reason is Reason.REPORT_MISMATCH
    assert (contents(one)[2][1].charged, contents(one)[2][1].held) == (0, 10)
