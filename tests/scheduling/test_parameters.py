"""Scheduler parameters of an administrator."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.scheduling.slurm.parameters import SchedulerParameters, parse_parameters


def test_slurms_own_string_is_read() -> None:
    result = parse_parameters(
        "bf_interval=10,bf_continue,"
        " default_queue_depth=1000,sched_min_interval=2000,defer,max_rpc_cnt=150,"
    )
    assert result == SchedulerParameters(
        bf_interval=10, bf_continue=True, default_queue_depth=1_000, sched_min_interval=2_000
    )
    assert parse_parameters("") == SchedulerParameters()
    assert parse_parameters("BF_Interval=10,BF_CONTINUE,Ignore_NUMA") == SchedulerParameters(
        bf_interval=10, bf_continue=True
    ), "slurmctld takes either"


@pytest.mark.parametrize(
    ("text", "message", "field", "remedy"),
    [
        (
            "bf_windw=10",
            "'bf_windw' is not a parameter of the scheduler",
            "SchedulerParameters",
            "there are: ",
        ),
        (
            "bf_window=0",
            "0 is not a bf_window",
            "bf_window",
            "a whole number from 1 to 43200 (minutes)",
        ),
        (
            "bf_resolution=",
            "nothing is not a bf_resolution",
            "bf_resolution",
            "a whole number from 1 to 3600 (seconds)",
        ),
        (
            "bf_interval=0",
            "0 is not a bf_interval",
            "bf_interval",
            "a whole number -1, or from 1 to 10800",
        ),
        (
            "bf_max_job_test=1e3",
            "1e3 is not a bf_max_job_test",
            "bf_max_job_test",
            "a whole number from 1 to 1000000 (jobs)",
        ),
        (
            "bf_continue=yes",
            "bf_continue takes no value",
            "SchedulerParameters",
            "write bf_continue alone",
        ),
        (
            "bf_window=10,BF_WINDOW=20",
            "bf_window is given twice",
            "SchedulerParameters",
            "give it once",
        ),
    ],
)
def test_wrong_parameter_is_reported_with_the_remedy(
    text: str, message: str, field: str, remedy: str
) -> None:
    with pytest.raises(InvalidInput) as no:
        parse_parameters(text)
    assert no.value.message == message
    assert no.value.field == field
    assert str(no.value.remedy).startswith(remedy)


@pytest.mark.parametrize(
    "values",
    [
        {"bf_window": 43_201},
        {"sched_interval": -2},
        {"sched_interval": 0},
        {"bf_min_prio_reserve": -1},
    ],
)
def test_no_setting_is_out_of_range(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as no:
        SchedulerParameters(**values)
    assert no.value.field in values


def test_main_pass_is_due_when_asked_for_but_not_too_often() -> None:
    parameters = SchedulerParameters(sched_interval=60, sched_min_interval=2_000)
    assert [parameters.is_main_due(0, True, now) for now in (2_000, 2_001)] == [False, True]
    assert not parameters.is_main_due(0, False, 10**12)


def test_it_is_due_in_full_every_interval_however_often_it_runs_between() -> None:
    parameters = SchedulerParameters(sched_interval=60, sched_min_interval=2_000)
    ended = full = 0
    fully: list[int] = []
    for now in range(0, 130_000_000, 500_000):  # something is submitted twice a second
        if parameters.is_full_due(full, now // 1_000_000):
            ended, full = now, now // 1_000_000
            fully.append(full)
        elif parameters.is_main_due(ended, True, now):
            ended = now
    assert fully == [60, 120]
    assert not SchedulerParameters(sched_interval=-1).is_full_due(0, 10**12)


def test_backfill_is_due_after_its_interval_if_anything_changed() -> None:
    parameters = SchedulerParameters(bf_interval=30)
    assert [parameters.is_backfill_due(100, True, now) for now in (129, 130)] == [False, True]
    assert not parameters.is_backfill_due(100, False, 1_000)
    assert not SchedulerParameters(bf_interval=-1).is_backfill_due(0, True, 10**6)
