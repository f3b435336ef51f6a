"""Reasons in a plan of jobs that do not start."""

from __future__ import annotations

from fairbank.scheduling.plan import PRIORITY, RESOURCES, JobReservation, PlannedStart, SchedulePlan


def test_everybody_waits_for_a_reason_the_head_for_room_the_others_for_the_head() -> None:
    plan = SchedulePlan([PlannedStart("a", 4)], [JobReservation("b", 3_600, 8)], {2: RESOURCES})
    assert [plan.reason(number) for number in (2, 3, 4)] == [RESOURCES, PRIORITY, PRIORITY]


def test_a_plan_of_nothing_has_nobody_start() -> None:
    assert SchedulePlan() == SchedulePlan((), (), {}, PRIORITY)
