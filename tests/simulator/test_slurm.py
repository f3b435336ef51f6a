"""Slurm on processors: the times of its passes, its steps, and priorities that follow usage."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.priority.settings import Algorithm, MultifactorSettings, PriorityWeights
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.simulator.engine.clock import SimulationClock
from fairbank.simulator.engine.slurm import SlurmScheduler
from fairbank.simulator.engine.usage_state import PriorityRules
from tests.simulator.slurm_schedules import HOUR, MINUTE, job, starts


def test_job_that_fits_a_hole_starts_at_the_next_backfill() -> None:
    """The main pass stops at the job that does not fit. Backfill ran when that job came, and runs
    again half a minute later.
    """
    jobs = [job(0, 1_000, 6, HOUR), job(1, 1_010, 8, HOUR), job(2, 1_020, 2, MINUTE)]
    assert starts(jobs, 8) == [1_000, 4_600, 1_040]


@pytest.mark.parametrize(("minutes", "begin"), [(59, 1_700_000_000), (60, 1_700_010_800)])
def test_job_must_be_gone_before_the_step_in_which_a_plan_begins(minutes: int, begin: int) -> None:
    """Half of the machine is free for an hour; after that all of it is planned for two hours. The
    job of 60 minutes is planned for 1_700_010_840 (tests/scheduling/test_slurm_on_two_machines.py),
    and starts when the large job has ended.
    """
    now = 1_700_000_000
    jobs = [
        job(0, now, 2, HOUR),
        job(1, now, 4, 2 * HOUR),
        job(2, now, 2, minutes * MINUTE),
        job(3, now, 2, 90 * MINUTE),
    ]
    assert starts(jobs, 4) == [now, now + HOUR, begin, now + 3 * HOUR]


@pytest.mark.parametrize(
    ("limit", "begin"), [(3_559, 40), (3_560, 7_200), (3_590, 7_200), (3_591, 7_200)]
)
def test_backfilled_jobs_do_not_delay_a_plan(limit: int, begin: int) -> None:
    """Backfill runs at 40 and plans the second job for 3630. Every started job ends before 3600,
    and the last job is short enough anyway.
    """
    jobs = [
        job(0, 0, 2, 3_630, HOUR),
        job(1, 10, 4, HOUR),
        job(2, 20, 1, limit),
        job(3, 20, 1, MINUTE),
    ]
    assert starts(jobs, 4, parameters=SchedulerParameters(bf_interval=40)) == [0, HOUR, begin, 40]


def test_less_usage_goes_first() -> None:
    """Ada used the machine for a day. Bob submits last and starts first, as soon as the priorities
    are computed.
    """
    day = 24 * HOUR
    jobs = [
        job(0, 0, 4, day, user=1),
        job(1, 10, 4, HOUR, user=1),
        job(2, 20, 4, HOUR, user=1),
        job(3, 30, 4, HOUR, user=2),
    ]
    assert starts(jobs, 4, PriorityRules()) == [0, day + HOUR, day + 2 * HOUR, day]
    assert starts(jobs, 4) == [0, day, day + HOUR, day + 2 * HOUR]


@pytest.mark.parametrize(
    ("interval", "begin"), [(60, 300), (90, 360), (400, 400), (-1, 1_000), (2_000, 1_000)]
)
def test_first_full_pass_after_new_priorities_starts_the_job_that_is_now_first(
    interval: int, begin: int
) -> None:
    """The machine is half full. Ada's large job is first and Bob's would delay it. At second 300
    Ada's usage counts, Bob's job is first, and it fits; but nothing else happens until 1,000.
    """
    jobs = [job(0, 0, 2, 1_000, user=1), job(1, 10, 4, HOUR, user=1), job(2, 20, 2, HOUR, user=2)]
    parameters = SchedulerParameters(sched_interval=interval)
    assert starts(jobs, 4, PriorityRules(), parameters) == [0, begin + HOUR, begin]


def test_usage_fades() -> None:
    """Ada used ten times as much, but months ago."""
    month = 30 * 24 * HOUR
    before = [job(0, 0, 4, 10 * HOUR, user=1), job(1, 4 * month, 4, HOUR, user=2)]
    then = [job(2, 4 * month + 10, 4, HOUR, user=2), job(3, 4 * month + 20, 4, HOUR, user=1)]
    assert starts([*before, *then], 4, PriorityRules())[2:] == [
        4 * month + 2 * HOUR,
        4 * month + HOUR,
    ]


def test_large_jobs_go_first_where_size_weighs() -> None:
    large = PriorityRules(settings=MultifactorSettings(weights=PriorityWeights(job_size=1_000)))
    jobs = [job(0, 0, 4, HOUR), job(1, 10, 1, HOUR), job(2, 20, 4, HOUR)]
    assert starts(jobs, 4, large, SchedulerParameters(bf_interval=-1)) == [0, 2 * HOUR, HOUR]


def test_number_of_tested_jobs_per_user_is_limited() -> None:
    """One of the two tested jobs is the large job at the head of the queue."""
    jobs = [
        job(0, 0, 6, HOUR),
        job(1, 1, 8, HOUR),
        *(job(number, number, 1, MINUTE) for number in range(2, 5)),
    ]
    assert starts(jobs, 8, parameters=SchedulerParameters(bf_max_job_user=2))[2:] == [30, 60, 90]


def test_user_in_two_groups_is_two_associations() -> None:
    jobs = [
        job(0, 0, 6, HOUR),
        job(1, 1, 8, HOUR),
        *(job(number, number, 1, MINUTE) for number in range(2, 4)),
    ]
    jobs[3] = jobs[3]._replace(group=2)
    assert starts(jobs, 8, parameters=SchedulerParameters(bf_max_job_user=2))[2:] == [30, 60]
    assert starts(jobs, 8, parameters=SchedulerParameters(bf_max_job_assoc=2))[2:] == [30, 30]


def test_main_pass_tests_a_limited_number_of_jobs_per_partition() -> None:
    """Three jobs wait while one job has the machine. When it ends, two of them start, and the third
    at the next full pass.
    """
    jobs = [job(0, 0, 4, 100), *(job(number, number, 1, HOUR) for number in range(1, 4))]
    shallow = SchedulerParameters(partition_job_depth=2, bf_interval=-1, sched_interval=150)
    assert starts(jobs, 4, parameters=SchedulerParameters(bf_interval=-1)) == [0, 100, 100, 100]
    assert starts(jobs, 4, parameters=shallow) == [0, 100, 100, 150]


def test_full_pass_has_the_same_limit_per_partition() -> None:
    """The second job of its partition would fit beside the first, but no pass reaches it while
    another job waits before it.
    """
    jobs = [
        job(0, 0, 2, HOUR),
        job(1, 10, 4, HOUR, user=1),
        job(2, 20, 1, HOUR)._replace(partition=2),
        job(3, 30, 1, HOUR),
    ]
    young = SchedulerParameters(bf_interval=-1, bf_min_age_reserve=2 * HOUR)
    assert starts(jobs, 4, parameters=young)[1:] == [20 + HOUR + 10, 20, 30]
    shallow = SchedulerParameters(
        bf_interval=-1, bf_min_age_reserve=2 * HOUR, partition_job_depth=1
    )
    assert starts(jobs, 4, parameters=shallow)[1:] == [20 + HOUR, 20, 20 + 2 * HOUR]


def test_next_full_pass_starts_jobs_beyond_the_cap_of_starts() -> None:
    jobs = [job(0, 0, 4, 100), *(job(number, number, 1, HOUR) for number in range(1, 4))]
    one = SchedulerParameters(bf_interval=-1, sched_max_job_start=1)
    assert starts(jobs, 4, parameters=one) == [0, 100, 120, 180]


@pytest.mark.parametrize(
    ("microseconds", "begins"),
    [(2, 20), (999_999, 20), (9_999_999, 20), (10_000_000, 21), (60_000_000, 71)],
)
def test_main_passes_keep_their_minimum_interval(microseconds: int, begins: int) -> None:
    """Two jobs come at second 10 and the pass starts one. When it ends at 20, the other waits until
    the next pass may begin.
    """
    jobs = [job(0, 10, 4, 10), job(1, 10, 4, HOUR)]
    rare = SchedulerParameters(sched_min_interval=microseconds, bf_interval=-1)
    assert starts(jobs, 4, parameters=rare) == [10, begins]


def test_full_passes_keep_their_minimum_interval() -> None:
    """Each pass starts one job: the second job starts with the full pass of second 60, the third 60
    s later; or each 101 s after another.
    """
    jobs = [job(number, 10, 1, HOUR) for number in range(3)]
    one: dict[str, Any] = {"sched_max_job_start": 1, "bf_interval": -1}
    assert starts(jobs, 4, parameters=SchedulerParameters(**one)) == [10, 60, 120]
    assert starts(
        jobs, 4, parameters=SchedulerParameters(**one, sched_min_interval=100_000_000)
    ) == [10, 111, 212]


def test_reservation_after_bf_min_age_reserve() -> None:
    """A wide job waits for the end of another. A long job behind it starts on the free nodes,
    unless nodes are reserved.
    """
    jobs = [job(0, 0, 6, HOUR), job(1, 10, 8, HOUR), job(2, 20, 2, 2 * HOUR)]
    assert starts(jobs, 8)[1:] == [HOUR, 2 * HOUR]
    assert starts(jobs, 8, parameters=SchedulerParameters(bf_min_age_reserve=600))[1:] == [
        2 * HOUR + 20,
        20,
    ]


def test_fair_tree_ranks_and_classic_fair_share_weighs_usage() -> None:
    """Ada used slightly more than Bob. For Fair Tree that is a whole rank; for the classic rule it
    is a small difference, which the job size outweighs.
    """
    before = [job(0, 0, 4, 1_000, user=1), job(1, 1, 4, 990, user=2), job(2, 2, 4, 100_000, user=3)]
    then = [job(3, 2_000, 4, HOUR, user=1), job(4, 2_001, 3, HOUR, user=2)]
    weights = MultifactorSettings(weights=PriorityWeights(fairshare=1_000, job_size=900))
    ends = 1_990 + 100_000

    def order(algorithm: Algorithm) -> list[int]:
        return starts(
            [*before, *then],
            4,
            PriorityRules(settings=weights, algorithm=algorithm),
            SchedulerParameters(bf_interval=-1),
        )[3:]

    assert order(Algorithm.FAIR_TREE) == [ends + HOUR, ends]
    assert order(Algorithm.CLASSIC) == [ends, ends + HOUR]


def test_copy_of_the_clock_is_independent() -> None:
    """A copy of the clock answers what would have happened without later jobs."""
    clock = SimulationClock(4, SlurmScheduler(SchedulerParameters(), PriorityRules(), 4))
    jobs = [job(0, 0, 4, HOUR), job(1, 10, 4, HOUR), job(2, 20, 4, HOUR, user=2)]
    fair = [clock.start_without_later(job) for job in jobs[:1]]
    output: list[int] = []
    result = {
        job.number: at
        for at, begun in clock.run(jobs, lambda job: output.append(clock.start_without_later(job)))
        for job in begun
    }
    assert fair == [0]
    assert output == [0, HOUR, HOUR]
    assert result == {0: 0, 2: HOUR, 1: 2 * HOUR}
