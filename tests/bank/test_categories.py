"""Categories of the settings: what each grants, to whom it may be granted by, and for how long."""

from __future__ import annotations

from fairbank.bank.policy import GrantCategory, GrantRange, Policy
from fairbank.bank.refusals import Refusal, sentence
from tests.bank.stories import StoryRunner, play_story
from tests.bank.story_requests import USERS

DAY = 86_400
STARTUP = GrantCategory(
    purpose="first steps",
    resources={"cpu": GrantRange(lowest=10, highest=100), "gpu": GrantRange()},
    longest_days=10,
)
PROJECT = """
project physics
project chemistry
"""


def refusal_message(runner: StoryRunner) -> str:
    assert isinstance(runner.outcome, Refusal)
    return sentence(runner.outcome)


def play(story: str, **categories: GrantCategory) -> StoryRunner:
    return play_story(PROJECT + story, Policy(categories=categories))


def test_without_a_table_every_word_is_a_category() -> None:
    play("open physics/cpu 0..1000 with 10000000")


def test_category_that_is_not_in_the_table_is_refused() -> None:
    runner = play(
        "open physics/cpu 0..1000 with 10 -> UNKNOWN_CATEGORY",
        research=GrantCategory(purpose="by the committee"),
        testing=GrantCategory(),
    )
    assert refusal_message(runner) == (
        "there is no such category: 'startup'; there are: research (by the committee); testing."
    )


def test_grant_outside_its_category_is_refused() -> None:
    story = """
    open physics/cpu 0..1000 with 9             -> OUTSIDE_CATEGORY
    open physics/cpu 0..1000 with 101           -> OUTSIDE_CATEGORY
    open physics/cpu 0..1000 with 100 limit 1   -> OUTSIDE_CATEGORY
    open physics/disk 0..1000 with 50           -> OUTSIDE_CATEGORY
    open physics/cpu 0..864001 with 50          -> OUTSIDE_CATEGORY
    open physics/cpu 0..864000 with 90
    open physics/gpu 0..864000 with 5000000
    open chemistry/cpu 0..864000 with 100
    deposit physics/cpu 11                      -> OUTSIDE_CATEGORY
    amend physics/cpu limit 11                  -> OUTSIDE_CATEGORY
    amend physics/cpu period 0..864001          -> OUTSIDE_CATEGORY
    transfer 11 chemistry/cpu => physics/cpu    -> OUTSIDE_CATEGORY
    deposit physics/cpu 10
    """
    runner = play("", startup=STARTUP)
    messages = []
    for line in story.strip().splitlines():
        runner.play(line)
        if "OUTSIDE" in line:
            messages.append(refusal_message(runner).partition(": ")[2])
    assert messages == [
        "startup grants at least 10 SU of cpu.",
        "startup grants at most 100 SU of cpu, and this would be 101 SU.",
        "startup grants at most 100 SU of cpu, and this would be 101 SU.",
        "startup grants cpu, gpu, not disk.",
        "startup grants at most 10 days.",
        "startup grants at most 100 SU of cpu, and this would be 101 SU.",
        "startup grants at most 100 SU of cpu, and this would be 101 SU.",
        "startup grants at most 10 days.",
        "startup grants at most 100 SU of cpu, and this would be 101 SU.",
    ]


def test_refusal_of_the_category_comes_before_the_one_of_the_period() -> None:
    """Another period would not help: the grant is refused there, too."""
    play(
        """
        open physics/cpu 0..500 with 100
        open physics/cpu 100..600 with 5        -> OUTSIDE_CATEGORY
        open physics/cpu 100..900000 with 50    -> OUTSIDE_CATEGORY
        open physics/cpu 100..600 with 50       -> OVERLAP
        open physics/cpu 600..900 with 50
        amend physics/cpu period 0..1000000      -> OUTSIDE_CATEGORY
        """,
        startup=STARTUP,
    )


def test_lowest_grant_counts_when_an_allocation_is_opened() -> None:
    """Withdrawals and transfers out are not checked: 8 SU are left, in a category from 10 on."""
    runner = play(
        """
        open physics/cpu 0..1000 with 100
        open chemistry/cpu 0..1000 with 10
        transfer 90 physics/cpu => chemistry/cpu
        withdraw physics/cpu 2
        """,
        startup=STARTUP,
    )
    assert runner.allocation("physics/cpu").deposited == 8 * 60


def test_only_the_granters_of_a_category_grant_in_it() -> None:
    bob = GrantCategory(granters=frozenset({USERS["bob"]}))
    runner = play(
        """
        open physics/cpu 0..1000 with 10 by alice       -> OUTSIDE_CATEGORY
        open physics/cpu 0..1000 with 10 by bob
        deposit physics/cpu 10 by alice                 -> OUTSIDE_CATEGORY
        amend physics/cpu period 0..2000 by alice       -> OUTSIDE_CATEGORY
        amend physics/cpu period 0..900 by alice
        open chemistry/cpu 0..1000 by bob
        transfer 5 physics/cpu => chemistry/cpu by alice
        deposit physics/cpu 10 by alice                 -> OUTSIDE_CATEGORY
        """,
        startup=bob,
    )
    assert refusal_message(runner).endswith(f"only users {USERS['bob']} grant startup.")


def test_what_is_there_stays_when_the_table_changes() -> None:
    """The allocation has 500 SU in a category that now grants 100, then in none."""
    runner = play("open physics/cpu 0..1000 with 500")  # entries 3 and 4
    for first, categories in (5, {"startup": STARTUP}), (9, {"other": STARTUP}):
        runner.policy = Policy(categories=categories)
        runner.play("freeze physics/cpu")
        runner.play("thaw physics/cpu")
        runner.play("withdraw physics/cpu 1")
        runner.play(f"undo {first + 2} physics/cpu")
    assert runner.allocation("physics/cpu").deposited == 500 * 60
