"""A project is changed, removed and brought back: its number stays, and by it its books; its names are nobody else's."""

from __future__ import annotations

import threading

import pytest

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.ledger import Done, Outcome, judge
from fairbank.bank.needs import needs_of
from fairbank.bank.policy import Policy
from fairbank.bank.project import Project, Role
from fairbank.bank.query import EntryQuery, Page, ProjectQuery
from fairbank.bank.refusal import Reason, Refusal, sentence
from fairbank.bank.wish import Amend, AmendProject, Asked, RemoveProject, SetCap, SetMember, Undo, undo_of
from fairbank.service.audit import Audit
from fairbank.store.contract import Contention, Store
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes
from tests.contracts.centre import ALICE, END, START, allocation, ask, charge, granted, hold, job, project
from tests.contracts.clerks import at_once, waiting
from tests.contracts.places import Place
from tests.support.waiting import wait_until


def _projects(store: Store, removed: bool | None = None) -> list[Project]:
    with store.reading() as reader:
        return reader.projects(ProjectQuery(removed=removed), Page())


def _reason(outcome: Outcome) -> Reason:
    assert isinstance(outcome, Refusal), outcome
    return outcome.reason


def _undoing(store: Store, number: int) -> Undo:
    with store.reading() as reader:
        (entry,) = reader.entries(EntryQuery(ids=frozenset({number})), Page())
    return undo_of(entry, project=1)


@pytest.fixture
def over(store: Store) -> Store:
    """Two projects; the allocation of the first is over, and a run of it was charged."""
    granted(store, project("physics", 5001), project("chemistry", 5002), SetMember(project=1, uid=ALICE, role=Role.PI))
    granted(store, allocation(1, end=2_000), hold(1, 60))
    granted(store, charge(1, 30))
    return store


def test_names_and_parent_change_and_the_number_stays(over: Store) -> None:
    granted(over, AmendProject(project=1, gname="optics", parent=2))
    assert _projects(over)[0] == Project(id=1, gname="optics", gid=5001, account="physics", parent=2)
    (again,) = granted(over, AmendProject(project=1, gname="optics"))
    assert (again.entry, again.again) == (0, True)
    granted(over, AmendProject(project=1, parent=0))
    assert _projects(over)[0].parent is None
    assert _reason(ask(over, AmendProject(project=2, account="physics"))[0]) is Reason.EXISTS
    assert _reason(ask(over, AmendProject(project=1, account="chemistry"))[0]) is Reason.EXISTS
    assert _reason(ask(over, AmendProject(project=1, parent=99))[0]) is Reason.UNKNOWN_PROJECT
    assert _reason(ask(over, AmendProject(project=99, gid=1))[0]) is Reason.UNKNOWN_PROJECT
    assert not Audit(over).verify().findings


def test_gid_and_account_change_until_the_project_is_used(over: Store) -> None:
    """Later the ends of its runs may come late, under the old account."""
    granted(over, AmendProject(project=2, gname="alchemy", gid=6002, account="alchemy"), project("chemistry", 5002))
    assert [each.account for each in _projects(over)] == ["physics", "alchemy", "chemistry"]
    granted(over, AmendProject(project=1, gid=5001, account="physics", restore=True))  # as they are
    for wish in (AmendProject(project=1, gid=6001), AmendProject(project=1, account="optics")):
        assert _reason(ask(over, wish)[0]) is Reason.NAMES_STAY
    granted(over, AmendProject(project=1, gname="optics"))
    batch = ask(over, allocation(2), AmendProject(project=2, gid=7))
    assert _reason(batch[1]) is Reason.NAMES_STAY
    granted(over, RemoveProject(project=1), at=2_000)
    assert _reason(ask(over, AmendProject(project=1, account="optics"), at=2_000)[0]) is Reason.NAMES_STAY
    assert not Audit(over).verify().findings


def test_a_run_on_the_credit_of_a_parent_uses_the_project_and_keeps_it(store: Store) -> None:
    granted(store, project("college", 5001), project("physics", 5002, parent=1), allocation(1, shared=True), hold(1, 60, line=(2, 1)))
    assert _reason(ask(store, AmendProject(project=2, account="optics"))[0]) is Reason.NAMES_STAY
    no = ask(store, RemoveProject(project=2))[0]
    assert _reason(no) is Reason.PROJECT_IN_USE
    assert f"run {job(1)} is open" in sentence(no)  # type: ignore[arg-type]
    both = ask(store, charge(1, 30), RemoveProject(project=2))
    assert [isinstance(each, Done) for each in both] == [True, True]
    assert not Audit(store).verify().findings


def test_names_that_are_given_up_are_taken_in_the_same_batch(store: Store) -> None:
    granted(store, project("physics", 5001))
    granted(store, AmendProject(project=1, gname="optics", gid=6001, account="optics"), project("physics", 5001))
    assert [each.account for each in _projects(store)] == ["optics", "physics"]


def test_no_project_is_above_itself(store: Store) -> None:
    granted(store, project("college", 5001), project("physics", 5002, parent=1), project("optics", 5003, parent=2))
    for parent in (1, 2, 3):
        assert _reason(ask(store, AmendProject(project=1, parent=parent))[0]) is Reason.OWN_PARENT
    swapped = ask(store, AmendProject(project=3, parent=0), AmendProject(project=1, parent=3), AmendProject(project=3, parent=2))
    assert [isinstance(each, Done) for each in swapped] == [True, True, False]
    assert _reason(swapped[2]) is Reason.OWN_PARENT


def test_no_project_is_removed_while_it_gets_an_allocation(sql_place: Place) -> None:
    """On two servers: whichever comes first, the other is refused."""
    one, two = sql_place.open(), sql_place.open()
    granted(one, project("physics", 5001), project("chemistry", 5002), allocation(2))
    begun = threading.Event()

    def first() -> list[Outcome]:
        opened = Asked(allocation(1), START, 0)
        with one.transaction() as transaction:
            work = transaction.load(needs_of([opened]))
            begun.set()
            outcome = judge(work, opened, Policy())
            if sql_place.is_postgres:
                wait_until(lambda: waiting(sql_place), "the second server to wait for the office")
            transaction.write(work)
        return [outcome]

    def second() -> list[Outcome]:
        assert begun.wait(30)
        try:
            return ask(two, RemoveProject(project=1))
        except Contention:  # the counter asks again, as here
            return ask(two, RemoveProject(project=1))

    opened, no = at_once(first, second)
    assert isinstance(opened, Done)
    assert _reason(no) is Reason.PROJECT_IN_USE
    assert [each.removed for each in _projects(one)] == [False, False]


def test_a_project_in_use_is_not_removed(over: Store) -> None:
    assert _reason(ask(over, RemoveProject(project=1), at=1_999)[0]) is Reason.PROJECT_IN_USE
    granted(over, hold(2, 60, run=job(2)))
    assert _reason(ask(over, RemoveProject(project=1), at=2_000)[0]) is Reason.PROJECT_IN_USE
    granted(over, charge(2, 1, run=job(2)))
    granted(over, allocation(1, start=5_000), at=2_000)
    assert _reason(ask(over, RemoveProject(project=1), at=2_000)[0]) is Reason.PROJECT_IN_USE  # one is planned
    assert _reason(ask(over, RemoveProject(project=99))[0]) is Reason.UNKNOWN_PROJECT


def test_a_removed_project_gets_nothing_more_and_nobody_gets_its_names(over: Store) -> None:
    granted(over, RemoveProject(project=1), at=2_000)
    assert [each.removed for each in _projects(over)] == [True, False]
    assert [each.id for each in _projects(over, removed=False)] == [2]
    assert [each.id for each in _projects(over, removed=True)] == [1]
    with over.reading() as reader:
        assert reader.memberships(ALICE) == []
    longer = Amend(allocation=1, project=1, resource="cpu", event=AllocationEvent.REOPEN, end=Instant(END))
    for wish in (allocation(1, start=3_000), longer, SetMember(project=1, uid=7, role=Role.MEMBER)):
        assert _reason(ask(over, wish, at=2_000)[0]) is Reason.PROJECT_REMOVED
    for names in ({"name": "physics", "number": 1}, {"name": "p", "number": 5001}, {"name": "physics", "number": 5001}):
        no = ask(over, project(**names))[0]  # type: ignore[arg-type]
        assert isinstance(no, Refusal)
        assert "project 1, which was removed, has" in (no.about or "")
    assert _reason(ask(over, project("child", 7, parent=1))[0]) is Reason.UNKNOWN_PROJECT
    assert granted(over, RemoveProject(project=1), at=2_000)[0].again
    assert not Audit(over).verify().findings


def test_it_is_brought_back_as_it_was(over: Store) -> None:
    before = _projects(over)
    granted(over, RemoveProject(project=1), at=2_000)
    granted(over, AmendProject(project=1, restore=True), at=2_000)
    assert _projects(over) == before
    with over.reading() as reader:
        assert [each.project for each in reader.memberships(ALICE)] == [1]
    granted(over, allocation(1, start=3_000), at=2_000)
    assert not Audit(over).verify().findings


def test_a_project_is_removed_in_the_batch_that_ends_its_credit(store: Store) -> None:
    granted(store, project("physics", 5001))
    granted(store, allocation(1))
    end = Amend(allocation=1, project=1, resource="cpu", event=AllocationEvent.END)
    granted(store, end, RemoveProject(project=1), at=START + 10)
    assert _projects(store)[0].removed


def test_what_was_said_of_a_removed_project_is_taken_back_once_it_is_there_again(over: Store) -> None:
    """Its terms of before might be time, and its roles of before members."""
    said = granted(over, Amend(allocation=1, project=1, resource="cpu", end=Instant(1_900)), SetMember(project=1, uid=7, role=Role.MEMBER))
    undone = [_undoing(over, each.entry) for each in said]
    granted(over, RemoveProject(project=1), at=2_000)
    assert [_reason(each) for each in ask(over, *undone, at=2_000)] == [Reason.PROJECT_REMOVED] * 2
    granted(over, AmendProject(project=1, restore=True), at=2_000)
    assert [each.again for each in granted(over, *undone, at=2_000)] == [False, False]
    with over.reading() as reader:
        assert reader.memberships(7) == []
    assert not Audit(over).verify().findings


def test_the_same_cap_or_role_again_leaves_the_first_to_be_undone(over: Store) -> None:
    cap, role = SetCap(allocation=1, uid=7, cap=SuMinutes(5)), SetMember(project=1, uid=7, role=Role.MEMBER)
    said = granted(over, cap, role)
    assert [(each.entry, each.again) for each in granted(over, cap, role)] == [(0, True), (0, True)]
    assert [each.again for each in granted(over, *(_undoing(over, each.entry) for each in said))] == [False, False]
    assert [each.again for each in granted(over, cap, role)] == [False, False]
    assert not Audit(over).verify().findings
