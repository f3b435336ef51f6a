"""Credit: deposits, withdrawals, transfers, credit limits, caps, and the largest sum."""

from __future__ import annotations

from fairbank.core.units import AMOUNT_MAX, SUM_MAX
from tests.bank.stories import play_story
from tests.bank.story_setups import PHYSICS


def test_deposit_and_withdrawal_change_the_balance() -> None:
    play_story(
        PHYSICS
        + """
        deposit physics/cpu 50          -> ok remaining 150 amount 50
        withdraw physics/cpu 120        -> ok remaining 30 amount 120
        hold 1 alice physics/cpu 20
        # what is held stays
        withdraw physics/cpu 11 -> NOT_ENOUGH requested 11 available 10 shortfall 1
        withdraw physics/cpu 10         -> ok remaining 0
        kept physics/cpu 0  # staff read the answer
        deposit chemistry/cpu 1         -> UNKNOWN_ALLOCATION
        withdraw chemistry/cpu 1        -> UNKNOWN_ALLOCATION
        """
    )


def test_transfer_is_two_entries_or_none() -> None:
    story = play_story("""
        project physics
        project optics
        open physics/cpu 0..1000 with 100
        open optics/cpu 0..1000
        open optics/gpu 0..1000
        hold 1 alice physics/cpu 30
        transfer 60 physics/cpu => optics/cpu -> ok remaining 10 amount 60 from physics/cpu
        remaining optics/cpu 60
        transfer 11 physics/cpu => optics/cpu           -> NOT_ENOUGH requested 11 available 10
        transfer 1 physics/cpu => optics/gpu            -> OTHER_RESOURCE
        transfer 1 physics/cpu => physics/cpu           -> SAME_ALLOCATION
        transfer 1 physics/cpu => chemistry/cpu         -> UNKNOWN_ALLOCATION
        transfer 1 chemistry/cpu => physics/cpu         -> UNKNOWN_ALLOCATION
        remaining physics/cpu 10
        remaining optics/cpu 60
        remaining optics/gpu 0
        """)
    out, into = story.work.entries[-2:]
    assert (out.kind.value, out.details, into.kind.value, into.details) == (
        "transfer-out",
        '{"to":2}',
        "transfer-in",
        '{"from":1}',
    )


# --- credit limits ---


def test_credit_limit_can_be_used_but_not_withdrawn() -> None:
    play_story("""
        project physics
        open physics/cpu 0..1000 with 10 limit 5        -> ok remaining 15
        open physics/cpu:next 1000..2000
        transfer 11 physics/cpu => physics/cpu:next     -> NOT_ENOUGH available 10
        withdraw physics/cpu 11                         -> NOT_ENOUGH available 10
        hold 1 alice physics/cpu 13                     -> ok remaining 2
        withdraw physics/cpu 1                          -> NOT_ENOUGH available 0
        hold 2 alice physics/cpu 3 -> INSUFFICIENT_CREDIT available 2 shortfall 1
        charge 1 13                                     -> ok remaining 2
        amend physics/cpu limit 2 -> LIMIT_IN_USE requested 3 available 2 shortfall 1
        amend physics/cpu limit 3                       -> ok remaining 0
        limit physics/cpu 3
        deposit physics/cpu 4                           -> ok remaining 4
        amend physics/cpu limit 0                       -> ok remaining 1
        withdraw physics/cpu 1                          -> ok remaining 0
        """)


def test_usage_is_written_off_only_beyond_the_credit_limit() -> None:
    play_story("""
        project physics
        open physics/cpu 0..1000 with 10 limit 5
        charge 1 alice physics/cpu 20   -> ok remaining 0 amount 15 written_off 5
        """)


# --- caps ---


def test_cap_limits_one_user() -> None:
    play_story(
        PHYSICS
        + """
        cap alice physics/cpu 30
        hold 1 alice physics/cpu 20     -> ok
        hold 2 alice physics/cpu 11     -> CAPPED requested 11 available 10 shortfall 1
        kept physics/cpu 1
        hold 2 bob physics/cpu 40       -> ok remaining 40
        hold 3 alice physics/cpu 10     -> ok remaining 30
        charge 1 5                      -> ok
        hold 4 alice physics/cpu 16     -> CAPPED requested 16 available 15
        cap alice physics/cpu none
        hold 4 alice physics/cpu 16     -> ok
        cap carol physics/cpu 0
        hold 5 carol physics/cpu 1m     -> CAPPED available 0
        cap carol chemistry/cpu 10      -> UNKNOWN_ALLOCATION
        """
    )


def test_cap_below_usage_only_stops_new_holds() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 50
        cap alice physics/cpu 20
        adjust 1 51                     -> CAPPED requested 1 available 0
        charge 1 60                     -> ok remaining 40          # it happened
        hold 2 alice physics/cpu 1      -> CAPPED available 0
        refund 1 50                     -> ok
        hold 2 alice physics/cpu 10     -> ok
        """
    )


def test_the_tighter_of_credit_and_cap_is_reported() -> None:
    play_story(
        PHYSICS
        + """
        cap alice physics/cpu 1
        hold 1 alice physics/cpu 101    -> CAPPED available 1
        cap alice physics/cpu 100
        hold 1 alice physics/cpu 101    -> INSUFFICIENT_CREDIT available 100
        hold 2 bob physics/cpu 60
        hold 1 alice physics/cpu 101    -> INSUFFICIENT_CREDIT available 40
        """
    )


# --- what the bank can count ---


def test_sums_beyond_the_maximum_are_refused() -> None:
    steps = SUM_MAX // AMOUNT_MAX
    deposits = "\n".join([f"deposit physics/cpu {AMOUNT_MAX}m"] * steps)
    rest = SUM_MAX - steps * AMOUNT_MAX
    play_story(f"""
        project physics
        open physics/cpu 0..1000
        {deposits}
        deposit physics/cpu {rest + 1}m         -> TOO_LARGE
        deposit physics/cpu {rest}m             -> ok
        amend physics/cpu limit 1m              -> TOO_LARGE
        withdraw physics/cpu 1m
        amend physics/cpu limit 1m              -> ok
        deposit physics/cpu 1m                  -> TOO_LARGE
        open physics/cpu:next 1000..2000 with {AMOUNT_MAX}m limit {AMOUNT_MAX}m
        transfer 1m physics/cpu:next => physics/cpu     -> TOO_LARGE
        """)


def test_charge_beyond_maximum_sum_is_refused_and_kept() -> None:
    """The refusal records the usage, with a hold and without one."""
    charges = "\n".join(
        f"charge {number} alice physics/cpu {AMOUNT_MAX}m" for number in range(1, 10)
    )
    play_story(
        f"{PHYSICS}\n policy record\n {charges}\n charge 10 alice physics/cpu {AMOUNT_MAX}m ->"
        " TOO_LARGE\n kept physics/cpu 1\npolicy observe\n hold 11 bob physics/cpu 1\n charge 11"
        f" {AMOUNT_MAX}m -> TOO_LARGE\n run 11 held\n kept physics/cpu 3"
    )


def test_old_overrun_does_not_allow_a_lower_credit_limit() -> None:
    play_story("""
        project physics
        open physics/cpu 0..1000 with 10 limit 10
        policy record
        charge 1 alice physics/cpu 30           -> ok remaining -10
        deposit physics/cpu 15                  -> ok remaining 5
        policy write_off
        amend physics/cpu limit 0               -> LIMIT_IN_USE requested 5 available 0
        amend physics/cpu limit 5               -> ok remaining 0
        """)
