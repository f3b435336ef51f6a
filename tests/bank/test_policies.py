"""Policy: usage beyond the credit, free states, and a bank that only observes."""

from __future__ import annotations

import pytest

from fairbank.bank.policy import Policy
from tests.bank.stories import play_story
from tests.bank.story_setups import PHYSICS


def test_usage_beyond_credit_is_written_off() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        hold 2 bob physics/cpu 40
        charge 1 70             -> ok remaining 0 amount 60 written_off 10
        charge 2 40             -> ok remaining 0 written_off 0
        """
    )


def test_usage_beyond_credit_is_recorded() -> None:
    story = play_story(
        PHYSICS
        + """
        policy record
        hold 1 alice physics/cpu 60
        hold 2 bob physics/cpu 40
        charge 1 70             -> ok remaining -10 amount 70 written_off 0
        hold 3 bob physics/cpu 1 -> INSUFFICIENT_CREDIT requested 1 available -10 shortfall 11
        charge 2 30             -> ok remaining 0
        charge 4 alice physics/cpu 5    -> ok remaining -5
        deposit physics/cpu 5   -> ok remaining 0
        """
    )
    assert story.allocation("physics/cpu").overrun == 10 * 60


def test_observing_bank_refuses_no_job() -> None:
    story = play_story(
        PHYSICS
        + """
        policy observe
        hold 1 alice physics/cpu 160    -> ok remaining -60
        freeze physics/cpu
        hold 2 bob physics/cpu 1        -> ok remaining -61
        adjust 2 11                     -> ok remaining -71
        charge 1 170                    -> ok remaining -81 written_off 0
        hold 3 bob physics/gpu 1        -> ok remaining 0 amount 0          # nothing to hold on
        release 2                       -> ok remaining -70
        policy enforce
        thaw physics/cpu
        hold 4 bob physics/cpu 1m       -> INSUFFICIENT_CREDIT
        charge 5 bob physics/cpu 1      -> ok remaining -70 amount 0 written_off 1
        """
    )
    assert story.allocation("physics/cpu").overrun == 81 * 60


@pytest.mark.parametrize("outcome", ["NODE_FAIL", "BOOT_FAIL"])
def test_policy_sets_the_free_states(outcome: str) -> None:
    assert outcome in Policy().free_states
    assert "FAILED" not in Policy().free_states


def test_observing_bank_records_refusals() -> None:
    play_story(
        PHYSICS
        + """
        policy observe
        hold 2 alice physics/cpu 1
        freeze physics/cpu
        hold 1 alice physics/cpu 1              -> ok
        kept physics/cpu 1
        adjust 2 2                              -> ok
        kept physics/cpu 2
        run 1 held held 1
        run 2 held held 2
        """
    )


def test_observing_bank_keeps_the_cost_of_a_job_without_allocation() -> None:
    play_story(
        PHYSICS
        + """
        policy observe
        hold 1 alice physics/gpu 1 key h        -> ok remaining 0 amount 0
        kept registry 1
        hold 1 alice physics/gpu 1 key h        -> again amount 0
        hold 1 alice physics/gpu 2 key h        -> KEY_REUSED
        kept registry 1
        adjust 1 alice physics/gpu 2 key a      -> ok amount 0          # noted: the job runs on
        kept registry 2
        charge 1 alice physics/gpu 1            -> NO_ALLOCATION requested 1
        kept registry 3
        open physics/gpu 0..1000 with 10
        policy enforce
        hold 1 alice physics/gpu 1 key h        -> again amount 0      # the first answer stands
        charge 1 alice physics/gpu 1            -> ok remaining 9
        """
    )


def test_observing_bank_lets_a_job_of_an_unknown_account_run() -> None:
    play_story("""
        hold 1 alice nosuch/cpu 1               -> UNKNOWN_PROJECT requested 1
        policy observe
        hold 2 alice nosuch/cpu 1               -> ok amount 0
        kept registry 2
        """)
