"""Undo of terms, caps and roles: only the current value, each change once."""

from __future__ import annotations

import pytest

from fairbank.bank.allocation import AllocationEvent, AllocationState
from fairbank.bank.project import Role
from fairbank.bank.refusals import Reason, Refusal, sentence
from fairbank.bank.requests import Amend, Expire, SetCap, SetMember
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Store
from tests.contracts.small_site import ALICE, BOB, CAROL, END, START, ask, granted, hold
from tests.contracts.undo_requests import (
    TEN,
    amend_allocation,
    findings_of,
    open_allocations,
    reason_of,
    row_of,
    undo_request,
)


def test_undo_restores_unchanged_terms(store: Store) -> None:
    open_allocations(store)
    first = amend_allocation(store, credit_limit=TEN)
    second = amend_allocation(store, shared=True)
    (no,) = ask(store, undo_request(store, first))
    assert isinstance(no, Refusal)
    assert no.reason is Reason.CHANGED_SINCE
    assert f"entry {second} changed it after entry {first}" in sentence(no)
    granted(store, undo_request(store, second))
    assert reason_of(store, undo_request(store, second)) is Reason.ALREADY_UNDONE
    granted(store, undo_request(store, first))
    assert (row_of(store).terms.credit_limit, row_of(store).terms.shared) == (0, False)
    assert findings_of(store) == []


def test_undo_restores_unchanged_cap(store: Store) -> None:
    open_allocations(store)
    first = granted(store, capped(10))[0].entry
    second = granted(store, capped(20))[0].entry
    granted(store, SetCap(allocation=1, uid=BOB, cap=TEN), SetCap(allocation=2, uid=ALICE, cap=TEN))
    assert reason_of(store, undo_request(store, first)) is Reason.CHANGED_SINCE
    granted(store, undo_request(store, second))
    assert cap_of(store) == 10
    granted(store, undo_request(store, first))
    assert cap_of(store) is None
    assert findings_of(store) == []


def test_undo_restores_unchanged_role(store: Store) -> None:
    """Roles are granted, changed and removed, in each project separately."""
    open_allocations(store)
    given, changed, elsewhere = (
        granted(store, SetMember(project=project_, uid=ALICE, role=role))[0].entry
        for project_, role in ((1, Role.MEMBER), (1, Role.COORDINATOR), (2, Role.PI))
    )
    taken = granted(store, SetMember(project=1, uid=ALICE, role=None))[0].entry
    assert reason_of(store, undo_request(store, changed)) is Reason.CHANGED_SINCE
    granted(store, undo_request(store, taken))
    assert roles_of(store) == {1: Role.COORDINATOR, 2: Role.PI}
    granted(store, undo_request(store, changed), undo_request(store, elsewhere))
    assert roles_of(store) == {1: Role.MEMBER}
    assert reason_of(store, undo_request(store, taken)) is Reason.ALREADY_UNDONE
    (again,) = granted(store, undo_request(store, given))
    assert roles_of(store) == {}
    granted(store, undo_request(store, again.entry))
    assert roles_of(store) == {1: Role.MEMBER}
    assert findings_of(store) == []


def test_undo_of_role_needs_permission_to_grant_it(store: Store) -> None:
    open_allocations(store)
    granted(
        store,
        SetMember(project=1, uid=BOB, role=Role.COORDINATOR),
        SetMember(project=1, uid=CAROL, role=Role.PI),
    )
    (slip,) = granted(store, SetMember(project=1, uid=ALICE, role=Role.COORDINATOR))
    assert reason_of(store, undo_request(store, slip.entry, by=BOB)) is Reason.ROLE_ABOVE
    granted(store, undo_request(store, slip.entry, by=CAROL))
    (cap,) = granted(store, SetCap(allocation=1, uid=CAROL, cap=TEN))
    assert reason_of(store, undo_request(store, cap.entry, by=BOB)) is Reason.ROLE_ABOVE


def capped(cap: int) -> SetCap:
    return SetCap(allocation=1, uid=ALICE, cap=SuMinutes(cap))


def cap_of(store: Store) -> int | None:
    with store.reading() as reader:
        return reader.users(frozenset({1}), ALICE)[0].sums.cap


def roles_of(store: Store) -> dict[int, Role]:
    with store.reading() as reader:
        return {membership.project: membership.role for membership in reader.memberships(ALICE)}


def test_undo_of_a_cap_does_not_undo_the_same_cap_set_again(store: Store) -> None:
    open_allocations(store)
    first = granted(store, capped(600))[0].entry
    granted(store, undo_request(store, first))
    second = granted(store, capped(600))[0].entry
    assert reason_of(store, undo_request(store, first)) is Reason.ALREADY_UNDONE
    redone = granted(store, undo_request(store, second))[0].entry
    granted(store, undo_request(store, redone))
    assert cap_of(store) == 600
    assert reason_of(store, undo_request(store, second)) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_refused_undo_names_the_later_entry(store: Store) -> None:
    """After an undo to the first of three caps, that cap is the current one; the undo of the second
    prevents that the third is restored.
    """
    open_allocations(store)
    _, second, third = (granted(store, capped(cap))[0].entry for cap in (10, 20, 30))
    back = granted(store, undo_request(store, third))[0].entry
    further = granted(store, undo_request(store, second))[0].entry
    (no,) = ask(store, undo_request(store, back))
    assert isinstance(no, Refusal)
    assert f"entry {further} changed it after entry {back}" in sentence(no)
    granted(store, undo_request(store, further), undo_request(store, back))
    assert cap_of(store) == 30
    assert findings_of(store) == []


def test_unchanged_terms_can_be_undone_once(store: Store) -> None:
    open_allocations(store)
    number = amend_allocation(store, shared=False)
    assert isinstance(
        ask(store, undo_request(store, number), undo_request(store, number))[1], Refusal
    )
    assert reason_of(store, undo_request(store, number)) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_undo_of_terms_is_refused_if_the_same_terms_were_set_again(store: Store) -> None:
    open_allocations(store)
    first = amend_allocation(store, credit_limit=TEN)
    second = amend_allocation(store, credit_limit=SuMinutes(20))
    third = amend_allocation(store, credit_limit=TEN)
    assert reason_of(store, undo_request(store, first)) is Reason.CHANGED_SINCE
    granted(
        store, undo_request(store, third), undo_request(store, second), undo_request(store, first)
    )
    assert row_of(store).terms.credit_limit == 0
    assert findings_of(store) == []


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_undo_of_period_end_in_the_past_reactivates_allocation(
    store: Store, swept: bool, frozen: bool
) -> None:
    open_allocations(store)
    if frozen:
        amend_allocation(store, event=AllocationEvent.FREEZE)
    later = START + 100
    (slip,) = granted(
        store, Amend(allocation=1, project=1, resource="cpu", end=Instant(START + 50)), at=later
    )
    if swept:
        assert (
            isinstance(ask(store, Expire(allocation=1), at=later)[0], Refusal) == frozen
        )  # a freeze outlives the end
    assert isinstance(ask(store, hold(1, 10, start=later), at=later)[0], Refusal)
    granted(store, undo_request(store, slip.entry), at=later)
    row = row_of(store)
    assert (row.terms.end, row.state) == (
        END,
        AllocationState.FROZEN if frozen else AllocationState.ACTIVE,
    )
    assert isinstance(ask(store, hold(1, 10, start=later), at=later)[0], Refusal) == frozen
    assert reason_of(store, undo_request(store, slip.entry), at=later) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_expiry_cannot_be_undone(store: Store) -> None:
    open_allocations(store)
    limited = amend_allocation(store, credit_limit=TEN)
    (swept,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, undo_request(store, swept.entry), at=END) is Reason.ALLOCATION_EXPIRED
    granted(store, undo_request(store, limited), at=END)
    (again,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, undo_request(store, again.entry), at=END) is Reason.ALLOCATION_EXPIRED
    assert row_of(store).terms.credit_limit == 0
    assert findings_of(store) == []
