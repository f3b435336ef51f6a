"""Terms of allocations: states, events and periods."""

from __future__ import annotations

import pytest

from fairbank.bank.allocation import NEXT, AllocationEvent, AllocationState, ShownState, diagram
from fairbank.bank.refusals import Refusal, remedies, sentence
from tests.bank.stories import play_story
from tests.bank.story_setups import PHYSICS

S, E = AllocationState, AllocationEvent


def test_every_state_can_be_reached() -> None:
    reached = {S.ACTIVE}
    for _ in S:
        reached |= {after for (before, _), after in NEXT.items() if before in reached}
    assert reached == set(S) - {S.CANCELLED}  # recorded of an end that came before the start
    assert {event for _, event in NEXT} == set(E)


ROAD = {S.ACTIVE: "", S.FROZEN: "freeze physics/cpu", S.ENDED: "end physics/cpu"}


@pytest.mark.parametrize("state", ROAD)
@pytest.mark.parametrize("event", [event for event in E if event is not E.REMOVE])
def test_event_outside_the_table_is_refused(state: AllocationState, event: AllocationEvent) -> None:
    after = NEXT.get((state, event))
    story = play_story(
        f"{PHYSICS}\n now 400\n {ROAD[state]}\n {event.value} physics/cpu period 0..1000 ->"
        f" {'ok' if after else 'WRONG_STATE'}"
    )
    allocation = story.allocation("physics/cpu")
    assert allocation.state_at(400) is (after or state)


def test_diagram_shows_the_table() -> None:
    drawn = diagram().splitlines()
    assert drawn[:2] == ["stateDiagram-v2", "    [*] --> active"]
    assert "    frozen --> active: thaw" in drawn
    assert len(drawn) == 2 + len(NEXT)


def test_frozen_allocation_takes_no_new_hold() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 10
        freeze physics/cpu
        hold 2 alice physics/cpu 10     -> FROZEN requested 10 available 0
        kept physics/cpu 1
        charge 1 12                     -> ok remaining 88           # what runs is paid
        deposit physics/cpu 5           -> ok
        thaw physics/cpu
        hold 2 alice physics/cpu 10     -> ok
        """
    )


def test_ended_allocation_takes_no_new_hold() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 10
        now 400
        end physics/cpu
        hold 2 alice physics/cpu 10     -> NO_ALLOCATION
        kept registry 1
        charge 1 10                     -> ok remaining 90
        withdraw physics/cpu 40 -> ok remaining 50           # staff collect what was not used
        reopen physics/cpu              -> ALLOCATION_EXPIRED  # with its old end
        amend physics/cpu period 0..500 -> ALLOCATION_EXPIRED  # nor does it live on by that alone
        charge 3 alice physics/cpu 10 -> NO_ALLOCATION # as for a hold
        charge 4 alice physics/cpu 10 start 399 -> ok remaining 40
        reopen physics/cpu period 0..500
        hold 2 alice physics/cpu 10     -> ok remaining 30
        charge 3 alice physics/cpu 10   -> ok remaining 20
        """
    )


def test_answer_does_not_depend_on_time_of_report() -> None:
    """A longer period of an ended allocation does not make the answer depend on the time."""
    story = play_story("""
        project physics
        open physics/cpu 0..1000 with 100
        now 1200
        amend physics/cpu period 0..2000            -> ALLOCATION_EXPIRED
        expire physics/cpu
        amend physics/cpu period 0..2000            -> ALLOCATION_EXPIRED             # swept or not
        now 1500
        hold 1 alice physics/cpu 10                 -> NO_ALLOCATION
        now 2001
        hold 1 alice physics/cpu 10 start 1500      -> NO_ALLOCATION
        amend physics/cpu period 0..900             -> ok               # its past may be mended
        amend physics/cpu period 0..1000            -> ok
        hold 2 alice physics/cpu 10 start 999       -> ok
        amend physics/cpu limit 5                   -> ok
        amend physics/cpu period 0..2002            -> ALLOCATION_EXPIRED
        """)
    assert isinstance(story.outcome, Refusal)
    assert sentence(story.outcome).endswith(
        ": allocation 1 has ended, and another period alone does not reopen it."
    )
    assert remedies(story.outcome) == (
        "extend it, by staff: fairbank alloc reopen 1 --end ... --reason '...'",
    )


@pytest.mark.parametrize(
    "over",
    ["now 1000", "now 1000\n expire physics/cpu -> WRONG_STATE", "now 800\n end physics/cpu"],
)
def test_frozen_allocation_stays_frozen_after_its_period(over: str) -> None:
    story = play_story(f"""
        project physics
        open physics/cpu 0..1000 with 100
        now 500
        freeze physics/cpu
        hold 1 alice physics/cpu 10 start 400   -> FROZEN
        {over}
        hold 1 alice physics/cpu 10 start 400   -> FROZEN
        amend physics/cpu shared yes            -> ok
        hold 1 alice physics/cpu 10 start 400   -> FROZEN
        charge 2 alice physics/cpu 10 start 400 -> ok remaining 90 # usage happened, so it is paid
        freeze physics/cpu                      -> WRONG_STATE      # for it is over
        amend physics/cpu period 0..3000        -> ALLOCATION_EXPIRED
        thaw physics/cpu                        -> ok
        hold 1 alice physics/cpu 10 start 400   -> ok remaining 80
        hold 3 alice physics/cpu 10 start 1000  -> NO_ALLOCATION
        """)
    assert story.allocation("physics/cpu").shown_state(story.now) is ShownState.ENDED


def test_allocation_ended_before_its_start_pays_nothing() -> None:
    play_story("""
        project physics
        open physics/cpu 100..1000 with 100
        open physics/gpu 100..1000 with 100
        now 50
        end physics/cpu
        freeze physics/gpu
        end physics/gpu
        now 100
        hold 1 alice physics/cpu 10             -> NO_ALLOCATION
        hold 1 alice physics/gpu 10             -> NO_ALLOCATION
        now 101
        hold 1 alice physics/cpu 10 start 100   -> NO_ALLOCATION    # nor when it is reported later
        charge 2 alice physics/cpu 10 start 100 -> NO_ALLOCATION
        amend physics/cpu shared yes            -> ok
        hold 1 alice physics/cpu 10 start 100   -> NO_ALLOCATION
        reopen physics/cpu period 100..1000     -> ok
        hold 1 alice physics/cpu 10 start 100   -> ok
        """)


@pytest.mark.parametrize("recorded", ["", "expire physics/cpu"])
def test_period_of_one_second_pays_like_any_other(recorded: str) -> None:
    play_story(f"""
        project physics
        now 500
        open physics/cpu 100..101 with 100
        {recorded}
        charge 1 alice physics/cpu 10 start 100 -> ok remaining 90
        charge 2 alice physics/cpu 10 start 101 -> NO_ALLOCATION
        """)


def test_past_period_counts_as_ended_before_upkeep() -> None:
    story = play_story("""
        project physics
        open physics/cpu 100..200 with 100
        open physics/gpu 100..200
        now 200
        freeze physics/cpu                  -> WRONG_STATE
        amend physics/cpu period 100..300 -> ALLOCATION_EXPIRED # too late
        hold 1 alice physics/cpu 10         -> NO_ALLOCATION
        reopen physics/cpu period 100..300  -> ok
        hold 1 alice physics/cpu 10         -> ok
        end physics/gpu                     -> WRONG_STATE      # it is
        reopen physics/gpu                  -> ALLOCATION_EXPIRED
        """)
    assert isinstance(story.outcome, Refusal)
    assert sentence(story.outcome).endswith(": allocation 2 ended at 1970-01-01T00:03:20Z.")
    assert remedies(story.outcome) == (
        "extend it, by staff: fairbank alloc reopen 2 --end ... --reason '...'",
    )


def test_ending_an_allocation_ends_its_period() -> None:
    story = play_story("""
        project physics
        open physics/cpu 100..1000 with 100
        open physics/gpu 100..1000
        now 300
        hold 1 alice physics/cpu 10
        now 400
        freeze physics/cpu
        end physics/cpu                         # frozen or not
        charge 2 alice physics/cpu 5 start 399  -> ok remaining 85   # it started in time
        charge 3 alice physics/cpu 5 start 400  -> NO_ALLOCATION
        open physics/cpu:next 400..1000         -> ok           # so that another may follow
        now 50
        end physics/gpu                         # before it ever began
        open physics/gpu:next 101..1000         -> ok
        """)
    assert [
        (story.allocation(name).terms.start, story.allocation(name).terms.end)
        for name in ("physics/cpu", "physics/gpu")
    ] == [(100, 400), (100, 101)]


def test_upkeep_ends_only_past_periods() -> None:
    story = play_story("""
        project physics
        open physics/cpu 100..200
        now 199
        expire physics/cpu              -> NOT_DUE
        now 300
        expire physics/cpu
        expire physics/cpu              -> WRONG_STATE
        hold 1 alice physics/cpu 0 start 199    -> ok      # it started in time; its word comes late
        hold 2 alice physics/cpu 0 start 200    -> NO_ALLOCATION
        charge 3 alice physics/cpu 0 start 199  -> ok
        expire chemistry/cpu            -> UNKNOWN_ALLOCATION
        """)
    row = story.allocation("physics/cpu")
    assert (row.state, row.terms.end) == (S.ENDED, 200)


@pytest.mark.parametrize(
    ("road", "about"),
    [
        ("freeze physics/cpu\n freeze physics/cpu", "allocation 1 is frozen already"),
        (
            "end physics/cpu\n freeze physics/cpu",
            "allocation 1 is ended, and only planned or active allows freeze",
        ),
        ("reopen physics/cpu", "allocation 1 is active already"),
        (
            "amend physics/cpu period 150..149",
            "start 1970-01-01T00:02:30Z, end 1970-01-01T00:02:29Z",
        ),
        ("open physics/gpu 100..99", "start 1970-01-01T00:01:40Z, end 1970-01-01T00:01:39Z"),
    ],
)
def test_refusal_names_the_state_or_the_period(road: str, about: str) -> None:
    story = play_story(PHYSICS)
    for line in road.split("\n"):
        story.apply_line(line)
    assert isinstance(story.outcome, Refusal)
    assert sentence(story.outcome).endswith(f": {about}.")
