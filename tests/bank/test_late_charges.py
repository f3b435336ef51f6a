"""Late charges of runs with a lapsed or missing hold, and the allocations that pay them."""

from __future__ import annotations

import msgspec

from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import apply
from tests.bank.stories import play_story
from tests.bank.story_setups import PHYSICS

# --- deadlines ---


def test_hold_without_further_reports_lapses() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        now 499
        lapse 1                         -> NOT_DUE
        now 500
        lapse 1                         -> ok remaining 100 amount 60
        lapse 1                         -> RUN_CLOSED
        run 1 lapsed held 0 charged 0
        used alice physics/cpu 0
        lapse 2                         -> NO_HOLD
        """
    )


def test_run_reported_after_its_lapse_is_charged() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        hold 2 alice physics/cpu 10 until 500
        now 500
        lapse 1
        lapse 2
        adjust 1 70                     -> RUN_CLOSED
        hold 1 alice physics/cpu 60     -> RUN_CLOSED
        charge 1 45                     -> ok remaining 55 from physics/cpu
        charge 1 45                     -> again
        release 2                       -> ok remaining 55 amount 0
        """
    )


def test_late_charge_may_exceed_the_remaining_credit() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        now 500
        lapse 1
        hold 2 bob physics/cpu 80
        charge 1 45                     -> ok remaining 0 amount 20 written_off 25
        run 1 charged charged 20 written_off 25
        charge 1 45                     -> again written_off 25
        charge 2 80                     -> ok remaining 0
        """
    )


# --- no hold ever came ---


def test_late_charge_goes_to_allocation_of_the_start() -> None:
    play_story("""
        project physics
        open physics/cpu 0..100 with 50
        open physics/cpu:next 100..200 with 50
        now 150
        expire physics/cpu
        charge 1 alice physics/cpu 20 start 90  -> ok remaining 30 from physics/cpu
        charge 1 alice physics/cpu 20 start 90  -> again
        charge 2 alice physics/cpu 20 start 100 -> ok remaining 30 from physics/cpu:next
        release 3 alice physics/cpu start 90    -> ok remaining 30 amount 0
        hold 3 alice physics/cpu 20             -> RUN_CLOSED        # the hold comes after all
        run 3 released
        used alice physics/cpu 20
        """)


def test_refused_late_charge_is_kept() -> None:
    play_story(
        PHYSICS
        + """
        policy no_late
        charge 1 alice physics/cpu 20 -> NO_HOLD requested 20 available 100 from physics/cpu
        kept physics/cpu 1
        remaining physics/cpu 100
        charge 2 alice physics/gpu 20           -> NO_ALLOCATION
        kept registry 1
        charge 3 20          -> NO_HOLD           # says nothing about itself: nobody to keep it for
        policy late
        charge 1 alice physics/cpu 20           -> ok remaining 80
        """
    )


def test_late_charge_takes_the_remaining_credit() -> None:
    play_story(
        PHYSICS
        + """
        cap alice physics/cpu 10
        freeze physics/cpu
        charge 1 alice physics/cpu 130          -> ok remaining 0 amount 100 written_off 30
        used alice physics/cpu 100
        """
    )


# A group, its faculty and its university: three allocations of one project chain, each of which
# refuses for a reason of its own.
LINE = """
    project uni
    project faculty under uni
    project group under faculty
    open uni/cpu 0..1000 with 100 shared yes
    open faculty/cpu 0..1000 with 50 shared yes
    open group/cpu 0..1000 with 20
"""


def test_late_charge_goes_to_allocation_that_covers_it() -> None:
    play_story(
        LINE
        + """
        charge 1 alice group/cpu 5              -> ok remaining 15 from group/cpu
        cap alice group/cpu 6
        # beyond her cap in the group's
        charge 2 alice group/cpu 5 -> ok remaining 45 from faculty/cpu
        charge 3 bob group/cpu 5 -> ok remaining 10 from group/cpu       # where bob has none
        freeze faculty/cpu
        charge 4 alice group/cpu 5              -> ok remaining 95 from uni/cpu
        charge 5 bob group/cpu 96 -> ok remaining 0 amount 10 written_off 86 from group/cpu
        """
    )


def test_run_keeps_its_project_whichever_pays() -> None:
    play_story(
        LINE
        + """
        hold 1 alice group/cpu 30               -> ok remaining 20 from faculty/cpu
        charge 2 alice group/cpu 60             -> ok remaining 40 from uni/cpu
        hold 3 bob faculty/cpu 20               -> ok remaining 0 from faculty/cpu
        run 1 held from faculty/cpu for group
        run 2 charged from uni/cpu for group
        run 3 held from faculty/cpu for faculty
        adjust 1 31 -> INSUFFICIENT_CREDIT requested 1 available 0 from faculty/cpu for group
        charge 1 30                             -> ok from faculty/cpu
        run 1 charged from faculty/cpu for group
        """
    )


def test_late_charge_beyond_caps_prefers_unfrozen_allocations() -> None:
    play_story(
        LINE
        + """
        cap alice uni/cpu 1
        cap alice faculty/cpu 1
        freeze group/cpu
        # a cap stops starts, not bills
        charge 1 alice group/cpu 10 -> ok remaining 40 from faculty/cpu
        used alice faculty/cpu 10
        hold 2 alice group/cpu 2                -> FROZEN
        """
    )


def test_late_charge_uses_frozen_credit_before_write_off() -> None:
    play_story(
        LINE
        + """
        freeze uni/cpu
        charge 1 alice group/cpu 60             -> ok remaining 40 written_off 0 from uni/cpu
        """
    )


def test_uncovered_late_charge_goes_to_unfrozen_allocation() -> None:
    play_story(
        LINE
        + """
        freeze group/cpu
        charge 1 alice group/cpu 130 -> ok remaining 0 amount 50 written_off 80 from faculty/cpu
        freeze faculty/cpu
        freeze uni/cpu
        charge 2 alice group/cpu 130 -> ok remaining 0 amount 20 written_off 110 from group/cpu
        policy record
        thaw uni/cpu
        charge 3 alice group/cpu 130            -> ok remaining -30 written_off 0 from uni/cpu
        release 4 alice group/cpu               -> ok remaining 0 amount 0 from group/cpu
        """
    )


# --- unknown accounts and partitions ---


def test_usage_of_unknown_account_counts_once_its_project_exists() -> None:
    story = play_story(
        "charge 1 alice physics/cpu 20 key c -> UNKNOWN_PROJECT requested 20 available 0\n"
        " release 2 alice physics/cpu -> UNKNOWN_PROJECT"
    )
    assert isinstance(story.outcome, Refusal)
    assert (story.outcome.account, story.outcome.project) == ("physics", None)
    story.play("kept registry 2")
    for line in (
        *PHYSICS.strip().splitlines(),
        "charge 1 alice physics/cpu 20 key c -> ok remaining 80",
    ):
        story.play(line.strip())


def test_usage_of_unknown_partition_is_kept() -> None:
    story = play_story(PHYSICS)
    charge = story.names.request("charge 1 alice physics/cpu 20", story.now)
    no = apply(
        story.work,
        SubmittedRequest(msgspec.structs.replace(charge, resource=None), story.now, 0),
        story.policy,
    )
    assert isinstance(no, Refusal)
    assert (no.reason, no.requested, no.project) == (Reason.NO_HOLD, 20 * 60, 1)
    story.play("kept registry 1")
