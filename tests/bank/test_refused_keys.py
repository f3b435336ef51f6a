"""Refused requests with a key: the same refusal again, or a free key if it may be granted later."""

from __future__ import annotations

import pytest

from tests.bank.stories import play_story
from tests.bank.story_setups import COLLEGE


def test_key_of_unpaid_usage_stays_free_until_it_is_charged() -> None:
    play_story(
        COLLEGE
        + """
        charge 1 alice physics/gpu 1 key k      -> NO_ALLOCATION
        open physics/gpu 0..1000 with 100
        charge 1 alice physics/gpu 1 key k
        charge 1 alice physics/gpu 1 key k      -> again
        remaining physics/gpu 99
        """
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("hold 1 alice physics/cpu 120", "INSUFFICIENT_CREDIT"),
        ("hold 1 alice physics/gpu 1", "NO_ALLOCATION"),
        ("hold 1 carol physics/cpu 6 billing 3 seconds 7200", "CAPPED"),
        ("hold 1 alice college/cpu 6", "FROZEN"),
        ("adjust 9 120", "INSUFFICIENT_CREDIT"),
    ],
)
def test_repeated_job_request_gets_the_same_refusal(line: str, reason: str) -> None:
    story = play_story(
        f"{COLLEGE}\n cap carol physics/cpu 5\n freeze college/cpu\n {line} key k -> {reason}"
    )
    first = story.outcome
    story.play("deposit physics/cpu 1000")
    story.play("cap carol physics/cpu none")
    story.play("thaw college/cpu")
    story.play("open physics/gpu 0..1000 with 100")
    story.play(f"{line} key k -> {reason}")
    assert story.outcome == first
    story.play(f"{line} key other")  # who asks anew is judged anew


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("withdraw physics/cpu 120", "NOT_ENOUGH"),
        ("transfer 120 physics/cpu => college/cpu", "NOT_ENOUGH"),
        ("transfer 1 physics/cpu => physics/cpu", "SAME_ALLOCATION"),
        ("deposit chemistry/cpu 1", "UNKNOWN_ALLOCATION"),
        ("refund 8 11", "REFUND_TOO_LARGE"),
        ("refund 9 all", "WRONG_STATE"),
        ("open physics/cpu:next 500..1500", "OVERLAP"),
        ("open chemistry/cpu 0..1000", "UNKNOWN_PROJECT"),
        ("amend physics/cpu period 9..9", "INVALID_PERIOD"),
        ("thaw physics/cpu", "WRONG_STATE"),
        ("expire physics/cpu", "NOT_DUE"),
        ("project physics", "EXISTS"),
        ("member chemistry bob pi", "UNKNOWN_PROJECT"),
        ("hold 9 carol physics/cpu 10", "HOLD_EXISTS"),
    ],
)
def test_refusal_without_a_job_is_kept_for_its_key_only(line: str, reason: str) -> None:
    story = play_story(f"{COLLEGE}\n amend college/cpu limit 0")
    before = len(story.work.entries)
    story.play(f"{line} -> {reason}")
    assert len(story.work.entries) == before
    story.play(f"{line} key k -> {reason}")
    first = story.outcome
    assert [entry.kind.value for entry in story.work.entries[before:]] == ["declined"]
    story.play("deposit physics/cpu 1000")
    story.play(f"{line} key k -> {reason}")
    assert story.outcome == first
    story.play("deposit physics/cpu 7 key k -> KEY_REUSED")


def test_end_before_its_hold_leaves_its_key_free() -> None:
    play_story(
        COLLEGE
        + """
        policy no_late
        adjust 1 70 key a                       -> NO_HOLD
        charge 1 alice physics/cpu 50 key c     -> NO_HOLD
        refund 1 all key r                      -> NO_HOLD
        hold 1 alice physics/cpu 60 key h
        adjust 1 70 key a                       -> ok
        charge 1 alice physics/cpu 50 key c     -> ok
        refund 1 all key r                      -> ok
        """
    )


def test_key_refused_in_observing_bank_gets_the_granted_answer() -> None:
    play_story(
        COLLEGE
        + """
        policy observe
        hold 1 alice physics/cpu 120 key h      -> ok remaining -40
        adjust 1 130 key a                      -> ok remaining -50
        kept physics/cpu 2
        hold 1 alice physics/cpu 120 key h      -> again remaining -40
        adjust 1 130 key a                      -> again remaining -50
        kept physics/cpu 2
        """
    )


def test_refused_report_keeps_its_refusal_after_price_change() -> None:
    play_story(
        COLLEGE
        + """
        hold 1 alice physics/cpu 120 key h report start \
            -> INSUFFICIENT_CREDIT requested 120 available 80
        hold 1 alice physics/cpu 60 key h report start \
            -> INSUFFICIENT_CREDIT requested 120 available 80
        hold 1 alice physics/cpu 60 key i report start      -> ok
        """
    )
