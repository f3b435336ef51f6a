"""Parts of a plan about jobs that do not start."""

from __future__ import annotations

from fairbank.scheduling.plan import PRIORITY, RESOURCES, JobReservation, PlannedStart, SchedulePlan


def test_head_waits_for_resources_and_others_for_priority() -> None:
    plan = SchedulePlan([PlannedStart("a", 4)], [JobReservation("b", 3_600, 8)], {2: RESOURCES})
    assert [plan.reason(number) for number in (2, 3, 4)] == [RESOURCES, PRIORITY, PRIORITY]


def test_empty_plan_starts_no_job() -> None:
    assert SchedulePlan() == SchedulePlan((), (), {}, PRIORITY)
