"""Capacity of a cluster: the billing of its nodes by resource, and what of it is down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.cluster.node import Node
from fairbank.cluster.partition import Cluster
from fairbank.core.tres import billing
from fairbank.slurm.output import SlurmOutput
from fairbank.slurm.parsers.machine import read_hosts, read_nodes


def node_units(node: Node, partitions: Collection[str], cluster: Cluster) -> dict[str, Fraction]:
    """Return what a job with the whole node bills, by resource.

    Of a node in several partitions of a resource, the dearest counts: it is in all of them, but can
    be used once.

    Args:
        node: its processors, memory and GPUs. Other TRES are not counted.
        partitions: names of the partitions that have the node; those that `cluster` does not know
            bill nothing.
        cluster: its partitions with their resources and prices.
    """
    counts = {"cpu": Fraction(node.cpus), "mem": Fraction(node.memory), "node": Fraction(1)}
    for gpus in node.gpus:
        number = Fraction(gpus.number)
        counts["gres/gpu"] = counts.get("gres/gpu", Fraction(0)) + number
        counts[f"gres/gpu:{gpus.type}"] = number
    units: dict[str, Fraction] = {}
    for name in partitions:
        if (partition := cluster.partitions.get(name)) is not None:
            own = billing(counts, partition.weights, partition.billing_rule)
            units[partition.resource] = max(units.get(partition.resource, Fraction(0)), own)
    return units


class ClusterCapacity(NamedTuple):
    """Processors and GPUs of all nodes, and by resource their units, and the SU-minutes of a period
    that are down. `sharing` are the resources that have a node in common with another.
    """

    cpus: int
    gpus: int
    by_resource: Mapping[str, tuple[Fraction, int]]
    sharing: Collection[str]


def read_capacity(
    slurm: SlurmOutput, cluster: Cluster, since: int, until: int
) -> tuple[ClusterCapacity, Sequence[UnreadableLine]]:
    """Return the capacity of all nodes, and the lines of nodes that could not be read.

    Nodes that are down or drained now count from the time of their reason, or for the whole period
    if it has none; earlier outages are not known.

    Args:
        slurm: output of Slurm's commands; the nodes are read.
        cluster: its partitions with their resources and prices.
        since: the start of the period, in seconds since 1970.
        until: its end, which is excluded.
    """
    text = slurm.text("nodes", "scontrol", "--oneliner", "show", "node")
    configured, hosts = read_nodes(text), read_hosts(text)
    partitions = {node.name: node.partitions for node in configured.rows}
    units: dict[str, Fraction] = {}
    down: dict[str, Fraction] = {}
    sharing = set[str]()
    for node in hosts.rows:
        of_node = node_units(node, partitions.get(node.name, ()), cluster)
        sharing.update(of_node if len(of_node) > 1 else ())
        for resource, own in of_node.items():
            units[resource] = units.get(resource, Fraction(0)) + own
            lost = own * _seconds_down(node, since, until) / 60
            down[resource] = down.get(resource, Fraction(0)) + lost
    capacity = ClusterCapacity(
        sum(node.cpus for node in hosts.rows),
        sum(gpus.number for node in hosts.rows for gpus in node.gpus),
        {resource: (own, int(down[resource])) for resource, own in units.items()},
        sharing,
    )
    return capacity, tuple(dict.fromkeys((*configured.unreadable, *hosts.unreadable)))


def _seconds_down(node: Node, since: int, until: int) -> int:
    if node.state.is_usable:
        return 0
    return max(0, until - max(node.reason_since or since, since))
