"""Refused requests with a key: the same refusal again, or a free key if it may be granted later."""

from __future__ import annotations

import pytest

from tests.bank.beginnings import COLLEGE
from tests.bank.story import tell


def test_key_of_unpaid_usage_stays_free_until_it_is_charged() -> None:
    tell(
        COLLEGE
        + """
        charge 1 alice physics/gpu 1 key k      -> NO_ALLOCATION
        open physics/gpu 0..1000 with 100
        charge 1 alice physics/gpu 1 key k
        charge 1 alice physics/gpu 1 key k      -> again
        left physics/gpu 99
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
    told = tell(
        f"{COLLEGE}\n cap carol physics/cpu 5\n freeze college/cpu\n {line} key k -> {reason}"
    )
    first = told.said
    told.play("deposit physics/cpu 1000")
    told.play("cap carol physics/cpu none")
    told.play("thaw college/cpu")
    told.play("open physics/gpu 0..1000 with 100")
    told.play(f"{line} key k -> {reason}")
    assert told.said == first
    told.play(f"{line} key other")  # who asks anew is judged anew


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
    told = tell(f"{COLLEGE}\n amend college/cpu limit 0")
    before = len(told.work.entries)
    told.play(f"{line} -> {reason}")
    assert len(told.work.entries) == before
    told.play(f"{line} key k -> {reason}")
    first = told.said
    assert [entry.kind.value for entry in told.work.entries[before:]] == ["declined"]
    told.play("deposit physics/cpu 1000")
    told.play(f"{line} key k -> {reason}")
    assert told.said == first
    told.play("deposit physics/cpu 7 key k -> KEY_REUSED")


def test_end_before_its_hold_leaves_its_key_free() -> None:
    tell(
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
    tell(
        COLLEGE
        + """
        policy observe
        hold 1 alice physics/cpu 120 key h      -> ok left -40
        adjust 1 130 key a                      -> ok left -50
        kept physics/cpu 2
        hold 1 alice physics/cpu 120 key h      -> again left -40
        adjust 1 130 key a                      -> again left -50
        kept physics/cpu 2
        """
    )


def test_refused_report_keeps_its_refusal_after_price_change() -> None:
    tell(
        COLLEGE
        + """
        hold 1 alice physics/cpu 120 key h report start     -> INSUFFICIENT_CREDIT asked 120 left 80
        hold 1 alice physics/cpu 60 key h report start      -> INSUFFICIENT_CREDIT asked 120 left 80
        hold 1 alice physics/cpu 60 key i report start      -> ok
        """
    )
