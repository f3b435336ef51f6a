"""Snapshot on a cluster that changes: nodes go down and return, come and go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.machines.node_snapshot import OnNodes, change_cluster, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.backfill import backfill
from fairbank.scheduling.slurm.main_pass import main_pass
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, PassResult, Scene
from tests.scheduling.test_pass_laws import NOW as CASE_NOW
from tests.scheduling.test_pass_laws import PARAMETERS, QueueCase, snapshots

DOWN, UP = (NodeState.DOWN, "Not responding"), (NodeState.UP, "")


def plan(snapshot: OnNodes) -> PassResult:
    return PassResult(snapshot.machine.cluster, main_pass(snapshot, PARAMETERS, NOW))


def both_plans(snapshot: OnNodes) -> list[SchedulePlan[PendingJob, Placement]]:
    return [main_pass(snapshot, PARAMETERS, CASE_NOW), backfill(snapshot, PARAMETERS, CASE_NOW)]


def shares_by_node(snapshot: OnNodes, job: Active) -> dict[str, tuple[object, ...]]:
    nodes = snapshot.machine.cluster.nodes
    return {nodes[share.place].name: share[1:] for share in job.placement.shares}


def test_node_that_goes_down_gets_no_work_until_it_returns() -> None:
    before = Scene(rack(2)).waits(7).snapshot
    cluster = before.machine.cluster.with_states({"n1": DOWN})
    assert (cluster.nodes[0].state, cluster.nodes[0].reason) == DOWN
    down, lost = change_cluster(before, cluster)
    assert (plan(down).starts, lost) == ({7: "n2"}, [])
    again, _ = change_cluster(down, cluster.with_states({"n1": UP}))
    assert plan(again).starts == plan(before).starts == {7: "n1"}


def test_running_job_stays_on_a_node_that_is_down() -> None:
    before = Scene(rack(2)).runs(3, "n[1-2]", 60).snapshot
    after, lost = change_cluster(before, before.machine.cluster.with_states({"n2": DOWN}))
    assert (after.running, lost) == (before.running, [])
    after.end(after.running[0])
    assert (after.machine.free.idle, before.machine.free.idle) == (0b11, 0)


def test_job_that_loses_one_of_its_nodes_is_returned_and_leaves_the_others() -> None:
    before = Scene(rack(3)).runs(3, "n[1-2]", 60).runs(4, "n3", 60).snapshot
    fewer = NodeTable([rack(3)[2], rack(3)[1]], [PartitionRules(name="batch")])
    after, lost = change_cluster(before, fewer)
    assert [job.number for job in lost] == [3]
    assert shares_by_node(after, after.running[0]) == shares_by_node(before, before.running[1])
    assert fewer.names(after.machine.free.idle) == "n2"


def test_other_states_share_all_that_does_not_depend_on_them() -> None:
    before = Scene(rack(2)).waits(7).snapshot
    plan(before)
    old = before.machine.cluster
    after, _ = change_cluster(before, old.with_states({"n2": DOWN}))
    new = after.machine.cluster
    for name in ("place", "rules", "partitions", "cpus", "memory", "threads", "tmp", "gpus"):
        assert getattr(new, name) is getattr(old, name), name
    assert after.machine.search.empty is before.machine.search.empty
    assert after.machine.search.cluster is after.machine.free.cluster is new
    with pytest.raises(NotFound, match="there is no node 'n3'"):
        old.with_states({"n3": DOWN})


@given(snapshots(), st.data())
@settings(max_examples=15, deadline=None)
def test_other_states_are_as_a_cluster_with_these_states(
    case: QueueCase, data: st.DataObject
) -> None:
    before = case.snapshot()
    names = st.sampled_from([node.name for node in case.nodes])
    kinds = st.sampled_from(NodeState).map(lambda state: (state, f"it is {state.value}"))
    states = data.draw(st.dictionaries(names, kinds))
    nodes = [
        replace(node, state=states[node.name][0], reason=states[node.name][1])
        if node.name in states
        else node
        for node in case.nodes
    ]
    earlier = both_plans(before)
    after, lost = change_cluster(before, before.machine.cluster.with_states(states))
    built = node_snapshot(
        Nodes(NodeTable(nodes, [case.rules]), reservations=case.reserved),
        pending=case.pending,
        running=before.running,
    )
    assert (after.machine.cluster.nodes, lost) == (tuple(nodes), [])
    assert after.machine.cluster.by_weight == built.machine.cluster.by_weight
    assert both_plans(after) == both_plans(built)
    assert both_plans(before) == earlier


@given(snapshots(), st.data())
@settings(max_examples=15, deadline=None)
def test_only_jobs_on_nodes_that_are_gone_are_lost(case: QueueCase, data: st.DataObject) -> None:
    before = case.snapshot()
    old_and_new = [*case.nodes, Node(name="new", cpus=2)]
    nodes = data.draw(st.permutations(old_and_new).map(lambda order: order[1:]))
    after, lost = change_cluster(before, NodeTable(nodes, [case.rules]))
    names = {node.name for node in nodes}
    shares = {job.number: shares_by_node(before, job) for job in before.running}
    kept = {number: held for number, held in shares.items() if held.keys() <= names}
    assert {job.number: shares_by_node(after, job) for job in after.running} == kept
    assert [job for job in before.running if job.number not in kept] == lost
    assert list(after.queue.jobs()) == case.pending
    for place, node in enumerate(nodes):
        held = [share[node.name] for share in kept.values() if node.name in share]
        assert after.machine.free.jobs[place] == len(held)
    for _, reserved in after.machine.reservations:
        assert {nodes[place].name for place in range(len(nodes)) if reserved >> place & 1} == (
            names & {case.nodes[0].name}
        )


@pytest.mark.parametrize(
    ("fields", "job"),
    [
        ({"cpus": 2}, {"exclusive": False, "cpus_per_task": 3}),
        ({"memory": 10}, {"memory_per_node": 20}),
        ({}, {"gpus": (Gpus("a", 1),)}),
    ],
)
def test_node_with_less_than_its_jobs_have_is_refused(
    fields: dict[str, Any], job: dict[str, Any]
) -> None:
    before = Scene(rack(2, gpus=(Gpus("a", 1),))).runs(3, "n2", 60, **job).snapshot
    less = NodeTable(rack(2, **fields), [PartitionRules(name="batch")])
    with pytest.raises(InvalidInput, match="hold more of n2 than there is") as refusal:
        change_cluster(before, less)
    assert refusal.value.remedy == "look which of these jobs still run there: 3"
