"""One of ten thousand nodes goes down and returns: the change, beside a cluster built again."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from benchmarks.full_cluster import full_cluster
from benchmarks.measure import Say, Table, at_most, ratio, time_each
from fairbank.cluster.node import NodeState
from fairbank.scheduling.machines.node_snapshot import OnNodes, change_cluster, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.placement.node_table import NodeTable

NODES = JOBS = 10_000
MILLISECONDS, FACTOR = 20, 5.0
PLACE = 5_000
DOWN, RETURNS, BUILT = "a node goes down", "it returns", "the same cluster, built again"
ABOUT = (
    f"Snapshot of {NODES:,} nodes, all but 200 of them filled with jobs of all sizes, and"
    f" {JOBS:,} pending jobs. One node goes down and returns; the snapshot before stays as it is."
    " CPU time until the next pass can begin."
)


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 5 if short else 21
    say(f"one of {NODES:,} nodes: {rounds} rounds")
    before = full_cluster(NODES, JOBS, free=200)
    cluster = before.machine.cluster
    node = cluster.nodes[PLACE].name
    without_node = changed(before, {node: (NodeState.DOWN, "Not responding")})
    rules = tuple(cluster.rules.values())
    nodes = list(cluster.nodes)
    nodes[PLACE] = msgspec.structs.replace(nodes[PLACE], state=NodeState.DOWN)

    def build() -> OnNodes:
        table = NodeTable(nodes, rules)
        built = node_snapshot(Nodes(table), pending=before.queue.jobs(), running=before.running)
        return ready(built)

    contenders = {
        DOWN: lambda: changed(before, {node: (NodeState.DOWN, "Not responding")}),
        RETURNS: lambda: changed(without_node, {node: (NodeState.UP, "")}),
        BUILT: build,
    }
    down, returns, built = time_each(contenders, rounds, time.process_time)
    promises = (
        at_most(f"{DOWN}, {NODES:,} nodes", down, MILLISECONDS),
        at_most(f"{RETURNS}, {NODES:,} nodes", returns, MILLISECONDS),
        ratio(f"{BUILT} / {DOWN}", built, down, FACTOR),
    )
    return [Table("A node goes down and returns", ABOUT, (down, returns, built), promises)]


def changed(snapshot: OnNodes, states: Mapping[str, tuple[NodeState, str]]) -> OnNodes:
    cluster = snapshot.machine.cluster.with_states(states)
    return ready(change_cluster(snapshot, cluster).snapshot)


def ready(snapshot: OnNodes) -> OnNodes:
    """Compute the sets of nodes that every pass needs."""
    cluster = snapshot.machine.cluster
    assert cluster.usable
    assert cluster.by_weight
    return snapshot
