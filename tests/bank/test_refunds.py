"""Refunds: at most the charge is refunded, and an undone refund is charged again."""

from __future__ import annotations

from fairbank.bank.refusals import Refusal, remedies, sentence
from fairbank.core.units import AMOUNT_MAX, SUM_MAX
from tests.bank.stories import play_story
from tests.bank.story_setups import PHYSICS


def test_refund_is_at_most_the_charge() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        refund 1 10                     -> WRONG_STATE          # still running
        charge 1 45
        refund 1 10                     -> ok remaining 65 amount 10
        refund 1 36                     -> REFUND_TOO_LARGE requested 36 available 35 shortfall 1
        used alice physics/cpu 35
        refund 1 all                    -> ok remaining 100 amount 35
        refund 1 all                    -> NOTHING_TO_REFUND
        refund 1 1m                     -> REFUND_TOO_LARGE available 0
        used alice physics/cpu 0
        charged physics/cpu 0
        run 1 charged charged 45 refunded 45
        hold 2 alice physics/cpu 5
        release 2
        refund 2 all                    -> WRONG_STATE
        refund 3 all                    -> NO_HOLD
        """
    )


def test_undone_refund_is_charged_again() -> None:
    story = play_story(
        PHYSICS
        + """
        cap alice physics/cpu 50
        hold 1 alice physics/cpu 45
        charge 1 45
        """
    )
    before = len(story.work.entries)
    story = play_story(
        PHYSICS
        + f"""
        cap alice physics/cpu 50
        hold 1 alice physics/cpu 45
        charge 1 45
        refund 1 10                     -> ok remaining 65 amount 10
        refund 1 5                      -> ok remaining 70 amount 5
        undo {before + 1} physics/cpu 1         -> ok remaining 60 amount 10
        undo {before + 1} physics/cpu 1         -> ALREADY_UNDONE
        used alice physics/cpu 40
        charged physics/cpu 40
        run 1 charged charged 45 refunded 5
        undo {before} physics/cpu 1             -> CANNOT_UNDO       # a charge
        undo 99 physics/cpu 1                   -> UNKNOWN_ENTRY
        undo {before + 2} physics/cpu 7         -> NO_HOLD
        hold 2 bob physics/cpu 58
        freeze physics/cpu
        undo {before + 2} physics/cpu 1         -> NOT_ENOUGH requested 5 available 2 shortfall 3
        release 2
        undo {before + 2} physics/cpu 1         -> ok remaining 55 amount 5
        run 1 charged charged 45 refunded 0
        """
    )
    assert story.work.entries[-1].details == f'{{"undoes":{before + 2}}}'


def test_undone_refund_is_charged_below_zero_if_policy_allows() -> None:
    play_story(
        PHYSICS
        + """
        policy record
        charge 1 alice physics/cpu 130  -> ok remaining -30
        refund 1 all                    -> ok remaining 100
        undo 5 physics/cpu 1                    -> ok remaining -30
        """
    )


def test_earlier_overrun_does_not_allow_another() -> None:
    story = play_story(
        PHYSICS
        + """
        policy record
        charge 1 alice physics/cpu 130  -> ok remaining -30
        refund 1 20                     -> ok remaining -10
        deposit physics/cpu 25
        policy write_off
        undo 5 physics/cpu 1                    -> NOT_ENOUGH requested 20 available 15 shortfall 5
        """
    )
    assert isinstance(story.outcome, Refusal)
    (help_,) = remedies(story.outcome)
    assert "fairbank deposit 1 5 --reason" in help_


def test_refund_can_always_be_undone_if_overrun_is_recorded() -> None:
    for policy in ("record", "observe"):
        play_story(
            PHYSICS
            + f"""
            policy {policy}
            charge 1 alice physics/cpu 20
            refund 1 all                    -> ok remaining 100
            hold 2 bob physics/cpu 100
            undo 5 physics/cpu 1                    -> ok remaining -20
            used alice physics/cpu 20
            charge 2 100                    -> ok remaining -20
            """
        )


def test_recharge_beyond_maximum_sum_is_refused() -> None:
    most = f"alice physics/cpu {AMOUNT_MAX}m"
    charges = "\n".join(f"charge {number} {most}" for number in range(2, 2 + SUM_MAX // AMOUNT_MAX))
    play_story(
        f"{PHYSICS}\n policy record\n charge 1 {most}\n refund 1 all\n {charges}\n undo 5"
        " physics/cpu 1 -> TOO_LARGE"
    )


def test_refund_without_a_charge_is_refused() -> None:
    for lines in ("charge 1 alice physics/cpu 0", "charge 1 alice physics/cpu 5\n refund 1 all"):
        story = play_story(PHYSICS + lines + "\n refund 1 all -> NOTHING_TO_REFUND")
        assert isinstance(story.outcome, Refusal)
        assert "nothing is left of the charge of the run: it was charged" in sentence(story.outcome)


def test_refund_goes_to_charged_allocation_after_its_end() -> None:
    play_story("""
        project physics
        open physics/cpu 0..100 with 50
        open physics/cpu:next 100..200 with 50
        hold 1 alice physics/cpu 20
        charge 1 20
        now 150
        expire physics/cpu
        refund 1 all                    -> ok remaining 50 from physics/cpu
        """)


def test_written_off_usage_is_not_refunded() -> None:
    play_story(
        PHYSICS + "charge 1 alice physics/cpu 130 -> ok amount 100 written_off 30\n refund 1 101 ->"
        " REFUND_TOO_LARGE available 100"
    )
