"""Changes of a project: its number stays, and with it its allocations; its names stay unique."""

from __future__ import annotations

from fairbank.bank.project import Project, Role
from fairbank.bank.refusals import Reason, sentence
from fairbank.bank.requests import AmendProject, RemoveProject, SetCap, SetMember
from fairbank.bank.rules import Done
from fairbank.core.units import SuMinutes
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from tests.contracts.project_requests import all_projects, reason_of, undo_request
from tests.contracts.small_site import allocation, ask, charge, granted, hold, job, project


def test_amended_project_keeps_its_number(over: Store) -> None:
    granted(over, AmendProject(project=1, gname="optics", parent=2))
    assert all_projects(over)[0] == Project(
        id=1, gname="optics", gid=5001, account="physics", parent=2
    )
    (again,) = granted(over, AmendProject(project=1, gname="optics"))
    assert (again.entry, again.again) == (0, True)
    granted(over, AmendProject(project=1, parent=0))
    assert all_projects(over)[0].parent is None
    assert reason_of(ask(over, AmendProject(project=2, account="physics"))[0]) is Reason.EXISTS
    assert reason_of(ask(over, AmendProject(project=1, account="chemistry"))[0]) is Reason.EXISTS
    assert reason_of(ask(over, AmendProject(project=1, parent=99))[0]) is Reason.UNKNOWN_PROJECT
    assert reason_of(ask(over, AmendProject(project=99, gid=1))[0]) is Reason.UNKNOWN_PROJECT
    assert not Audit(over).verify().findings


def test_gid_and_account_change_until_the_project_is_used(over: Store) -> None:
    """Later, ends of its runs may arrive late under the old account."""
    granted(
        over,
        AmendProject(project=2, gname="alchemy", gid=6002, account="alchemy"),
        project("chemistry", 5002),
    )
    assert [row.account for row in all_projects(over)] == ["physics", "alchemy", "chemistry"]
    granted(over, AmendProject(project=1, gid=5001, account="physics", restore=True))  # as they are
    for request in (AmendProject(project=1, gid=6001), AmendProject(project=1, account="optics")):
        assert reason_of(ask(over, request)[0]) is Reason.IDENTITY_LOCKED
    granted(over, AmendProject(project=1, gname="optics"))
    batch = ask(over, allocation(2), AmendProject(project=2, gid=7))
    assert reason_of(batch[1]) is Reason.IDENTITY_LOCKED
    granted(over, RemoveProject(project=1), at=2_000)
    assert (
        reason_of(ask(over, AmendProject(project=1, account="optics"), at=2_000)[0])
        is Reason.IDENTITY_LOCKED
    )
    assert not Audit(over).verify().findings


def test_run_on_credit_of_parent_locks_identity_of_project(store: Store) -> None:
    granted(
        store,
        project("college", 5001),
        project("physics", 5002, parent=1),
        allocation(1, shared=True),
        hold(1, 60, chain=(2, 1)),
    )
    assert (
        reason_of(ask(store, AmendProject(project=2, account="optics"))[0])
        is Reason.IDENTITY_LOCKED
    )
    no = ask(store, RemoveProject(project=2))[0]
    assert reason_of(no) is Reason.PROJECT_IN_USE
    assert f"run {job(1)} is open" in sentence(no)  # type: ignore[arg-type]
    both = ask(store, charge(1, 30, project=2), RemoveProject(project=2))
    assert [isinstance(outcome, Done) for outcome in both] == [True, True]
    assert not Audit(store).verify().findings


def test_freed_names_can_be_used_in_the_same_batch(store: Store) -> None:
    granted(store, project("physics", 5001))
    granted(
        store,
        AmendProject(project=1, gname="optics", gid=6001, account="optics"),
        project("physics", 5001),
    )
    assert [row.account for row in all_projects(store)] == ["optics", "physics"]


def test_parent_cycle_is_refused(store: Store) -> None:
    granted(
        store,
        project("college", 5001),
        project("physics", 5002, parent=1),
        project("optics", 5003, parent=2),
    )
    for parent in (1, 2, 3):
        assert (
            reason_of(ask(store, AmendProject(project=1, parent=parent))[0]) is Reason.PARENT_CYCLE
        )
    swapped = ask(
        store,
        AmendProject(project=3, parent=0),
        AmendProject(project=1, parent=3),
        AmendProject(project=3, parent=2),
    )
    assert [isinstance(row, Done) for row in swapped] == [True, True, False]
    assert reason_of(swapped[2]) is Reason.PARENT_CYCLE


def test_repeated_cap_or_role_leaves_first_undoable(over: Store) -> None:
    cap, role = (
        SetCap(allocation=1, uid=7, cap=SuMinutes(5)),
        SetMember(project=1, uid=7, role=Role.MEMBER),
    )
    output = granted(over, cap, role)
    assert [(outcome.entry, outcome.again) for outcome in granted(over, cap, role)] == [
        (0, True),
        (0, True),
    ]
    assert [
        outcome.again
        for outcome in granted(over, *(undo_request(over, item.entry) for item in output))
    ] == [False, False]
    assert [outcome.again for outcome in granted(over, cap, role)] == [False, False]
    assert not Audit(over).verify().findings
