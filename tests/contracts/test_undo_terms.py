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
from tests.contracts.site import ALICE, BOB, CAROL, END, START, ask, granted, hold
from tests.contracts.undo_requests import (
    TEN,
    amended,
    findings_of,
    opened,
    reason_of,
    row_of,
    undoing,
)


def test_terms_are_put_back_while_they_stand(store: Store) -> None:
    opened(store)
    first = amended(store, credit_limit=TEN)
    second = amended(store, shared=True)
    (no,) = ask(store, undoing(store, first))
    assert isinstance(no, Refusal)
    assert no.reason is Reason.CHANGED_SINCE
    assert f"entry {second} changed it after entry {first}" in sentence(no)
    granted(store, undoing(store, second))
    assert reason_of(store, undoing(store, second)) is Reason.ALREADY_UNDONE
    granted(store, undoing(store, first))
    assert (row_of(store).credit_limit, row_of(store).shared) == (0, False)
    assert findings_of(store) == []


def test_a_cap_is_put_back_while_it_stands(store: Store) -> None:
    opened(store)
    first = granted(store, capped(10))[0].entry
    second = granted(store, capped(20))[0].entry
    granted(store, SetCap(allocation=1, uid=BOB, cap=TEN), SetCap(allocation=2, uid=ALICE, cap=TEN))
    assert reason_of(store, undoing(store, first)) is Reason.CHANGED_SINCE
    granted(store, undoing(store, second))
    assert cap_of(store) == 10
    granted(store, undoing(store, first))
    assert cap_of(store) is None
    assert findings_of(store) == []


def test_a_role_is_put_back_while_it_stands(store: Store) -> None:
    """Roles are granted, changed and removed, in each project separately."""
    opened(store)
    given, changed, elsewhere = (
        granted(store, SetMember(project=project_, uid=ALICE, role=role))[0].entry
        for project_, role in ((1, Role.MEMBER), (1, Role.COORDINATOR), (2, Role.PI))
    )
    taken = granted(store, SetMember(project=1, uid=ALICE, role=None))[0].entry
    assert reason_of(store, undoing(store, changed)) is Reason.CHANGED_SINCE
    granted(store, undoing(store, taken))
    assert roles_of(store) == {1: Role.COORDINATOR, 2: Role.PI}
    granted(store, undoing(store, changed), undoing(store, elsewhere))
    assert roles_of(store) == {1: Role.MEMBER}
    assert reason_of(store, undoing(store, taken)) is Reason.ALREADY_UNDONE
    (again,) = granted(store, undoing(store, given))
    assert roles_of(store) == {}
    granted(store, undoing(store, again.entry))
    assert roles_of(store) == {1: Role.MEMBER}
    assert findings_of(store) == []


def test_undo_of_a_role_needs_the_right_to_give_it(store: Store) -> None:
    opened(store)
    granted(
        store,
        SetMember(project=1, uid=BOB, role=Role.COORDINATOR),
        SetMember(project=1, uid=CAROL, role=Role.PI),
    )
    (slip,) = granted(store, SetMember(project=1, uid=ALICE, role=Role.COORDINATOR))
    assert reason_of(store, undoing(store, slip.entry, by=BOB)) is Reason.ROLE_ABOVE
    granted(store, undoing(store, slip.entry, by=CAROL))
    (cap,) = granted(store, SetCap(allocation=1, uid=CAROL, cap=TEN))
    assert reason_of(store, undoing(store, cap.entry, by=BOB)) is Reason.ROLE_ABOVE


def capped(cap: int) -> SetCap:
    return SetCap(allocation=1, uid=ALICE, cap=SuMinutes(cap))


def cap_of(store: Store) -> int | None:
    with store.reading() as reader:
        return reader.users(frozenset({1}), ALICE)[0].sums.cap


def roles_of(store: Store) -> dict[int, Role]:
    with store.reading() as reader:
        return {each.project: each.role for each in reader.memberships(ALICE)}


def test_undo_of_a_cap_does_not_undo_the_same_cap_set_again(store: Store) -> None:
    opened(store)
    first = granted(store, capped(600))[0].entry
    granted(store, undoing(store, first))
    second = granted(store, capped(600))[0].entry
    assert reason_of(store, undoing(store, first)) is Reason.ALREADY_UNDONE
    redone = granted(store, undoing(store, second))[0].entry
    granted(store, undoing(store, redone))
    assert cap_of(store) == 600
    assert reason_of(store, undoing(store, second)) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_what_stands_against_it_came_after_it(store: Store) -> None:
    """After an undo to the first of three caps, that cap is the current one; the undo of the second
    prevents that the third is restored.
    """
    opened(store)
    _, second, third = (granted(store, capped(cap))[0].entry for cap in (10, 20, 30))
    back = granted(store, undoing(store, third))[0].entry
    further = granted(store, undoing(store, second))[0].entry
    (no,) = ask(store, undoing(store, back))
    assert isinstance(no, Refusal)
    assert f"entry {further} changed it after entry {back}" in sentence(no)
    granted(store, undoing(store, further), undoing(store, back))
    assert cap_of(store) == 30
    assert findings_of(store) == []


def test_terms_that_changed_nothing_are_taken_back_once_too(store: Store) -> None:
    opened(store)
    number = amended(store, shared=False)
    assert isinstance(ask(store, undoing(store, number), undoing(store, number))[1], Refusal)
    assert reason_of(store, undoing(store, number)) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_undo_of_terms_is_refused_if_the_same_terms_were_set_again(store: Store) -> None:
    opened(store)
    first = amended(store, credit_limit=TEN)
    second = amended(store, credit_limit=SuMinutes(20))
    third = amended(store, credit_limit=TEN)
    assert reason_of(store, undoing(store, first)) is Reason.CHANGED_SINCE
    granted(store, undoing(store, third), undoing(store, second), undoing(store, first))
    assert row_of(store).credit_limit == 0
    assert findings_of(store) == []


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_an_end_that_was_put_into_the_past_by_mistake_is_taken_back_whole(
    store: Store, swept: bool, frozen: bool
) -> None:
    opened(store)
    if frozen:
        amended(store, event=AllocationEvent.FREEZE)
    later = START + 100
    (slip,) = granted(
        store, Amend(allocation=1, project=1, resource="cpu", end=Instant(START + 50)), at=later
    )
    if swept:
        assert (
            isinstance(ask(store, Expire(allocation=1), at=later)[0], Refusal) == frozen
        )  # a freeze outlives the end
    assert isinstance(ask(store, hold(1, 10, start=later), at=later)[0], Refusal)
    granted(store, undoing(store, slip.entry), at=later)
    row = row_of(store)
    assert (row.end, row.state) == (
        END,
        AllocationState.FROZEN if frozen else AllocationState.ACTIVE,
    )
    assert isinstance(ask(store, hold(1, 10, start=later), at=later)[0], Refusal) == frozen
    assert reason_of(store, undoing(store, slip.entry), at=later) is Reason.ALREADY_UNDONE
    assert findings_of(store) == []


def test_what_the_clock_did_is_not_taken_back(store: Store) -> None:
    opened(store)
    limited = amended(store, credit_limit=TEN)
    (swept,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, undoing(store, swept.entry), at=END) is Reason.ALLOCATION_EXPIRED
    granted(store, undoing(store, limited), at=END)
    (again,) = granted(store, Expire(allocation=1), at=END)
    assert reason_of(store, undoing(store, again.entry), at=END) is Reason.ALLOCATION_EXPIRED
    assert row_of(store).credit_limit == 0
    assert findings_of(store) == []
