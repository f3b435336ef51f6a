"""Runs: one hold and one resolution each; the rest of a hold returns; nothing that happened is lost."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.entry import OFFICE, Kind
from fairbank.bank.ledger import judge
from fairbank.bank.policy import Policy
from fairbank.bank.refusal import Reason, Refusal, refusal_of, sentence
from fairbank.bank.run import NEXT, RunEvent, RunState
from fairbank.bank.wish import Asked
from tests.bank.story import tell

PHYSICS = """
    project physics
    open physics/cpu 0..1000 with 100
"""


def test_a_job_starts_and_ends_and_the_rest_returns() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok left 40 amount 60 from physics/cpu
        held physics/cpu 60
        used alice physics/cpu 60
        now 50
        charge 1 45                     -> ok left 55 amount 45 off 0
        held physics/cpu 0
        charged physics/cpu 45
        used alice physics/cpu 45
        run 1 charged held 0 charged 45 off 0
        """
    )


def test_a_refusal_carries_its_figures_moves_nothing_and_is_kept() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok
        hold 2 bob physics/cpu 40.25    -> OVERDRAWN asked 40.25 left 40 short 15m from physics/cpu
        kept physics/cpu 1
        left physics/cpu 40
        used bob physics/cpu 0
        hold 2 bob physics/cpu 40       -> ok left 0      # a refused run may ask again
        hold 3 bob physics/cpu 1m       -> OVERDRAWN left 0 short 1m
        hold 4 bob physics/cpu 0        -> ok             # what costs nothing always fits
        """
    )


def test_a_run_has_one_hold() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok left 40
        hold 1 alice physics/cpu 60     -> again left 40 amount 60
        hold 1 alice physics/cpu 59     -> RUN_TAKEN
        hold 1 bob physics/cpu 60       -> RUN_TAKEN
        held physics/cpu 60
        kept physics/cpu 0
        """
    )


def test_runs_are_told_apart_by_restart_and_submission_too() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 10
        release 1                       # its node failed; it was requeued
        hold 1.1 alice physics/cpu 10
        charge 1.1 8
        hold 1@500 alice physics/cpu 10 # the job ids wrapped
        run 1 released charged 0
        run 1.1 charged charged 8
        run 1@500 held held 10
        left physics/cpu 82
        """
    )


def test_a_run_has_one_resolution() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        charge 1 45                     -> ok left 55
        charge 1 45                     -> again left 55 amount 45
        charge 1 46                     -> RUN_RESOLVED
        release 1                       -> RUN_RESOLVED
        hold 1 alice physics/cpu 60     -> RUN_RESOLVED
        adjust 1 70                     -> RUN_RESOLVED
        left physics/cpu 55
        """
    )


def test_a_failed_node_costs_nothing() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok left 40
        release 1                       -> ok left 100
        release 1                       -> again left 100
        charge 1 45                     -> RUN_RESOLVED
        used alice physics/cpu 0
        run 1 released held 0 charged 0
        """
    )


def test_a_run_may_cost_more_than_its_hold_while_there_is_credit() -> None:
    tell(PHYSICS + "hold 1 alice physics/cpu 60\n charge 1 90 -> ok left 10 off 0")


# --- time limits that change ---


def test_a_hold_grows_and_shrinks_with_the_time_limit() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        adjust 1 80 until 2000          -> ok left 20 amount 20
        run 1 held held 80
        adjust 1 80 until 2000          -> again left 20
        adjust 1 30 until 500           -> ok left 70
        used alice physics/cpu 30
        adjust 1 30 until 600           -> ok left 70 amount 0   # only its deadline moves
        adjust 1 131 until 600          -> OVERDRAWN asked 101 left 70 short 31
        kept physics/cpu 1
        run 1 held held 30
        charge 1 25                     -> ok left 75
        """
    )


def test_a_hold_that_shrinks_needs_no_credit() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 100
        cap alice physics/cpu 10
        freeze physics/cpu
        adjust 1 50                     -> ok left 50
        adjust 1 50 until 700           -> ok left 50           # nor does one whose deadline moves
        adjust 1 51                     -> FROZEN
        thaw physics/cpu
        adjust 1 51                     -> CAPPED asked 1 left 0
        """
    )


def test_a_change_for_a_run_without_a_hold_is_refused() -> None:
    told = tell(
        PHYSICS
        + """
        adjust 1 80                             -> NO_HOLD              # says nothing about itself: nobody to keep it for
        kept office 0
        hold 1 alice physics/cpu 500            -> OVERDRAWN            # the site let it run all the same
        adjust 1 alice physics/cpu 80 key a     -> NO_HOLD asked 80
        kept office 1
        deposit physics/cpu 400
        hold 1 alice physics/cpu 500            -> ok
        adjust 1 alice physics/cpu 80 key a     -> ok                   # its key was left free
        """
    )
    kept = [refusal_of(entry) for entry in told.work.entries if entry.kind is Kind.REFUSAL and entry.book == OFFICE]
    assert [(no.reason, no.project, no.resource, no.owner) for no in kept] == [(Reason.NO_HOLD, 1, "cpu", 1001)]
    assert sentence(kept[0]) == "this run has no hold: its time limit was changed while it runs with nothing set aside."


# --- which allocation ---


def test_a_job_across_two_periods_is_charged_to_the_earlier() -> None:
    tell(
        """
        project physics
        open physics/cpu 0..100 with 50
        open physics/cpu:next 100..200 with 50
        now 99
        hold 1 alice physics/cpu 20     -> ok from physics/cpu
        now 100
        hold 2 alice physics/cpu 20     -> ok from physics/cpu:next
        expire physics/cpu
        now 150
        adjust 1 30                     -> ok from physics/cpu left 20
        charge 1 25                     -> ok from physics/cpu left 25
        charge 2 15                     -> ok from physics/cpu:next left 35
        """
    )


def test_the_start_picks_the_allocation_not_the_hour_of_the_message() -> None:
    tell(
        """
        project physics
        open physics/cpu 10..100 with 50
        now 9
        hold 1 alice physics/cpu 20             -> NO_ALLOCATION asked 20 left 0
        kept office 1
        now 100
        hold 2 alice physics/cpu 20             -> NO_ALLOCATION
        hold 3 alice physics/cpu 20 start 99    -> ok from physics/cpu
        hold 4 alice physics/gpu 20 start 99    -> NO_ALLOCATION
        """
    )


# --- deadlines ---


def test_a_hold_of_which_nothing_more_is_heard_lapses() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        now 499
        lapse 1                         -> NOT_DUE
        now 500
        lapse 1                         -> ok left 100 amount 60
        lapse 1                         -> RUN_RESOLVED
        run 1 lapsed held 0 charged 0
        used alice physics/cpu 0
        lapse 2                         -> NO_HOLD
        """
    )


def test_a_run_heard_of_after_its_lapse_is_charged_all_the_same() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60 until 500
        hold 2 alice physics/cpu 10 until 500
        now 500
        lapse 1
        lapse 2
        adjust 1 70                     -> RUN_RESOLVED
        hold 1 alice physics/cpu 60     -> RUN_RESOLVED
        charge 1 45                     -> ok left 55 from physics/cpu
        charge 1 45                     -> again
        release 2                       -> ok left 55 amount 0
        """
    )


def test_a_lapsed_run_finds_its_credit_spent() -> None:
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


def test_a_late_charge_goes_where_the_hold_would_have_been() -> None:
    tell(
        """
        project physics
        open physics/cpu 0..100 with 50
        open physics/cpu:next 100..200 with 50
        now 150
        expire physics/cpu
        charge 1 alice physics/cpu 20 start 90  -> ok left 30 from physics/cpu
        charge 1 alice physics/cpu 20 start 90  -> again
        charge 2 alice physics/cpu 20 start 100 -> ok left 30 from physics/cpu:next
        release 3 alice physics/cpu start 90    -> ok left 30 amount 0
        hold 3 alice physics/cpu 20             -> RUN_RESOLVED        # the hold comes after all
        run 3 released
        used alice physics/cpu 20
        """
    )


def test_a_late_charge_is_never_lost() -> None:
    tell(
        PHYSICS
        + """
        policy no_late
        charge 1 alice physics/cpu 20           -> NO_HOLD asked 20 left 100 from physics/cpu
        kept physics/cpu 1
        left physics/cpu 100
        charge 2 alice physics/gpu 20           -> NO_ALLOCATION
        kept office 1
        charge 3 20                             -> NO_HOLD             # says nothing about itself: nobody to keep it for
        policy late
        charge 1 alice physics/cpu 20           -> ok left 80
        """
    )


def test_a_late_charge_takes_what_is_left() -> None:
    tell(
        PHYSICS
        + """
        cap alice physics/cpu 10
        freeze physics/cpu
        charge 1 alice physics/cpu 130          -> ok left 0 amount 100 off 30
        used alice physics/cpu 100
        """
    )


# A group under a faculty under a university: three allocations on one line, each to be made unwilling in its own way.
LINE = """
    project uni
    project faculty under uni
    project group under faculty
    open uni/cpu 0..1000 with 100 shared yes
    open faculty/cpu 0..1000 with 50 shared yes
    open group/cpu 0..1000 with 20
"""


def test_a_late_charge_goes_where_the_whole_of_it_is_wanted() -> None:
    tell(
        LINE
        + """
        charge 1 alice group/cpu 5              -> ok left 15 from group/cpu
        cap alice group/cpu 6
        charge 2 alice group/cpu 5              -> ok left 45 from faculty/cpu     # beyond her cap in the group's
        charge 3 bob group/cpu 5                -> ok left 10 from group/cpu       # where bob has none
        freeze faculty/cpu
        charge 4 alice group/cpu 5              -> ok left 95 from uni/cpu
        charge 5 bob group/cpu 96               -> ok left 0 amount 10 off 86 from group/cpu
        """
    )


def test_a_run_is_of_the_project_that_it_ran_for_whoever_pays() -> None:
    tell(
        LINE
        + """
        hold 1 alice group/cpu 30               -> ok left 20 from faculty/cpu
        charge 2 alice group/cpu 60             -> ok left 40 from uni/cpu
        hold 3 bob faculty/cpu 20               -> ok left 0 from faculty/cpu
        run 1 held from faculty/cpu for group
        run 2 charged from uni/cpu for group
        run 3 held from faculty/cpu for faculty
        adjust 1 31                             -> OVERDRAWN asked 1 left 0 from faculty/cpu for group
        charge 1 30                             -> ok from faculty/cpu
        run 1 charged from faculty/cpu for group
        """
    )


def test_a_late_charge_beyond_every_cap_is_paid_from_what_is_not_frozen() -> None:
    tell(
        LINE
        + """
        cap alice uni/cpu 1
        cap alice faculty/cpu 1
        freeze group/cpu
        charge 1 alice group/cpu 10             -> ok left 40 from faculty/cpu     # a cap stops starts, not bills
        used alice faculty/cpu 10
        hold 2 alice group/cpu 2                -> FROZEN
        """
    )


def test_a_late_charge_is_paid_from_what_is_frozen_before_any_of_it_is_written_off() -> None:
    tell(
        LINE
        + """
        freeze uni/cpu
        charge 1 alice group/cpu 60             -> ok left 40 off 0 from uni/cpu
        """
    )


def test_a_late_charge_that_nobody_can_carry_takes_what_is_left_where_nothing_is_frozen() -> None:
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


# --- policies ---


def test_usage_beyond_what_is_left_is_written_off() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        hold 2 bob physics/cpu 40
        charge 1 70             -> ok left 0 amount 60 off 10
        charge 2 40             -> ok left 0 off 0
        """
    )


def test_usage_beyond_what_is_left_is_recorded() -> None:
    told = tell(
        PHYSICS
        + """
        policy record
        hold 1 alice physics/cpu 60
        hold 2 bob physics/cpu 40
        charge 1 70             -> ok left -10 amount 70 off 0
        hold 3 bob physics/cpu 1        -> OVERDRAWN asked 1 left -10 short 11
        charge 2 30             -> ok left 0
        charge 4 alice physics/cpu 5    -> ok left -5
        deposit physics/cpu 5   -> ok left 0
        """
    )
    assert told.allocation("physics/cpu").overrun == 10 * 60


def test_an_observing_bank_refuses_no_job() -> None:
    told = tell(
        PHYSICS
        + """
        policy observe
        hold 1 alice physics/cpu 160    -> ok left -60
        freeze physics/cpu
        hold 2 bob physics/cpu 1        -> ok left -61
        adjust 2 11                     -> ok left -71
        charge 1 170                    -> ok left -81 off 0
        hold 3 bob physics/gpu 1        -> ok left 0 amount 0          # nothing to hold on
        release 2                       -> ok left -70
        policy enforce
        thaw physics/cpu
        hold 4 bob physics/cpu 1m       -> OVERDRAWN
        charge 5 bob physics/cpu 1      -> ok left -70 amount 0 off 1
        """
    )
    assert told.allocation("physics/cpu").overrun == 81 * 60


@pytest.mark.parametrize("outcome", ["NODE_FAIL", "BOOT_FAIL"])
def test_what_is_free_is_policy(outcome: str) -> None:
    assert outcome in Policy().free_states
    assert "FAILED" not in Policy().free_states


# --- the table ---


def test_every_state_of_a_run_can_be_reached_and_left_only_by_the_table() -> None:
    reached = {RunState.HELD}
    for _ in RunState:
        reached |= {after for (before, _), after in NEXT.items() if before in reached}
    assert reached == set(RunState)
    assert {event for _, event in NEXT} == set(RunEvent)
    assert not {RunState.CHARGED, RunState.RELEASED} & {before for before, _ in NEXT}


ROAD = {RunState.HELD: "", RunState.CHARGED: "charge 1 5", RunState.RELEASED: "release 1", RunState.LAPSED: "now 500\n lapse 1"}
DEED = {RunEvent.ADJUST: "adjust 1 7", RunEvent.CHARGE: "charge 1 6", RunEvent.RELEASE: "release 1", RunEvent.LAPSE: "now 500\n lapse 1"}


@pytest.mark.parametrize("state", RunState)
@pytest.mark.parametrize("event", RunEvent)
def test_what_is_not_in_the_table_does_not_happen(state: RunState, event: RunEvent) -> None:
    after = NEXT.get((state, event))
    answer = "ok" if after else "again" if (state, event) == (RunState.RELEASED, RunEvent.RELEASE) else "RUN_RESOLVED"
    tell(
        f"""{PHYSICS}
        hold 1 alice physics/cpu 10 until 500
        {ROAD[state]}
        run 1 {state.value}
        {DEED[event]} -> {answer}
        run 1 {(after or state).value}
        """
    )


# --- the rest ---


def test_no_sum_of_holds_is_more_than_the_bank_can_count() -> None:
    hold = "hold {} alice physics/cpu {}m".format
    holds = [hold(1, 10**14), hold(2, 9 * 10**14), *(hold(number, 10**15) for number in range(3, 11))]
    refused = [f"{hold(11, 10**15)} -> OVERDRAWN", f"adjust 1 {2 * 10**14}m -> OVERDRAWN"]
    tell("\n".join([PHYSICS, "policy observe", *holds, *refused]))


def test_an_observing_bank_records_what_it_would_have_refused() -> None:
    tell(
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


def test_a_job_without_an_allocation_is_let_through_and_its_cost_is_kept_while_the_bank_observes() -> None:
    tell(
        PHYSICS
        + """
        policy observe
        hold 1 alice physics/gpu 1 key h        -> ok left 0 amount 0
        kept office 1
        hold 1 alice physics/gpu 1 key h        -> again amount 0
        hold 1 alice physics/gpu 2 key h        -> KEY_TAKEN
        kept office 1
        adjust 1 alice physics/gpu 2 key a      -> ok amount 0          # noted: the job runs on
        kept office 2
        charge 1 alice physics/gpu 1            -> NO_ALLOCATION asked 1
        kept office 3
        open physics/gpu 0..1000 with 10
        policy enforce
        hold 1 alice physics/gpu 1 key h        -> again amount 0      # the first answer stands
        charge 1 alice physics/gpu 1            -> ok left 9
        """
    )


def test_a_job_of_an_account_that_nobody_has_is_let_through_while_the_bank_observes() -> None:
    tell(
        """
        hold 1 alice nosuch/cpu 1               -> UNKNOWN_PROJECT asked 1
        policy observe
        hold 2 alice nosuch/cpu 1               -> ok amount 0
        kept office 2
        """
    )


def test_usage_of_an_account_that_nobody_has_counts_once_its_project_is_entered() -> None:
    told = tell("charge 1 alice physics/cpu 20 key c -> UNKNOWN_PROJECT asked 20 left 0\n release 2 alice physics/cpu -> UNKNOWN_PROJECT")
    assert isinstance(told.said, Refusal)
    assert (told.said.account, told.said.project) == ("physics", None)
    told.play("kept office 2")
    for line in (*PHYSICS.strip().splitlines(), "charge 1 alice physics/cpu 20 key c -> ok left 80"):
        told.play(line.strip())


def test_usage_of_a_partition_that_nobody_knows_is_kept() -> None:
    told = tell(PHYSICS)
    charge = told.cast.wish("charge 1 alice physics/cpu 20", told.now)
    no = judge(told.work, Asked(msgspec.structs.replace(charge, resource=None), told.now, 0), told.policy)
    assert isinstance(no, Refusal)
    assert (no.reason, no.asked, no.project) == (Reason.NO_HOLD, 20 * 60, 1)
    told.play("kept office 1")
