"""Nodes and partitions of a cluster, and sets of nodes that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from fairbank.cluster.node import Node, NodeState
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.hostlist import compress
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet

Counts = npt.NDArray[np.int64]
"""Number for each node, in the order of the nodes."""


class NodeTable:
    """Nodes and the partitions that contain them. Neither changes: with a node down it is another
    table (`with_states`).

    Raises InvalidInput for two nodes or partitions with the same name, NotFound for a node of a
    partition that does not exist.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        partitions: Iterable[PartitionRules] = (PartitionRules(name="batch"),),
    ) -> None:
        self.nodes = tuple(nodes)
        self.place = {node.name: place for place, node in enumerate(self.nodes)}
        if len(self.place) < len(self.nodes):
            raise InvalidInput(
                f"{_repeated(self.nodes)} is there twice",
                field="nodes",
                remedy="give each node a name of its own",
            )
        self.all_nodes = node_set.all_nodes(len(self.nodes))
        self.rules: dict[str, PartitionRules] = {}
        self.partitions: dict[str, NodeSet] = {}
        for rules in partitions:
            if rules.name in self.rules:
                remedy = "give each partition a name of its own"
                raise InvalidInput(
                    f"partition {rules.name} is there twice", field="partitions", remedy=remedy
                )
            self.rules[rules.name] = rules
            self.partitions[rules.name] = (
                self.named(rules.nodes, field=f"{rules.name}.nodes")
                if rules.nodes
                else self.all_nodes
            )

    def with_states(self, states: Mapping[str, tuple[NodeState, str]]) -> NodeTable:
        """Return the table with other states of some nodes. All that does not depend on states is
        shared.

        Args:
            states: state and its reason, by the name of the node.

        Raises:
            NotFound: there is no such node.
        """
        nodes, usable, by_rank = list(self.nodes), self.usable, dict(self._by_rank)
        for place in node_set.each(self.named(states)):
            before, here = nodes[place], node_set.one(place)
            state, reason = states[before.name]
            nodes[place] = node = msgspec.structs.replace(before, state=state, reason=reason)
            by_rank[_rank(before)] = node_set.without(by_rank[_rank(before)], here)
            by_rank[_rank(node)] = by_rank.get(_rank(node), node_set.NO_NODES) | here
            usable = usable | here if state.is_usable else node_set.without(usable, here)
        other = copy(self)
        other.nodes, other.usable, other._by_rank = tuple(nodes), usable, by_rank
        other.__dict__.pop("by_weight", None)
        return other

    def named(self, names: Iterable[str], *, field: str = "nodes") -> NodeSet:
        """Return the set of these nodes. Raises NotFound, naming `field`."""
        nodes = node_set.NO_NODES
        for name in names:
            place = self.place.get(name)
            if place is None:
                existing = compress(node.name for node in self.nodes)
                raise NotFound(
                    f"there is no node {name!r}",
                    field=field,
                    remedy=f"there are: {existing[:200] or 'none'}",
                )
            nodes |= 1 << place
        return nodes

    @cached_property
    def total_cpus(self) -> dict[str, int]:
        """CPUs of all nodes of each partition."""
        return {
            name: int(self.cpus[node_set.places(nodes)].sum())
            for name, nodes in self.partitions.items()
        }

    def partition(self, name: str) -> tuple[PartitionRules, NodeSet]:
        """Return the rules and nodes of a partition. Raises NotFound, listing the existing ones."""
        if name not in self.rules:
            raise NotFound(
                f"there is no partition {name!r}",
                field="partition",
                remedy=f"there are: {', '.join(sorted(self.rules)) or 'none'}",
            )
        return self.rules[name], self.partitions[name]

    def names(self, some: NodeSet) -> str:
        """Return the set as a host list."""
        return compress(self.nodes[place].name for place in node_set.places(some).tolist())

    def having(self, feature: str) -> NodeSet:
        return self._features.get(feature, node_set.NO_NODES)

    @cached_property
    def usable(self) -> NodeSet:
        """Return the nodes on which jobs may start."""
        return node_set.of(place for place, node in enumerate(self.nodes) if node.state.is_usable)

    @cached_property
    def by_weight(self) -> tuple[NodeSet, ...]:
        """Return the nodes of each weight, in the order in which they are used."""
        return tuple(nodes for _, nodes in sorted(self._by_rank.items()) if nodes)

    @cached_property
    def _by_rank(self) -> dict[tuple[int, int], NodeSet]:
        ranks: dict[tuple[int, int], list[int]] = {}
        for place, node in enumerate(self.nodes):
            ranks.setdefault(_rank(node), []).append(place)
        return {rank: node_set.of(places) for rank, places in ranks.items()}

    @cached_property
    def _features(self) -> Mapping[str, NodeSet]:
        by_feature: dict[str, list[int]] = {}
        for place, node in enumerate(self.nodes):
            for feature in node.features:
                by_feature.setdefault(feature, []).append(place)
        return {feature: node_set.of(places) for feature, places in by_feature.items()}

    @cached_property
    def cpus(self) -> Counts:
        """Return the CPUs of whole cores of each node."""
        return np.array([node.cores * node.threads for node in self.nodes], np.int64)

    @cached_property
    def threads(self) -> Counts:
        return np.array([node.threads for node in self.nodes], np.int64)

    @cached_property
    def memory(self) -> Counts:
        return np.array([node.memory for node in self.nodes], np.int64)

    @cached_property
    def tmp(self) -> Counts:
        return np.array([node.tmp for node in self.nodes], np.int64)

    @cached_property
    def gpus(self) -> Mapping[str, Counts]:
        """Return the GPUs of each type, in alphabetical order."""
        by_type: dict[str, Counts] = {}
        for place, node in enumerate(self.nodes):
            for kind, count in node.gpus:
                by_type.setdefault(kind, np.zeros(len(self.nodes), np.int64))[place] = count
        return dict(sorted(by_type.items()))


def _rank(node: Node) -> tuple[int, int]:
    return node.state.penalty, node.weight


def _repeated(nodes: Iterable[Node]) -> str:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            break
        seen.add(node.name)
    return node.name
