"""Order of reports: late, repeated or reordered reports of a run lead to the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.bank.policy import Policy
from tests.bank.stories import StoryRunner, play_story

WORLD = """
    project college
    project physics under college
    open college/cpu 0..1000 with 1000000 shared yes
    open physics/cpu 0..100 with 1000000
    open physics/cpu:next 100..1000 with 1000000
"""

hours = st.integers(1, 200)


@st.composite
def life_of_a_run(draw: st.DrawFn, number: int = 1) -> list[str]:
    """Draw the reports about a run: start, changes of its limit, end; all with a key or all
    without.
    """
    who, start = draw(st.sampled_from(["alice", "bob"])), draw(st.integers(0, 199))
    messages = [f"hold {number} {who} physics/cpu {draw(hours)} start {start}"]
    messages += [
        f"adjust {number} {draw(hours)} until {500 + change}"
        for change in range(draw(st.integers(0, 2)))
    ]
    end = (
        f"charge {number} {who} physics/cpu {draw(hours)}"
        if draw(st.booleans())
        else f"release {number} {who} physics/cpu"
    )
    messages.append(f"{end} start {start} ended 300")
    if draw(st.booleans()):
        messages = [f"{message} key {number}.{place}" for place, message in enumerate(messages)]
    return messages


def after(messages: Sequence[str]) -> StoryRunner:
    story = play_story(WORLD)
    for message in messages:
        story.apply_line(message)
    story.check()
    return story


def sums(story: StoryRunner) -> dict[str, object]:
    """Return the final rows without the details that depend on the order."""
    rows = {
        allocation.id: (
            allocation.deposited,
            allocation.charged,
            allocation.held,
            allocation.remaining,
            allocation.overrun,
        )
        for allocation in story.work.allocations.values()
    }
    users = {
        pair: (drawn.charged, drawn.held)
        for pair, drawn in story.work.users.items()
        if drawn.charged or drawn.held
    }
    runs = {
        str(run.reported.run): (run.state, run.allocation, run.owner, run.charged, run.held)
        for run in story.work.runs.values()
    }
    return {"rows": rows, "users": users, "runs": runs}


def test_every_order_of_few_reports_gives_the_same_rows() -> None:
    life = [
        "hold 1 alice physics/cpu 9 key h",
        "adjust 1 12 key a",
        "charge 1 alice physics/cpu 7 key c",
    ]
    due = sums(after(life))
    for order in permutations(life * 2):
        assert sums(after(order)) == due


def any_order_and_up_to_five_copies(life: list[str], data: st.DataObject) -> None:
    copies = [message for message in life for _ in range(data.draw(st.integers(1, 5)))]
    reports = data.draw(st.permutations(copies))
    assert sums(after(reports)) == sums(after(life))


test_any_order_and_up_to_five_copies_give_the_same_ledger = given(life_of_a_run(), st.data())(
    any_order_and_up_to_five_copies
)


@pytest.mark.campaign
def test_campaign_of_report_orders(rounds: Callable[[int, int], int]) -> None:
    story = settings(max_examples=rounds(100_000, 2_000))(
        given(life_of_a_run(), st.data())(any_order_and_up_to_five_copies)
    )
    story()


@given(life_of_a_run(1), life_of_a_run(2), life_of_a_run(3), st.data())
def test_reports_of_two_runs_are_independent(
    one: list[str], two: list[str], three: list[str], data: st.DataObject
) -> None:
    reports = data.draw(st.permutations([*one, *two, *three, *one]))
    assert sums(after(reports)) == sums(after([*three, *two, *one]))


@given(life_of_a_run(), st.data())
def test_end_alone_gives_the_same_rows_as_all_reports(life: list[str], data: st.DataObject) -> None:
    kept = [message for message in life[:-1] if data.draw(st.booleans())]
    assert sums(after([*kept, life[-1]])) == sums(after(life))


@given(life_of_a_run(), st.data())
def test_lapse_between_reports_does_not_change_the_result(
    life: list[str], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(life)))
    story = after(life[:place])
    story.play("now 900")
    story.apply_line("lapse 1")
    for message in life[place:]:
        story.apply_line(message)
    story.check()
    assert sums(story) == sums(after(life))


@pytest.mark.parametrize("late", [True, False])
def test_refused_early_end_counts_when_repeated(late: bool) -> None:
    story = play_story(WORLD, Policy(late_charges=late))
    story.apply_line("charge 1 alice physics/cpu 7")
    story.apply_line("hold 1 alice physics/cpu 9")
    story.apply_line("charge 1 alice physics/cpu 7")
    story.play("remaining physics/cpu 999993")
    story.play(f"kept physics/cpu {0 if late else 1}")


def test_refused_early_end_counts_when_repeated_with_key() -> None:
    story = play_story(WORLD, Policy(late_charges=False))
    for message in (
        "charge 1 alice physics/cpu 7 key c",
        "hold 1 alice physics/cpu 9 key h",
        "charge 1 alice physics/cpu 7 key c",
    ):
        story.apply_line(message)
    story.play("remaining physics/cpu 999993")
