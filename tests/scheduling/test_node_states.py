"""Table of nodes with other states, and nodes that have less than their jobs hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairbank.cluster.node import Gpus, NodeState
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.backfill import backfill
from fairbank.scheduling.slurm.main_pass import main_pass
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import Scene
from tests.scheduling.test_pass_laws import NOW as CASE_NOW
from tests.scheduling.test_pass_laws import PARAMETERS, QueueCase, snapshots

DOWN = NodeState.DOWN, "Not responding"


def both_plans(snapshot: OnNodes) -> list[SchedulePlan[PendingJob, Placement]]:
    return [main_pass(snapshot, PARAMETERS, CASE_NOW), backfill(snapshot, PARAMETERS, CASE_NOW)]


def test_other_states_share_all_that_does_not_depend_on_them() -> None:
    old = NodeTable(rack(2))
    names = ("place", "rules", "partitions", "cpus", "memory", "threads", "tmp", "gpus")
    parts = {name: getattr(old, name) for name in names}  # some are computed when first read
    new = old.with_states({"n2": DOWN})
    assert (new.nodes[1].state, new.nodes[1].reason) == DOWN
    for name, part in parts.items():
        assert getattr(new, name) is part, name
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
    changed = case.snapshot().machine.cluster.with_states(states)
    built = NodeTable(nodes, [case.rules])
    assert (changed.nodes, changed.by_weight) == (built.nodes, built.by_weight)
    on_changed, on_built = (
        node_snapshot(
            Nodes(table, reservations=case.reserved), pending=case.pending, running=before.running
        )
        for table in (changed, built)
    )
    assert both_plans(on_changed) == both_plans(on_built)


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
        node_snapshot(Nodes(less), running=before.running)
    assert refusal.value.remedy == "look which of these jobs still run there: 3"
