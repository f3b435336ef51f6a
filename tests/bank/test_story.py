"""The story language itself: a line that goes otherwise is named."""

from __future__ import annotations

import pytest

from fairbank.bank.refusals import Refusal
from tests.bank.story import tell

A_PROJECT = """
    project physics
    open physics/cpu 0..1000 with 100
"""


def test_example_story_passes() -> None:
    told = tell(
        A_PROJECT
        + """
        hold 1 alice physics/cpu 60           -> ok left 40
        hold 2 bob physics/cpu 60             -> INSUFFICIENT_CREDIT asked 60 left 40 short 20
        charge 1 45                           -> ok left 55
        left physics/cpu 55
        """
    )
    assert told.allocation("physics/cpu").charged == 45 * 60


@pytest.mark.parametrize(
    "line",
    [
        "hold 1 alice physics/cpu 60 -> INSUFFICIENT_CREDIT",
        "hold 1 alice physics/cpu 60 -> ok left 41",
        "hold 1 alice physics/cpu 101",
        "hold 1 alice physics/cpu 101 -> INSUFFICIENT_CREDIT short 2",
        "left physics/cpu 99",
        "used alice physics/cpu 1",
        "run 1 held",
        "kept physics/cpu 1",
        "dance physics/cpu",
    ],
)
def test_unexpected_outcome_names_its_line(line: str) -> None:
    with pytest.raises(AssertionError, match="line 4: "):
        tell(A_PROJECT + line)


def test_last_answer_is_available() -> None:
    assert isinstance(
        tell(A_PROJECT + "hold 1 alice physics/cpu 101 -> INSUFFICIENT_CREDIT").said, Refusal
    )
