"""Every schedule equals the schedule by definition, job by job."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from fairbank.simulator.engine.policies import POLICIES
from fairbank.simulator.traces.workload import TraceJob
from tests.scheduling import reference_schedules
from tests.scheduling.random_workloads import SIZE, crowds, simulated, workloads

DEFINITIONS = {
    "fifo": reference_schedules.fifo,
    "fcfs": reference_schedules.fcfs,
    "easy": reference_schedules.easy,
    "conservative": reference_schedules.conservative,
}


def test_every_policy_has_a_definition() -> None:
    """Slurm's policy has none: on processors it is compared with its result on nodes
    (`test_slurm_on_two_machines`), and that with a real one (`tests/slurm/test_scheduling.py`).
    """
    assert [*DEFINITIONS, "slurm"] == list(POLICIES)


@pytest.mark.parametrize("policy", DEFINITIONS)
@given(jobs=workloads)
def test_schedule_is_as_defined(policy: str, jobs: list[TraceJob]) -> None:
    assert simulated(jobs, POLICIES[policy]) == reference_schedules.schedule(
        jobs, SIZE, DEFINITIONS[policy]
    )


@pytest.mark.parametrize("policy", DEFINITIONS)
@given(jobs=crowds)
@settings(max_examples=5, deadline=None)
def test_long_queue_is_served_as_defined(policy: str, jobs: list[TraceJob]) -> None:
    assert simulated(jobs, POLICIES[policy]) == reference_schedules.schedule(
        jobs, SIZE, DEFINITIONS[policy]
    )
