"""Laws of schedules that hold for every workload."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fairbank.scheduling.machines.processor_queue import SearchQueue
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.policies import conservative, easy
from fairbank.simulator.engine.clock import OnProcessors
from fairbank.simulator.engine.policies import POLICIES, SimulationPolicy, at_events
from fairbank.simulator.traces.workload import TraceJob
from tests.scheduling.random_workloads import (
    NOW,
    SIZE,
    job,
    simulated,
    snapshot,
    snapshots,
    workloads,
)

every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))


def places(plan: SchedulePlan[TraceJob, int]) -> dict[int, int]:
    """Return the start time of each job that has a start time or a reservation."""
    return {start.job.number: NOW for start in plan.starts} | {
        reservation.job.number: reservation.at for reservation in plan.reservations
    }


@every_policy
@given(jobs=workloads)
def test_no_processor_is_given_twice_and_every_job_starts_once(
    policy: SimulationPolicy, jobs: list[TraceJob]
) -> None:
    starts = simulated(jobs, policy)
    assert all(at >= job.submitted for at, job in zip(starts, jobs, strict=True))
    for at in starts:
        assert (
            sum(
                job.processors
                for begun, job in zip(starts, jobs, strict=True)
                if begun <= at < begun + job.run
            )
            <= SIZE
        )


@every_policy
@given(jobs=workloads)
def test_same_jobs_give_the_same_schedule(policy: SimulationPolicy, jobs: list[TraceJob]) -> None:
    assert simulated(jobs, policy) == simulated(jobs, policy)


@given(workloads)
def test_first_come_first_served_starts_in_the_order_of_the_queue(jobs: list[TraceJob]) -> None:
    starts = simulated(jobs, POLICIES["fcfs"])
    assert starts == sorted(starts)


@given(workloads)
def test_easy_never_delays_the_head(jobs: list[TraceJob]) -> None:
    """The reservation of the first job never moves back from pass to pass, and the job starts no
    later than promised.
    """
    output: dict[int, int] = {}

    def watched(here: OnProcessors, now: int) -> SchedulePlan[TraceJob, int]:
        for head, at, _ in easy(here, now, fully=True).reservations:
            assert at <= output.get(head.number, at)
            output[head.number] = at
        return easy(here, now)

    starts = simulated(jobs, POLICIES["easy"]._replace(scheduler=at_events(SearchQueue, watched)))
    assert all(starts[number] <= at for number, at in output.items())


@given(snapshots)
def test_no_job_is_delayed_by_a_later_one(here: OnProcessors) -> None:
    """Conservative backfill: without the last job, every other job keeps its start time."""
    before = places(conservative(here, NOW, fully=True))
    for last in reversed(list(here.queue.jobs())):
        here.queue.remove(last)
        del before[last.number]
        assert places(conservative(here, NOW, fully=True)) == before


@given(snapshots)
def test_conservative_plan_is_feasible(here: OnProcessors) -> None:
    """If every job uses its whole limit, the plan never exceeds the machine at any second."""
    at = places(conservative(here, NOW, fully=True))
    waiting = list(here.queue.jobs())
    taken = [(NOW, job.ends, job.placement) for job in here.running]
    taken += [(at[job.number], at[job.number] + job.limit, job.processors) for job in waiting]
    for now in {begin for begin, _, _ in taken}:
        assert sum(wide for begin, end, wide in taken if begin <= now < end) <= SIZE


@pytest.mark.parametrize("pass_", [easy, conservative])
@given(here=snapshots)
def test_complete_plan_starts_no_other_job(pass_: Any, here: OnProcessors) -> None:
    assert pass_(here, NOW, fully=True).starts == pass_(here, NOW).starts


@pytest.mark.parametrize("pass_", [easy, conservative])
@given(here=snapshots)
def test_pass_changes_nothing(pass_: Any, here: OnProcessors) -> None:
    before = (here.machine.free, list(here.running), list(here.queue.jobs()))
    assert pass_(here, NOW) == pass_(here, NOW)
    assert (here.machine.free, list(here.running), list(here.queue.jobs())) == before


HOUR = 3_600


@pytest.mark.parametrize("pass_", [easy, conservative])
def test_six_nodes_are_idle_and_two_come_free_in_three_hours(pass_: Any) -> None:
    """Example of RCAC: while a job waits for eight nodes, only jobs of up to three hours start on
    the six.
    """
    eight, short, long = (
        job(0, 0, 8, HOUR, HOUR),
        job(1, 0, 3, 3 * HOUR, HOUR),
        job(2, 0, 3, 3 * HOUR + 1, HOUR),
    )
    plan = pass_(
        snapshot(
            [(3 * HOUR, 2)], [eight, long._replace(number=1), short._replace(number=2)], size=8
        ),
        NOW,
        fully=True,
    )
    assert [start.job.limit for start in plan.starts] == [3 * HOUR]
    assert (plan.reservations[0].job, plan.reservations[0].at) == (eight, NOW + 3 * HOUR)


def test_full_partition_blocks_only_its_own_jobs() -> None:
    """FIFO of SLURM 2002: later jobs of a blocked partition are not tried, although they
    would fit.
    """
    jobs = [
        job(0, 0, 4, 10, 10),
        job(1, 0, 4, 10, 10),
        job(2, 0, 1, 10, 10),
        job(3, 0, 1, 10, 10, partition=2),
    ]
    assert simulated(jobs, POLICIES["fifo"]) == [0, 10, 10, 0]
