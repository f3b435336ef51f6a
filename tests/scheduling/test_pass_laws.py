"""Laws of the passes over nodes that hold for every cluster and every set of running and waiting
jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.time import Instant
from fairbank.scheduling.machines.node_snapshot import OnNodes, apply_plan, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes, PreemptBy, Preemption, QosRules
from fairbank.scheduling.pending_job import Active, PendingJob, to_running
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch, find_placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.backfill import backfill
from fairbank.scheduling.slurm.main_pass import main_pass
from fairbank.scheduling.slurm.parameters import SchedulerParameters, expected_end
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.scheduling.slurm.queue_order import queue_entries
from tests.scheduling.clusters import clusters, resource_requests, rules

pytestmark = pytest.mark.slow

NOW = 90_000
PARAMETERS = SchedulerParameters(bf_window=60)


class QueueCase(NamedTuple):
    nodes: list[Node]
    rules: PartitionRules
    running: list[tuple[PendingJob, int]]
    """And when each ends, in seconds from now."""
    pending: list[PendingJob]
    reserved: list[Reservation]
    preemption: Preemption = Preemption()

    def snapshot(self) -> OnNodes:
        cluster = NodeTable(self.nodes, [self.rules])
        free, places, running = FreeResources(cluster), PlacementSearch(cluster), list[Active]()
        for job, seconds in self.running:
            if (
                where := find_placement(
                    cluster, free, places.request(job.wanted, "batch"), cluster.usable
                )
            ) is not None:
                free.take(where)
                running.append(to_running(job, where, NOW - 600, 600 + seconds))
        nodes = Nodes(cluster, reservations=self.reserved, preemption=self.preemption)
        return node_snapshot(nodes, pending=self.pending, running=running)


@st.composite
def snapshots(draw: st.DrawFn) -> QueueCase:
    nodes = draw(clusters)
    expected, seconds = resource_requests(len(nodes)), st.integers(-60, 4_000)

    def job(number: int) -> PendingJob:
        return PendingJob(
            number=number,
            wanted=draw(expected),
            priority=draw(st.integers(1, 3)),
            limit=draw(st.integers(1, 5_000)),
            time_min=draw(st.one_of(st.none(), st.none(), st.integers(1, 600))),
        )

    running = [(job(number), draw(seconds)) for number in range(draw(st.integers(0, 4)))]
    pending = [job(100 + number) for number in range(draw(st.integers(1, 6)))]
    begin = NOW + draw(seconds)
    reserved = Reservation(
        name="class", nodes=(nodes[0].name,), begin=Instant(begin), end=Instant(begin + 1_000)
    )
    return QueueCase(
        nodes, draw(rules), running, pending, draw(st.sampled_from([[], [], [reserved]]))
    )


@given(snapshots())
@settings(max_examples=60, deadline=None)
def test_pass_never_oversubscribes_and_is_repeatable(case: QueueCase) -> None:
    snapshot = case.snapshot()
    cpus, memory, waiting = (
        snapshot.machine.free.cpus.copy(),
        snapshot.machine.free.memory.copy(),
        list(snapshot.queue.jobs()),
    )
    for decide in (main_pass, backfill, run_passes):
        plan = decide(snapshot, PARAMETERS, NOW)
        assert plan == decide(case.snapshot(), PARAMETERS, NOW)
        assert np.array_equal(snapshot.machine.free.cpus, cpus)
        assert np.array_equal(snapshot.machine.free.memory, memory)
        assert list(snapshot.queue.jobs()) == waiting
        free = apply_plan(snapshot, plan, NOW).machine.free
        for left in (
            free.cpus,
            free.memory,
            *free.gpus.values(),
            case.rules.rows * free.cpus - free.shared,
        ):
            assert (left >= 0).all()
        numbers = [start.job.number for start in plan.starts]
        assert len(numbers) == len(set(numbers))
        assert not set(numbers) & {reservation.job.number for reservation in plan.reservations}
        assert not set(numbers) & set(plan.reasons)


@given(snapshots())
@settings(max_examples=60, deadline=None)
def test_main_pass_stops_at_the_first_job_that_does_not_fit(case: QueueCase) -> None:
    snapshot = case.snapshot()
    plan = main_pass(snapshot, PARAMETERS, NOW)
    ranked, _ = queue_entries(snapshot.machine, snapshot.queue.jobs(), NOW)
    order = [entry.job.number for entry in ranked]
    starts = [start.job.number for start in plan.starts]
    assert starts == [number for number in order if number in starts]
    blocking = [
        number
        for number in order
        if plan.reasons.get(number) == "Resources"
        and not next(job for job in case.pending if job.number == number).wanted.required
    ]
    if blocking:
        assert all(order.index(number) < order.index(blocking[0]) for number in starts)


@given(snapshots())
@settings(max_examples=100, deadline=None)
def test_plans_are_feasible_and_not_delayed_by_later_jobs(case: QueueCase) -> None:
    snapshot = case.snapshot()
    plan = backfill(snapshot, PARAMETERS, NOW)
    order = [
        entry.job.number
        for entry in queue_entries(
            snapshot.machine, snapshot.queue.jobs(), NOW, by_least_time=True
        )[0]
    ]
    within = [
        reservation
        for reservation in plan.reservations
        if reservation.at < NOW + PARAMETERS.window_seconds
    ]
    for one, other in combinations(within, 2):
        if one.placement.nodes & other.placement.nodes:
            assert apart(one.at, seconds(one.job), other.at, seconds(other.job))
    for start in plan.starts:
        for reservation in within:
            if (
                order.index(reservation.job.number) < order.index(start.job.number)
                and reservation.placement.nodes & start.placement.nodes
            ):
                assert NOW + (start.job.limit or 0) < reservation.at + PARAMETERS.bf_resolution
    for reservation in within:
        assert fits_then(snapshot, plan, reservation.at, reservation.placement)
        assert keeps_off(
            case.reserved,
            snapshot.machine.cluster,
            reservation.at,
            seconds(reservation.job),
            reservation.placement,
        )


@given(snapshots(), st.data())
@settings(max_examples=60, deadline=None)
def test_preempted_nodes_are_taken_once(case: QueueCase, data: st.DataObject) -> None:
    def kind(job: PendingJob) -> PendingJob:
        """Draw an urgent job, or a requeued scavenger with the highest priority: the most likely to
        be preempted again at once.
        """
        qos, nodes = (
            data.draw(st.sampled_from(["urgent", "scavenge"])),
            data.draw(st.integers(1, len(case.nodes))),
        )
        return replace(
            job,
            qos=qos,
            expedited=qos == "scavenge",
            wanted=ResourceRequest(nodes=nodes, exclusive=True),
        )

    drawn, ran = (
        [kind(job) for job in case.pending],
        [(kind(job), seconds) for job, seconds in case.running],
    )
    rules = Preemption(by=PreemptBy.QOS, qos={"urgent": QosRules(preempts=frozenset({"scavenge"}))})
    snapshot = case._replace(running=ran, pending=drawn, preemption=rules).snapshot()
    for decide in (main_pass, backfill, run_passes):
        plan = decide(snapshot, PARAMETERS, NOW)
        taken = [number for start in plan.starts for number in start.placement.preempted]
        assert len(taken) == len(set(taken))
        assert set(taken) <= {job.number for job in snapshot.running if job.job.qos == "scavenge"}
        after = apply_plan(snapshot, plan, NOW)
        assert {job.number for job in after.running} == (
            {job.number for job in snapshot.running} - set(taken)
        ) | {start.job.number for start in plan.starts}
        assert not after.machine.free.overdrawn()


def seconds(job: PendingJob) -> int:
    """Return the time reserved for the job, the minimum that it has once it starts."""
    assert job.limit is not None
    return min(job.limit, job.time_min or job.limit)


def apart(one: int, lasts: int, other: int, lasting: int) -> bool:
    return one + lasts <= other or other + lasting <= one


def fits_then(
    snapshot: OnNodes, plan: SchedulePlan[PendingJob, Placement], at: int, placement: Placement
) -> bool:
    """Return True if the nodes have the planned resources after all jobs have ended that end by
    then.
    """
    free = FreeResources(snapshot.machine.cluster)
    for job in apply_plan(snapshot, plan, NOW).running:
        if expected_end(job.ends, NOW) > at:
            free.take(job.placement)
    free.take(placement)
    rows = max(rules.rows for rules in snapshot.machine.cluster.rules.values())
    lefts = (free.cpus, free.memory, *free.gpus.values(), rows * free.cpus - free.shared)
    return all((left >= 0).all() for left in lefts)


def keeps_off(
    reserved: Sequence[Reservation], cluster: NodeTable, at: int, lasts: int, placement: Placement
) -> bool:
    return all(
        at >= reservation.end or at + lasts < reservation.begin
        for reservation in reserved
        if cluster.named(reservation.nodes) & placement.nodes
    )
