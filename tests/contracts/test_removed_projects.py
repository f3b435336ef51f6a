"""Removal and restoration of a project: it gets no new requests, and its ledger stays until it is
closed.
"""

from __future__ import annotations

import threading

import pytest

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import Reason, Refusal, remedies, sentence
from fairbank.bank.requests import (
    Amend,
    AmendProject,
    Deposit,
    Refund,
    RemoveProject,
    Request,
    SetMember,
    SubmittedRequest,
    Transfer,
    Withdraw,
)
from fairbank.bank.rules import Done, Outcome, apply
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Contention, Store
from tests.contracts.concurrent_clients import is_waiting_for_lock, run_together
from tests.contracts.databases import Place
from tests.contracts.project_requests import all_projects, reason_of, undo_request
from tests.contracts.small_site import (
    ALICE,
    END,
    START,
    allocation,
    ask,
    charge,
    granted,
    hold,
    job,
    late_charge,
    project,
)
from tests.support.conditions import wait_until


@pytest.mark.parametrize("came", [allocation(1), project("optics", 5003, parent=1)])
def test_removal_waits_for_new_allocation_or_child(sql_place: Place, came: Request) -> None:
    """On two servers: the request that comes second is refused."""
    one, two = sql_place.open(), sql_place.open()
    granted(one, project("physics", 5001), project("chemistry", 5002), allocation(2))
    begun = threading.Event()

    def first() -> list[Outcome]:
        request = SubmittedRequest(came, START, 0)
        with one.transaction() as transaction:
            work = transaction.load(lock_set_of([request]))
            begun.set()
            outcome = apply(work, request, Policy())
            if sql_place.is_postgres:
                wait_until(
                    lambda: is_waiting_for_lock(sql_place),
                    "the second server to wait for the registry",
                )
            transaction.write(work)
        return [outcome]

    def second() -> list[Outcome]:
        assert begun.wait(30)
        try:
            return ask(two, RemoveProject(project=1))
        except Contention:  # the write queue retries, as here
            return ask(two, RemoveProject(project=1))

    request, no = run_together(first, second)
    assert isinstance(request, Done)
    assert reason_of(no) is Reason.PROJECT_IN_USE
    assert not any(row.removed for row in all_projects(one))


def test_new_credit_waits_for_removal_of_project(sql_place: Place) -> None:
    """On two servers: the deposit that comes second is refused."""
    one, two = sql_place.open(), sql_place.open()
    granted(one, project("physics", 5001), project("chemistry", 5002), allocation(1, end=2_000))
    begun = threading.Event()

    def first() -> list[Outcome]:
        removal = SubmittedRequest(RemoveProject(project=1), Instant(2_000), 0)
        with one.transaction() as transaction:
            work = transaction.load(lock_set_of([removal]))
            begun.set()
            outcome = apply(work, removal, Policy())
            if sql_place.is_postgres:
                wait_until(
                    lambda: is_waiting_for_lock(sql_place), "the deposit to wait for the allocation"
                )
            transaction.write(work)
        return [outcome]

    def second() -> list[Outcome]:
        assert begun.wait(30)
        return ask(two, Deposit(allocation=1, amount=SuMinutes(60)), at=2_000)

    removed, no = run_together(first, second)
    assert isinstance(removed, Done)
    assert reason_of(no) is Reason.PROJECT_REMOVED


def test_project_with_children_cannot_be_removed(store: Store) -> None:
    granted(
        store,
        project("college", 5001),
        project("physics", 5002, parent=1),
        project("optics", 5003, parent=1),
    )
    no = ask(store, RemoveProject(project=1))[0]
    assert isinstance(no, Refusal)
    assert (
        sentence(no)
        == "the project is still in use: its child projects are 2 (physics), 3 (optics)."
    )
    assert (
        "fairbank project remove PROJECT; or fairbank project set PROJECT --no-parent"
        in remedies(no)[0]
    )
    granted(
        store, RemoveProject(project=2), AmendProject(project=3, parent=0), RemoveProject(project=1)
    )
    batch = ask(
        store,
        AmendProject(project=1, restore=True),
        AmendProject(project=3, parent=1),
        RemoveProject(project=1),
    )
    assert reason_of(batch[2]) is Reason.PROJECT_IN_USE
    assert not Audit(store).verify().findings


def test_removal_loads_children_without_changing_the_lock_set(store: Store) -> None:
    granted(
        store,
        project("college", 5001),
        project("physics", 5002, parent=1),
        project("optics", 5003, parent=1),
        RemoveProject(project=2),
    )
    granted(store, allocation(1))
    request = SubmittedRequest(RemoveProject(project=1), START, 0)
    needs = lock_set_of([request])
    with store.transaction() as transaction:
        work = transaction.load(needs)
    assert (sorted(work.projects), sorted(work.allocations)) == ([1, 3], [1])
    assert needs == lock_set_of([request])


def test_project_under_removed_parent_cannot_be_restored(store: Store) -> None:
    granted(
        store,
        project("college", 5001),
        project("physics", 5002, parent=1),
        RemoveProject(project=2),
        RemoveProject(project=1),
    )
    no = ask(store, AmendProject(project=2, restore=True))[0]
    assert isinstance(no, Refusal)
    assert sentence(no) == "the project was removed: project 1, the parent of project 2."
    assert remedies(no) == ("restore it first, by staff: fairbank project set 1 --restore",)
    granted(store, AmendProject(project=2, parent=0, restore=True))
    granted(
        store,
        RemoveProject(project=2),
        AmendProject(project=1, restore=True),
        AmendProject(project=2, parent=1, restore=True),
    )
    assert [row.removed for row in all_projects(store)] == [False, False]


def test_removed_project_gets_no_credit_but_its_runs_are_closed(over: Store) -> None:
    """Late ends are charged, and refunds are returned; the remaining credit expires."""
    granted(over, project("optics", 5003), allocation(3))
    out = granted(over, Withdraw(allocation=1, amount=SuMinutes(5)))
    limit = Amend(allocation=1, project=1, resource="cpu", credit_limit=SuMinutes(100))
    granted(over, RemoveProject(project=1), at=2_000)
    move = Transfer(source=2, target=1, amount=SuMinutes(5))
    for request in (
        Deposit(allocation=1, amount=SuMinutes(5)),
        limit,
        move,
        undo_request(over, out[0].entry),
    ):
        no = ask(over, request, at=2_000)[0]
        assert reason_of(no) is Reason.PROJECT_REMOVED
        assert isinstance(no, Refusal)
        assert remedies(no) == ("restore it first, by staff: fairbank project set 1 --restore",)
    granted(over, late_charge(2, 10), Refund(run=job(1), amount=SuMinutes(5)), at=2_000)
    granted(over, Withdraw(allocation=1, amount=SuMinutes(5)), at=2_000)
    granted(
        over,
        AmendProject(project=1, restore=True),
        Deposit(allocation=1, amount=SuMinutes(5)),
        at=2_000,
    )
    assert not Audit(over).verify().findings


def test_project_in_use_cannot_be_removed(over: Store) -> None:
    assert reason_of(ask(over, RemoveProject(project=1), at=1_999)[0]) is Reason.PROJECT_IN_USE
    granted(over, hold(2, 60, run=job(2)))
    assert reason_of(ask(over, RemoveProject(project=1), at=2_000)[0]) is Reason.PROJECT_IN_USE
    no = ask(over, RemoveProject(project=1), at=2_000)[0]
    assert isinstance(no, Refusal)
    assert (sentence(no), remedies(no)) == (
        "the project is still in use: allocation 1 is in use by open runs.",
        ("let its runs end first: fairbank jobs -a -A ACCOUNT",),
    )
    granted(over, charge(2, 1, run=job(2)))
    granted(over, allocation(1, start=5_000), at=2_000)
    assert (
        reason_of(ask(over, RemoveProject(project=1), at=2_000)[0]) is Reason.PROJECT_IN_USE
    )  # one is planned
    assert reason_of(ask(over, RemoveProject(project=99))[0]) is Reason.UNKNOWN_PROJECT


def test_removed_project_is_inactive_and_its_names_stay_reserved(over: Store) -> None:
    granted(over, RemoveProject(project=1), at=2_000)
    assert [row.removed for row in all_projects(over)] == [True, False]
    assert [row.id for row in all_projects(over, removed=False)] == [2]
    assert [row.id for row in all_projects(over, removed=True)] == [1]
    with over.reading() as reader:
        assert reader.memberships(ALICE) == []
    longer = Amend(
        allocation=1, project=1, resource="cpu", event=AllocationEvent.REOPEN, end=Instant(END)
    )
    for request in (
        allocation(1, start=3_000),
        longer,
        SetMember(project=1, uid=7, role=Role.MEMBER),
    ):
        assert reason_of(ask(over, request, at=2_000)[0]) is Reason.PROJECT_REMOVED
    for names in (
        {"name": "physics", "number": 1},
        {"name": "p", "number": 5001},
        {"name": "physics", "number": 5001},
    ):
        no = ask(over, project(**names))[0]  # type: ignore[arg-type]
        assert isinstance(no, Refusal)
        assert "project 1, which was removed, has" in sentence(no)
    assert reason_of(ask(over, project("child", 7, parent=1))[0]) is Reason.PROJECT_REMOVED
    assert granted(over, RemoveProject(project=1), at=2_000)[0].again
    assert not Audit(over).verify().findings


def test_restored_project_keeps_its_data(over: Store) -> None:
    before = all_projects(over)
    granted(over, RemoveProject(project=1), at=2_000)
    granted(over, AmendProject(project=1, restore=True), at=2_000)
    assert all_projects(over) == before
    with over.reading() as reader:
        assert [membership.project for membership in reader.memberships(ALICE)] == [1]
    granted(over, allocation(1, start=3_000), at=2_000)
    assert not Audit(over).verify().findings


def test_project_is_removed_in_batch_that_ends_its_allocation(store: Store) -> None:
    granted(store, project("physics", 5001))
    granted(store, allocation(1))
    end = Amend(allocation=1, project=1, resource="cpu", event=AllocationEvent.END)
    granted(store, end, RemoveProject(project=1), at=START + 10)
    assert all_projects(store)[0].removed


def test_changes_of_restored_project_can_be_undone(over: Store) -> None:
    """Its former terms could extend the period, and its former roles add members."""
    output = granted(
        over,
        Amend(allocation=1, project=1, resource="cpu", end=Instant(1_900)),
        SetMember(project=1, uid=7, role=Role.MEMBER),
    )
    undone = [undo_request(over, outcome.entry) for outcome in output]
    granted(over, RemoveProject(project=1), at=2_000)
    assert [reason_of(outcome) for outcome in ask(over, *undone, at=2_000)] == [
        Reason.PROJECT_REMOVED
    ] * 2
    granted(over, AmendProject(project=1, restore=True), at=2_000)
    assert [outcome.again for outcome in granted(over, *undone, at=2_000)] == [False, False]
    with over.reading() as reader:
        assert reader.memberships(7) == []
    assert not Audit(over).verify().findings
