"""A simulation that was stopped continues as if it had not been stopped, or with changes."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from fairbank.core.time import DAY
from fairbank.scheduling.event_loop import simulate_forward
from fairbank.simulator.engine.clock import SimulationClock
from fairbank.simulator.engine.policies import POLICIES, policy_named
from fairbank.simulator.engine.state import WEEK, SimulationState, StateRecorder
from fairbank.simulator.traces.fast_reader import fast_line
from fairbank.simulator.traces.synthetic import SitePartition, SyntheticSite, month
from fairbank.simulator.traces.workload import TraceJob, Workload

SIZE = 32
HOUR = 3_600


def busy() -> list[TraceJob]:
    """Return some days of jobs of which most wait."""
    centre = SyntheticSite(
        pools=(SitePartition("cpu", SIZE),), projects=3, users=6, jobs=150, days=4, node_failures=0
    )
    return list(Workload(map(fast_line, month(centre, seed=5).jobs), SIZE))


def starts_of(jobs: list[TraceJob], name: str) -> dict[int, int]:
    clock = SimulationClock(SIZE, policy_named(name).scheduler(SIZE))
    return {job.number: now for now, begun in clock.run(jobs) for job in begun}


def stopped(jobs: list[TraceJob], name: str, at: int) -> SimulationState:
    states: list[SimulationState] = []
    recorder = StateRecorder(SIZE, policy_named(name).scheduler(SIZE), states.append)
    recorder.record_at(at)
    for now, _ in recorder.run(jobs):
        if now > at:
            break
    return states[0]


@pytest.mark.parametrize("name", POLICIES)
def test_stopped_simulation_continues_unchanged(name: str) -> None:
    """With the run times of the jobs and the later arrivals, each job starts when it did."""
    jobs = busy()
    starts = starts_of(jobs, name)
    waited = [job for job in jobs if starts[job.number] > job.submitted]
    assert len(waited) > 40
    for job in waited[::7]:
        for at in (job.submitted, (job.submitted + starts[job.number]) // 2):
            there = stopped(jobs, name, at)
            later = (job for job in jobs if job.submitted > at)
            snapshot, scheduler = there.resume()
            came = simulate_forward(
                snapshot,
                scheduler,
                at,
                job.number,
                run_time=lambda job, limit, elapsed: job.run,
                arrivals=later,
            )
            assert came.at == starts[job.number]


@pytest.mark.parametrize("name", POLICIES)
def test_state_holds_waiting_and_running_jobs(name: str) -> None:
    jobs = busy()
    starts = starts_of(jobs, name)
    at = jobs[110].submitted
    there = stopped(jobs, name, at)
    assert [job.number for job in there.waiting] == [
        job.number for job in jobs if job.submitted <= at < starts[job.number]
    ]
    assert {run.number for run in there.running} == {
        job.number for job in jobs if starts[job.number] <= at < starts[job.number] + job.run
    }
    assert all(run.started == starts[run.number] for run in there.running)
    assert there.recent_arrivals[-1].submitted <= at


def one(
    number: int, submitted: int, processors: int = 1, limit: int = 100, run: int = 50
) -> TraceJob:
    return TraceJob(number, submitted, processors, limit, run, 1, number, 1, 1)


def test_history_is_of_jobs_that_have_ended() -> None:
    jobs = [one(0, 0, run=20), one(1, 0, run=90), one(2, 10, run=70)]
    assert stopped(jobs, "fcfs", 50).history.ratios(1) == [0.2]
    assert stopped(jobs, "fcfs", 90).history.ratios(1) == [0.2, 0.7, 0.9]


def again(came: list[TraceJob], at: int) -> set[tuple[int, ...]]:
    """Return the next three arrivals, in hours from then, of many draws."""
    there = stopped([], "fcfs", at)._replace(recent_arrivals=came)
    draws = (islice(there.arrivals(Random(seed)), 3) for seed in range(40))
    return {tuple((job.submitted - at) // HOUR for job in draw) for draw in draws}


def test_arrivals_repeat_past_hours_days_or_weeks() -> None:
    at = 3 * WEEK
    assert again([], at) == {()}
    assert again([one(0, at - 2 * HOUR), one(1, at - 1_800)], at) == {(0, 1, 2), (1, 3, 5)}
    assert again([one(0, at - 2 * DAY), one(1, at - 23 * HOUR)], at) == {(1, 25, 49), (25, 73, 121)}
    assert again([one(0, at - 2 * WEEK), one(1, at - WEEK)], at) == {
        (),
        (7 * 24, 3 * 7 * 24, 5 * 7 * 24),
    }
