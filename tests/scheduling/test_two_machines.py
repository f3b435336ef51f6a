"""One scheduling core on two machines: nodes of one CPU each behave as identical processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, SchedulePlan
from fairbank.scheduling.policies.fcfs import fcfs, fifo
from fairbank.scheduling.policies.reservations import conservative, easy
from fairbank.simulator.engine.policies import POLICIES
from fairbank.simulator.traces.workload import TraceJob
from tests.scheduling.clusters import rack
from tests.scheduling.random_workloads import SIZE, simulated, workloads
from tests.scheduling.scenes import NOW, Scene

Pass = Callable[..., SchedulePlan[Any, Any]]
EVERY: dict[str, Pass] = {"fifo": fifo, "fcfs": fcfs, "easy": easy, "conservative": conservative}


def on_one_cpu_nodes(jobs: Sequence[TraceJob], pass_: Pass) -> list[int]:
    """Return the start time of each job on nodes of one CPU. At any instant: first the ends, then
    the arrivals, then one pass.
    """
    cluster = NodeTable(
        [Node(name=f"n{number}") for number in range(SIZE)],
        [PartitionRules(name="1"), PartitionRules(name="2")],
    )
    here, ends, starts, coming = (
        node_snapshot(Nodes(cluster)),
        list[tuple[int, Any]](),
        dict[int, int](),
        list(jobs),
    )
    while coming or ends:
        now = min([job.submitted for job in coming[:1]] + [end for end, _ in ends])
        for _, running in [each for each in ends if each[0] == now]:
            here.end(running)
        ends = [each for each in ends if each[0] > now]
        while coming and coming[0].submitted == now:
            here.queue.add(waiting(coming.pop(0)))
        for job, placement in pass_(here, now).starts:
            starts[job.number] = now
            ends.append((now + jobs[job.number].run, here.start(job, placement, now)))
    return [starts[job.number] for job in jobs]


def waiting(job: TraceJob) -> PendingJob:
    expected, partitions = ResourceRequest(nodes=job.processors), (str(job.partition),)
    return PendingJob(
        number=job.number,
        wanted=expected,
        partitions=partitions,
        limit=job.limit,
        submitted=job.submitted,
    )


@pytest.mark.parametrize("policy", EVERY)
@given(jobs=workloads)
@settings(max_examples=40, deadline=None)
def test_the_same_jobs_start_when_they_start_on_processors(
    policy: str, jobs: list[TraceJob]
) -> None:
    assert on_one_cpu_nodes(jobs, EVERY[policy]) == simulated(jobs, POLICIES[policy])


def decided(pass_: Pass, scene: Scene) -> tuple[dict[int, str], dict[int, float], dict[int, str]]:
    """Return the starts with their nodes, the reservations in minutes, and the reasons of other
    jobs.
    """
    snapshot: OnNodes = scene.snapshot
    plan: SchedulePlan[PendingJob, Placement] = pass_(snapshot, NOW)
    starts = {start.job.number: scene.cluster.names(start.placement.nodes) for start in plan.starts}
    return (
        starts,
        {each.job.number: (each.at - NOW) / 60 for each in plan.reservations},
        dict(plan.reasons),
    )


@pytest.mark.parametrize("policy", EVERY)
def test_job_that_never_fits_blocks_no_job(policy: str) -> None:
    scene = Scene(rack(2)).waits(1, nodes=2, constraint="gold").waits(2)
    assert decided(EVERY[policy], scene) == ({2: "n1"}, {}, {1: BAD_CONSTRAINTS})


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_gap_before_the_head_is_filled_on_any_nodes(policy: str) -> None:
    """The first job has a start time but no nodes yet, so long jobs take nodes that it does not
    need.
    """
    scene = Scene(rack(4)).runs(1, "n[1-2]", 180)
    scene.waits(2, nodes=3, minutes=60).waits(3, nodes=1, minutes=600).waits(
        4, nodes=1, minutes=180
    ).waits(5, nodes=1, minutes=60)
    starts, planned, reasons = decided(EVERY[policy], scene)
    assert starts == {3: "n3", 4: "n4"}
    assert planned[2] == 180
    assert reasons == {2: RESOURCES}


@pytest.mark.parametrize("policy", EVERY)
def test_no_job_runs_into_a_reservation(policy: str) -> None:
    scene = Scene(rack(1)).reserves("class", "n1", 30, 90).waits(1, minutes=60)
    starts, planned, _ = decided(EVERY[policy], scene)
    assert starts == {}
    assert set(planned.values()) <= {90}


def test_a_job_of_two_partitions_starts_in_the_one_that_is_not_blocked() -> None:
    parts = PartitionRules(name="a", nodes=("n1", "n2")), PartitionRules(name="b", nodes=("n3",))
    scene = Scene(rack(3), *parts).runs(1, "n1", 60, partition="a")
    scene.waits(2, nodes=2, partitions=("a",)).waits(3, partitions=("a", "b")).waits(
        4, partitions=("b",)
    )
    assert decided(fifo, scene) == ({3: "n3"}, {}, {2: RESOURCES, 4: RESOURCES})
