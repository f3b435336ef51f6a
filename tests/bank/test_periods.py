"""Periods of allocations: no overlap for a project and resource; the state follows the clock."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.allocation import (
    Allocation,
    AllocationState,
    AllocationTerms,
    ShownState,
    overlapping,
)
from fairbank.core.time import Instant
from tests.bank.stories import play_story


@pytest.mark.parametrize(
    ("state", "before", "within", "after"),
    [
        (AllocationState.ACTIVE, ShownState.PLANNED, ShownState.ACTIVE, ShownState.ENDED),
        (AllocationState.FROZEN, ShownState.FROZEN, ShownState.FROZEN, ShownState.ENDED),
        (AllocationState.ENDED, ShownState.ENDED, ShownState.ENDED, ShownState.ENDED),
        (AllocationState.CANCELLED, ShownState.ENDED, ShownState.ENDED, ShownState.ENDED),
    ],
)
def test_state_of_allocation_follows_the_clock(
    state: AllocationState, before: ShownState, within: ShownState, after: ShownState
) -> None:
    row = msgspec.structs.replace(allocation(1, Instant(10), Instant(20)), state=state)
    assert [row.shown_state(at) for at in (9, 10, 19, 20)] == [before, within, within, after]


def test_no_two_allocations_of_one_project_and_resource_overlap() -> None:
    play_story("""
        project physics
        project optics
        open physics/cpu 100..200
        open physics/cpu:a 199..300     -> OVERLAP from physics/cpu
        open physics/cpu:a 0..101       -> OVERLAP from physics/cpu
        open physics/cpu:a 120..130     -> OVERLAP
        open physics/cpu:a 0..1000      -> OVERLAP
        open physics/cpu:a 200..300     -> ok
        open physics/cpu:b 0..100       -> ok
        open physics/gpu 100..200       -> ok
        open optics/cpu 100..200        -> ok
        now 200
        expire physics/cpu
        open physics/cpu:c 150..160     -> OVERLAP              # its past stays its own
        """)


def test_period_can_be_moved_into_free_time() -> None:
    story = play_story("""
        project physics
        open physics/cpu 100..200
        open physics/cpu:next 200..300
        amend physics/cpu period 100..201       -> OVERLAP from physics/cpu:next
        amend physics/cpu period 50..200        -> ok
        amend physics/cpu period 150..150       -> INVALID_PERIOD
        amend physics/cpu period 150..149       -> INVALID_PERIOD
        amend chemistry/cpu period 0..1         -> UNKNOWN_ALLOCATION
        amend physics/cpu:next period 250..300  -> ok
        amend physics/cpu period 50..250        -> ok
        """)
    assert (
        story.allocation("physics/cpu").terms.start,
        story.allocation("physics/cpu").terms.end,
    ) == (50, 250)


def test_allocation_ends_after_it_starts_and_belongs_to_a_project() -> None:
    play_story("""
        project physics
        open physics/cpu 100..100       -> INVALID_PERIOD
        open physics/cpu 100..99        -> INVALID_PERIOD
        open chemistry/cpu 100..200     -> UNKNOWN_PROJECT
        """)


instants = st.integers(0, 30).map(Instant)
periods = st.tuples(instants, instants).filter(lambda pair: pair[0] < pair[1])


def allocation(number: int, start: Instant, end: Instant) -> Allocation:
    return Allocation(
        id=number,
        terms=AllocationTerms(project=1, resource="cpu", category="startup", start=start, end=end),
    )


@given(periods, st.lists(periods, max_size=4))
def test_periods_overlap_if_they_share_an_instant(
    period: tuple[Instant, Instant], others: list[tuple[Instant, Instant]]
) -> None:
    rows = [allocation(number, *other) for number, other in enumerate(others)]
    shared = [
        row
        for row in rows
        if any(row.is_in_period(at) and period[0] <= at < period[1] for at in range(31))
    ]
    assert overlapping(*period, rows) == (shared[0] if shared else None)
