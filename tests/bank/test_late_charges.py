"""Late charges: runs whose hold lapsed, runs whose hold never arrived, and who pays for them."""

from __future__ import annotations

import msgspec

from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import apply
from tests.bank.beginnings import PHYSICS
from tests.bank.story import tell

# --- deadlines ---


def test_hold_without_further_reports_lapses() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        now 499
        lapse 1                         -> NOT_DUE
        now 500
        lapse 1                         -> ok left 100 amount 60
        lapse 1                         -> RUN_CLOSED
        run 1 lapsed held 0 charged 0
        used alice physics/cpu 0
        lapse 2                         -> NO_HOLD
        """
    )


def test_run_reported_after_its_lapse_is_charged() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        hold 2 alice physics/cpu 10 until 500
        now 500
        lapse 1
        lapse 2
        adjust 1 70                     -> RUN_CLOSED
        hold 1 alice physics/cpu 60     -> RUN_CLOSED
        charge 1 45                     -> ok left 55 from physics/cpu
        charge 1 45                     -> again
        release 2                       -> ok left 55 amount 0
        """
    )


def test_late_charge_may_exceed_the_remaining_credit() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        now 500
        lapse 1
        hold 2 bob physics/cpu 80
        charge 1 45                     -> ok left 0 amount 20 off 25
        run 1 charged charged 20 off 25
        charge 1 45                     -> again off 25
        charge 2 80                     -> ok left 0
        """
    )


# --- no hold ever came ---


def test_late_charge_goes_to_allocation_of_the_start() -> None:
    tell("""
        project physics
        open physics/cpu 0..100 with 50
        open physics/cpu:next 100..200 with 50
        now 150
        expire physics/cpu
        charge 1 alice physics/cpu 20 start 90  -> ok left 30 from physics/cpu
        charge 1 alice physics/cpu 20 start 90  -> again
        charge 2 alice physics/cpu 20 start 100 -> ok left 30 from physics/cpu:next
        release 3 alice physics/cpu start 90    -> ok left 30 amount 0
        hold 3 alice physics/cpu 20             -> RUN_CLOSED        # the hold comes after all
        run 3 released
        used alice physics/cpu 20
        """)


def test_refused_late_charge_is_kept() -> None:
    tell(
        PHYSICS
        + """
        policy no_late
        charge 1 alice physics/cpu 20           -> NO_HOLD asked 20 left 100 from physics/cpu
        kept physics/cpu 1
        left physics/cpu 100
        charge 2 alice physics/gpu 20           -> NO_ALLOCATION
        kept registry 1
        charge 3 20          -> NO_HOLD           # says nothing about itself: nobody to keep it for
        policy late
        charge 1 alice physics/cpu 20           -> ok left 80
        """
    )


def test_late_charge_takes_the_remaining_credit() -> None:
    tell(
        PHYSICS
        + """
        cap alice physics/cpu 10
        freeze physics/cpu
        charge 1 alice physics/cpu 130          -> ok left 0 amount 100 off 30
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
    tell(
        LINE
        + """
        charge 1 alice group/cpu 5              -> ok left 15 from group/cpu
        cap alice group/cpu 6
        charge 2 alice group/cpu 5  -> ok left 45 from faculty/cpu   # beyond her cap in the group's
        charge 3 bob group/cpu 5             -> ok left 10 from group/cpu       # where bob has none
        freeze faculty/cpu
        charge 4 alice group/cpu 5              -> ok left 95 from uni/cpu
        charge 5 bob group/cpu 96               -> ok left 0 amount 10 off 86 from group/cpu
        """
    )


def test_run_keeps_its_project_whoever_pays() -> None:
    tell(
        LINE
        + """
        hold 1 alice group/cpu 30               -> ok left 20 from faculty/cpu
        charge 2 alice group/cpu 60             -> ok left 40 from uni/cpu
        hold 3 bob faculty/cpu 20               -> ok left 0 from faculty/cpu
        run 1 held from faculty/cpu for group
        run 2 charged from uni/cpu for group
        run 3 held from faculty/cpu for faculty
        adjust 1 31                 -> INSUFFICIENT_CREDIT asked 1 left 0 from faculty/cpu for group
        charge 1 30                             -> ok from faculty/cpu
        run 1 charged from faculty/cpu for group
        """
    )


def test_late_charge_beyond_caps_prefers_unfrozen_allocations() -> None:
    tell(
        LINE
        + """
        cap alice uni/cpu 1
        cap alice faculty/cpu 1
        freeze group/cpu
        charge 1 alice group/cpu 10  -> ok left 40 from faculty/cpu  # a cap stops starts, not bills
        used alice faculty/cpu 10
        hold 2 alice group/cpu 2                -> FROZEN
        """
    )


def test_late_charge_uses_frozen_credit_before_write_off() -> None:
    tell(
        LINE
        + """
        freeze uni/cpu
        charge 1 alice group/cpu 60             -> ok left 40 off 0 from uni/cpu
        """
    )


def test_uncovered_late_charge_goes_to_unfrozen_allocation() -> None:
    tell(
        LINE
        + """
        freeze group/cpu
        charge 1 alice group/cpu 130            -> ok left 0 amount 50 off 80 from faculty/cpu
        freeze faculty/cpu
        freeze uni/cpu
        charge 2 alice group/cpu 130            -> ok left 0 amount 20 off 110 from group/cpu
        policy record
        thaw uni/cpu
        charge 3 alice group/cpu 130            -> ok left -30 off 0 from uni/cpu
        release 4 alice group/cpu               -> ok left 0 amount 0 from group/cpu
        """
    )


# --- accounts and partitions that nobody knows ---


def test_usage_of_unknown_account_counts_once_its_project_exists() -> None:
    told = tell(
        "charge 1 alice physics/cpu 20 key c -> UNKNOWN_PROJECT asked 20 left 0\n release 2 alice"
        " physics/cpu -> UNKNOWN_PROJECT"
    )
    assert isinstance(told.said, Refusal)
    assert (told.said.account, told.said.project) == ("physics", None)
    told.play("kept registry 2")
    for line in (
        *PHYSICS.strip().splitlines(),
        "charge 1 alice physics/cpu 20 key c -> ok left 80",
    ):
        told.play(line.strip())


def test_usage_of_unknown_partition_is_kept() -> None:
    told = tell(PHYSICS)
    charge = told.cast.request("charge 1 alice physics/cpu 20", told.now)
    no = apply(
        told.work,
        SubmittedRequest(msgspec.structs.replace(charge, resource=None), told.now, 0),
        told.policy,
    )
    assert isinstance(no, Refusal)
    assert (no.reason, no.asked, no.project) == (Reason.NO_HOLD, 20 * 60, 1)
    told.play("kept registry 1")
