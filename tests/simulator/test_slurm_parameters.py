"""Every parameter of Slurm's passes that applies to processors, in an example whose schedule was
computed by hand. A main pass runs whenever a job comes or ends; the full pass after a minute of the
trace, and then each minute if a job that the other passes do not reach may start. Backfill runs
from second 30 on, half a minute after its last cycle, if anything changed since. Source:
docs/reference/slurm-rules.md, "Scheduler parameters".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.simulator.engine.policy_settings import policy_of
from fairbank.simulator.traces.workload import TraceJob
from tests.simulator.slurm_schedules import HOUR, MINUTE, job, starts


class Example(NamedTuple):
    """Jobs on some processors with their starts: by default, and with other values of the
    parameter. `beside` are further parameters.
    """

    about: str
    size: int
    jobs: list[TraceJob]
    default: list[int]
    otherwise: dict[int, list[int]]
    beside: Mapping[str, Any] = {}


NO_BACKFILL: dict[str, Any] = {"bf_interval": -1}
ONE_BY_ONE = {**NO_BACKFILL, "sched_max_job_start": 1}

THREE_AT_ONCE = [job(number, 10, 1, HOUR) for number in range(3)]
FOUR_BEHIND_ONE = [job(0, 0, 4, 100), *(job(number, number, 1, HOUR) for number in range(1, 5))]
"""Four jobs that all fit when the running one ends."""


def behind_a_wide_one(*small: TraceJob) -> list[TraceJob]:
    """Return an example in which 6 of 8 processors are busy for an hour and a job waits for all of
    them. The other jobs fit beside the first.
    """
    return [job(0, 0, 6, HOUR), job(1, 1, 8, HOUR), *small]


EXAMPLES = {
    "sched_interval": Example(
        "each full pass starts one more; without any only an end does",
        4, THREE_AT_ONCE, [10, 60, 120], {25: [10, 25, 50], -1: [10, 10 + HOUR, 10 + 2 * HOUR]},
        ONE_BY_ONE,
    ),
    "sched_min_interval": Example(
        "job 0 ends 10 s after the pass that started it",
        4, [job(0, 10, 4, 10), job(1, 10, 4, HOUR)], [10, 20], {999_999: [10, 20], 10_000_000: [10,
        21]}, NO_BACKFILL,
    ),
    "sched_max_job_start": Example(
        "no pass starts more", 4, THREE_AT_ONCE, [10, 10, 10], {1: [10, 60, 120], 2: [10, 10, 60]},
        NO_BACKFILL,
    ),
    "default_queue_depth": Example(
        "an event tests one more than it says; the full pass of second 120 tests all",
        4, FOUR_BEHIND_ONE, [0, 100, 100, 100, 100], {0: [0, 100, 120, 120, 120], 1: [0, 100, 100,
        120, 120]}, NO_BACKFILL,
    ),
    "partition_job_depth": Example(
        "as many as it says are tested of each partition",
        4, [*FOUR_BEHIND_ONE[:4], FOUR_BEHIND_ONE[4]._replace(partition=2)], [0, 100, 100, 100,
        100],
        {2: [0, 100, 100, 120, 100], 3: [0, 100, 100, 100, 100]}, NO_BACKFILL,
    ),
    "bf_interval": Example(
        "the cycle of second 30 is over when job 2 comes; without backfill it waits behind job 1",
        8, behind_a_wide_one(job(2, 31, 1, 10 * MINUTE), job(3, 40, 1, MINUTE)), [0, HOUR, 60, 60],
        {10: [0, HOUR, 31, 41], -1: [0, HOUR, 2 * HOUR, 2 * HOUR]},
    ),
    "bf_window": Example(
        "minutes: room is kept for job 1 at the end of job 0, unless that is beyond the window",
        8, [job(0, 0, 6, 3 * HOUR), job(1, 1, 8, HOUR), job(2, 2, 2, 10 * HOUR)], [0, 3 * HOUR,
        4 * HOUR],
        {200: [0, 3 * HOUR, 4 * HOUR], 120: [0, 10 * HOUR + 30, 30]},
    ),
    "bf_resolution": Example(
        "room is kept from 3590 on, which is 3540 in steps of a minute; job 2 would end at 3580",
        4, [job(0, 0, 2, 3_590), job(1, 1, 4, HOUR), job(2, 2, 2, 3_550)], [0, 3_590, 3_590 + HOUR],
        {1: [0, 3_590, 30], 600: [0, 3_590, 3_590 + HOUR]},
    ),
    "bf_max_job_test": Example(
        "jobs 1 and 2, which do not fit, are tested before job 3",
        8, behind_a_wide_one(job(2, 2, 4, HOUR), job(3, 3, 2, MINUTE)), [0, HOUR, 2 * HOUR, 30],
        {2: [0, HOUR, 2 * HOUR, 2 * HOUR], 3: [0, HOUR, 2 * HOUR, 30]},
    ),
    "bf_max_job_start": Example(
        "no cycle starts more",
        8, behind_a_wide_one(job(2, 2, 1, HOUR // 2), job(3, 3, 1, HOUR // 2)), [0, HOUR, 30, 30],
        {1: [0, HOUR, 30, 60]},
    ),
    "bf_max_job_user": Example(
        "job 1 is the first of its user",
        8, behind_a_wide_one(job(2, 2, 1, MINUTE), job(3, 3, 1, MINUTE, user=2)), [0, HOUR, 30, 30],
        {1: [0, HOUR, 2 * HOUR, 30], 2: [0, HOUR, 30, 30]},
    ),
    "bf_max_job_assoc": Example(
        "the same of a user in a group, whatever is said of users",
        8, behind_a_wide_one(job(2, 2, 1, MINUTE), job(3, 3, 1, MINUTE, group=2)), [0, HOUR, 30,
        30],
        {1: [0, HOUR, 2 * HOUR, 30]}, {"bf_max_job_user": 9},
    ),
    "bf_max_job_part": Example(
        "the same of a partition",
        8, behind_a_wide_one(job(2, 2, 1, MINUTE, user=2), job(3, 3, 1, MINUTE, partition=2)), [0,
        HOUR, 30, 30],
        {1: [0, HOUR, 2 * HOUR, 30]},
    ),
    "bf_max_job_user_part": Example(
        "the same of a user in a partition",
        8, behind_a_wide_one(job(2, 2, 1, MINUTE), job(3, 3, 1, MINUTE, partition=2)), [0, HOUR, 30,
        30],
        {1: [0, HOUR, 2 * HOUR, 30]},
    ),
    "bf_min_age_reserve": Example(
        "at 30, when job 2 comes, job 1 has waited for 29 s",
        8, behind_a_wide_one(job(2, 30, 2, 2 * HOUR)), [0, HOUR, 2 * HOUR], {29: [0, HOUR,
        2 * HOUR], 30: [0, 2 * HOUR + 30, 30]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_parameter_does_what_it_says(name: str) -> None:
    about, size, jobs, default, otherwise, beside = EXAMPLES[name]
    assert starts(jobs, size, parameters=SchedulerParameters(**beside)) == default, about
    result = {
        value: starts(jobs, size, parameters=SchedulerParameters(**{**beside, name: value}))
        for value in otherwise
    }
    assert result == otherwise, about


@pytest.mark.parametrize("name", sorted(set(SchedulerParameters.__struct_fields__) - set(EXAMPLES)))
def test_file_is_refused_or_reported_if_it_contradicts_the_machine(name: str) -> None:
    """A file never changes the workload without a message."""
    other = "true" if getattr(SchedulerParameters(), name) is False else "7"
    text = f'base = "slurm"\n[scheduler]\n{name} = {other}'.encode()
    try:
        remarks = policy_of("own", text).remarks
    except InvalidInput as no:
        assert no.message == f"{name} is not simulated"
    else:
        assert remarks == [f"changes nothing here: {name}"]
