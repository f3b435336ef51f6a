"""Change of one node among ten thousand, in the core of the workload manager."""

from __future__ import annotations

from benchmarks.measure import Say, Table, at_most
from benchmarks.passes import NODES, cpu_time_each
from fairbank.cluster.node import Node, NodeState
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.wlm.core.controller import Core
from fairbank.wlm.core.events import CoreEvent, NodeRegistered, NodeSilent
from fairbank.wlm.core.jobs import Moment
from fairbank.wlm.core.settings import DaemonSettings, WlmSettings

NOW = Moment(1_700_000_000, 1_000)
MILLISECONDS = 20
ABOUT = (
    f"One of {NODES:,} idle nodes stops answering, and registers again: the change of its state,"
    " the row to store, and the table of nodes for the next pass, without the commit. CPU time, one"
    " thread."
)


def measure(*, short: bool, say: Say) -> list[Table]:
    say(f"a change of one of {NODES:,} nodes")
    nodes = tuple(Node(name=f"n{number:05}", cpus=64, memory=256_000) for number in range(NODES))
    main = PartitionRules(name="main", is_default=True)
    daemons = DaemonSettings(return_to_service=2)
    core = Core(WlmSettings(cluster=daemons, nodes=nodes, partitions=(main,)))
    place = NODES // 2
    name = nodes[place].name

    def change(event: CoreEvent, state: NodeState) -> None:
        core.handle(event, NOW)
        assert core.state.table.nodes[place].state is state

    for node in nodes:
        core.handle(NodeRegistered(node, "boot"), NOW)
    figures = cpu_time_each(
        {
            "a node goes down": lambda: change(NodeSilent(name), NodeState.NOT_RESPONDING),
            "a node returns": lambda: change(NodeRegistered(nodes[place], "boot"), NodeState.UP),
        },
        10 if short else 100,
    )
    promises = tuple(at_most(figure.name, figure, MILLISECONDS) for figure in figures)
    return [Table(f"A change of one of {NODES:,} nodes", ABOUT, tuple(figures), promises)]
