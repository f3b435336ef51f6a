"""Language of the stories: a line with an unexpected outcome is named."""

from __future__ import annotations

import pytest

from fairbank.bank.refusals import Refusal
from tests.bank.stories import play_story

A_PROJECT = """
    project physics
    open physics/cpu 0..1000 with 100
"""


def test_example_story_passes() -> None:
    story = play_story(
        A_PROJECT
        + """
        hold 1 alice physics/cpu 60           -> ok remaining 40
        hold 2 bob physics/cpu 60 -> INSUFFICIENT_CREDIT requested 60 available 40 shortfall 20
        charge 1 45                           -> ok remaining 55
        remaining physics/cpu 55
        """
    )
    assert story.allocation("physics/cpu").charged == 45 * 60


@pytest.mark.parametrize(
    "line",
    [
        "hold 1 alice physics/cpu 60 -> INSUFFICIENT_CREDIT",
        "hold 1 alice physics/cpu 60 -> ok remaining 41",
        "hold 1 alice physics/cpu 101",
        "hold 1 alice physics/cpu 101 -> INSUFFICIENT_CREDIT shortfall 2",
        "remaining physics/cpu 99",
        "used alice physics/cpu 1",
        "run 1 held",
        "kept physics/cpu 1",
        "dance physics/cpu",
    ],
)
def test_unexpected_outcome_names_its_line(line: str) -> None:
    with pytest.raises(AssertionError, match="line 4: "):
        play_story(A_PROJECT + line)


def test_last_answer_is_available() -> None:
    assert isinstance(
        play_story(A_PROJECT + "hold 1 alice physics/cpu 101 -> INSUFFICIENT_CREDIT").outcome,
        Refusal,
    )
