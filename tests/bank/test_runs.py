"""Runs: one hold, closed once; the rest of a hold is released; only listed transitions happen."""

from __future__ import annotations

import pytest

from fairbank.bank.entry import facts_of
from fairbank.bank.rules import Done
from fairbank.bank.run import NEXT, RunEvent, RunState
from fairbank.cluster.job import JobDetails
from tests.bank.stories import StoryRunner, play_story
from tests.bank.story_setups import PHYSICS


def test_rest_of_hold_is_released_at_the_end() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok remaining 40 amount 60 from physics/cpu
        held physics/cpu 60
        used alice physics/cpu 60
        now 50
        charge 1 45                     -> ok remaining 55 amount 45 written_off 0
        held physics/cpu 0
        charged physics/cpu 45
        used alice physics/cpu 45
        run 1 charged held 0 charged 45 written_off 0
        """
    )


def test_refusal_has_figures_and_changes_nothing() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok
        hold 2 bob physics/cpu 40.25 \
            -> INSUFFICIENT_CREDIT requested 40.25 available 40 shortfall 15m from physics/cpu
        kept physics/cpu 1
        remaining physics/cpu 40
        used bob physics/cpu 0
        hold 2 bob physics/cpu 40       -> ok remaining 0      # a refused run may ask again
        hold 3 bob physics/cpu 1m       -> INSUFFICIENT_CREDIT available 0 shortfall 1m
        hold 4 bob physics/cpu 0        -> ok             # what costs nothing always fits
        """
    )


def test_run_has_one_hold() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok remaining 40
        hold 1 alice physics/cpu 60     -> again remaining 40 amount 60
        hold 1 alice physics/cpu 59     -> HOLD_EXISTS
        hold 1 bob physics/cpu 60       -> HOLD_EXISTS
        held physics/cpu 60
        kept physics/cpu 0
        """
    )


def test_restart_and_submission_time_identify_a_run() -> None:
    play_story(
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
        remaining physics/cpu 82
        """
    )


def test_run_is_closed_once() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        charge 1 45                     -> ok remaining 55
        charge 1 45                     -> again remaining 55 amount 45
        charge 1 46                     -> RUN_CLOSED
        release 1                       -> RUN_CLOSED
        hold 1 alice physics/cpu 60     -> RUN_CLOSED
        adjust 1 70                     -> RUN_CLOSED
        remaining physics/cpu 55
        """
    )


def test_end_that_contradicts_its_hold_closes_nothing() -> None:
    play_story(
        PHYSICS
        + """
        project chemistry
        open chemistry/cpu 0..1000 with 100
        hold 1 alice physics/cpu 60 partition std
        charge 1 bob physics/cpu 45 \
            -> REPORT_MISMATCH requested 45 available 40 from physics/cpu for physics
        charge 1 alice chemistry/cpu 45         -> REPORT_MISMATCH
        charge 1 alice nobody/cpu 45            -> REPORT_MISMATCH
        release 1 bob physics/cpu               -> REPORT_MISMATCH
        charge 1 alice physics/cpu 45 priced gpu -> REPORT_MISMATCH
        kept physics/cpu 5
        remaining chemistry/cpu 100
        charge 1 alice physics/cpu 45 priced std -> ok remaining 55
        charge 1 alice physics/cpu 45           -> again remaining 55
        charge 1 bob physics/cpu 45             -> REPORT_MISMATCH
        kept physics/cpu 5
        """
    )


def test_limit_that_contradicts_its_hold_changes_nothing() -> None:
    play_story(
        PHYSICS
        + """
        project chemistry
        open chemistry/cpu 0..1000 with 100
        hold 1 alice physics/cpu 60 partition std
        adjust 1 bob physics/cpu 80 \
            -> REPORT_MISMATCH requested 80 available 40 from physics/cpu for physics
        adjust 1 alice chemistry/cpu 80         -> REPORT_MISMATCH
        adjust 1 alice nobody/cpu 80            -> REPORT_MISMATCH
        adjust 1 alice physics/cpu 80 priced gpu -> REPORT_MISMATCH
        adjust 1 bob physics/cpu 60        -> REPORT_MISMATCH   # also where it would change nothing
        kept physics/cpu 5
        adjust 1 bob physics/cpu 80 key a       -> REPORT_MISMATCH
        adjust 1 alice physics/cpu 80 priced std key a -> ok remaining 20 # its key was left free
        adjust 1 90 -> ok remaining 10        # says nothing about itself
        charge 1 alice physics/cpu 45           -> ok remaining 55
        adjust 1 bob physics/cpu 80             -> RUN_CLOSED
        """
    )


def test_failed_node_costs_nothing() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60     -> ok remaining 40
        release 1                       -> ok remaining 100
        release 1                       -> again remaining 100
        charge 1 45                     -> RUN_CLOSED
        used alice physics/cpu 0
        run 1 released held 0 charged 0
        """
    )


def test_charge_may_exceed_its_hold_within_the_credit() -> None:
    play_story(
        PHYSICS + "hold 1 alice physics/cpu 60\n charge 1 90 -> ok remaining 10 written_off 0"
    )


# --- which allocation ---


def test_job_across_two_periods_is_charged_to_the_earlier() -> None:
    play_story("""
        project physics
        open physics/cpu 0..100 with 50
        open physics/cpu:next 100..200 with 50
        now 99
        hold 1 alice physics/cpu 20     -> ok from physics/cpu
        now 100
        hold 2 alice physics/cpu 20     -> ok from physics/cpu:next
        expire physics/cpu
        now 150
        adjust 1 30                     -> ok from physics/cpu remaining 20
        charge 1 25                     -> ok from physics/cpu remaining 25
        charge 2 15                     -> ok from physics/cpu:next remaining 35
        """)


def test_start_time_selects_the_allocation() -> None:
    play_story("""
        project physics
        open physics/cpu 10..100 with 50
        now 9
        hold 1 alice physics/cpu 20             -> NO_ALLOCATION requested 20 available 0
        kept registry 1
        now 100
        hold 2 alice physics/cpu 20             -> NO_ALLOCATION
        hold 3 alice physics/cpu 20 start 99    -> ok from physics/cpu
        hold 4 alice physics/gpu 20 start 99    -> NO_ALLOCATION
        """)


# --- the table ---


def test_run_states_change_only_by_the_table() -> None:
    reached = {RunState.HELD}
    for _ in RunState:
        reached |= {after for (before, _), after in NEXT.items() if before in reached}
    assert reached == set(RunState)
    assert {event for _, event in NEXT} == set(RunEvent)
    assert not {RunState.CHARGED, RunState.RELEASED} & {before for before, _ in NEXT}


ROAD = {
    RunState.HELD: "",
    RunState.CHARGED: "charge 1 5",
    RunState.RELEASED: "release 1",
    RunState.LAPSED: "now 500\n lapse 1",
}
DEED = {
    RunEvent.ADJUST: "adjust 1 7",
    RunEvent.CHARGE: "charge 1 6",
    RunEvent.RELEASE: "release 1",
    RunEvent.LAPSE: "now 500\n lapse 1",
}


@pytest.mark.parametrize("state", RunState)
@pytest.mark.parametrize("event", RunEvent)
def test_event_outside_the_table_is_refused(state: RunState, event: RunEvent) -> None:
    after = NEXT.get((state, event))
    answer = (
        "ok"
        if after
        else "again"
        if (state, event) == (RunState.RELEASED, RunEvent.RELEASE)
        else "RUN_CLOSED"
    )
    play_story(f"""{PHYSICS}
        hold 1 alice physics/cpu 10 until 500
        {ROAD[state]}
        run 1 {state.value}
        {DEED[event]} -> {answer}
        run 1 {(after or state).value}
        """)


# --- what the bank can count ---


def test_sum_of_holds_beyond_the_maximum_is_refused() -> None:
    hold = "hold {} alice physics/cpu {}m".format
    holds = [
        hold(1, 10**14),
        hold(2, 9 * 10**14),
        *(hold(number, 10**15) for number in range(3, 11)),
    ]
    refused = [
        f"{hold(11, 10**15)} -> INSUFFICIENT_CREDIT",
        f"adjust 1 {2 * 10**14}m -> INSUFFICIENT_CREDIT",
    ]
    play_story("\n".join([PHYSICS, "policy observe", *holds, *refused]))


@pytest.mark.parametrize(
    "held", ["hold 1 alice physics/cpu 60 details cpus=2", "hold 2 bob physics/cpu 1"]
)
def test_end_with_too_much_cpu_time_is_charged_and_marked(held: str) -> None:
    """Two processors ran for a minute: one second more of each is rounding, more is an error."""
    text = f"""
        project physics
        open physics/cpu 0..1000 with 100
        {held}
    """
    end = "charge 1 alice physics/cpu 45 details cpus=2,cpu_seconds="
    assert counted(play_story(f"{text}\n{end}122")) == (None, None)
    assert counted(play_story(f"{text}\n{end}123")) == (120, 120)
    assert counted(play_story(f"{text}\n{end}123\n{end}123 -> again")) == (120, 120)


def counted(story: StoryRunner) -> tuple[int | None, int | None]:
    """Return the processor time that counts, from the answer and from the entry. The row keeps the
    report.
    """
    assert isinstance(story.outcome, Done)
    (run,) = (record for record in story.work.runs.values() if record.reported.run.job_id == 1)
    assert run.reported.job_details is not None
    assert run.reported.job_details.cpu_seconds in (122, 123)
    return story.outcome.cpu_counted, facts_of(story.work.entry(story.outcome.entry)).get(
        "cpu_counted"
    )


def test_entries_of_a_run_store_only_new_details() -> None:
    story = play_story("""
        project physics
        open physics/cpu 0..1000 with 100
        hold 1 alice physics/cpu 60 details name=relax,qos=high,cpus=8,limit_seconds=3600
        adjust 1 70 details limit_seconds=7200
        charge 1 45 \
            details name=relax,qos=high,cpus=8,limit_seconds=7200,exit_status=256,cpu_seconds=99
        charge 2 bob physics/cpu 5 details name=fit,cpu_seconds=7
        hold 3 bob physics/cpu 5
        release 3
    """)
    of = {run.reported.run.job_id: run.reported.job_details for run in story.work.runs.values()}
    assert of == {
        1: JobDetails(
            name="relax", qos="high", cpus=8, limit_seconds=7_200, exit_status=256, cpu_seconds=99
        ),
        2: JobDetails(name="fit", cpu_seconds=7),
        3: None,
    }
    output = [
        facts_of(entry).get("job_details") for entry in story.work.entries if entry.run is not None
    ]
    assert output == [
        {"name": "relax", "qos": "high", "cpus": 8, "limit_seconds": 3_600},
        {"limit_seconds": 7_200},
        {"exit_status": 256, "cpu_seconds": 99},
        {"name": "fit", "cpu_seconds": 7},
        None,
        None,
    ]
