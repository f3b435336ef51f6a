"""A request and the free nodes become a placement, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.placement import constraint, node_set
from fairbank.scheduling.placement.exhaustive_search import NodeSelection
from fairbank.scheduling.placement.free_resources import FreeResources, NodeShare, Placement
from fairbank.scheduling.placement.node_demand import NodeDemand, node_demand
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts, NodeTable
from fairbank.scheduling.placement.selection import select_nodes


class PlacementRequest(NamedTuple):
    """What a job wants in a partition, with the words looked up: sets of nodes for names and features.

    upto            it gets so many nodes where they are free: the most of a range that it names
    able            the nodes of the partition that could ever do: by what they have, by name, by what every node must be
    alternatives    of these, all nodes of the job are of the same one
    """

    partition: str
    demand: NodeDemand
    least: int
    upto: int
    most: int
    tasks: int
    able: NodeSet
    alternatives: tuple[NodeSet, ...]
    required: NodeSet
    kinds: tuple[tuple[NodeSet, int], ...]
    contiguous: bool

    def possible(self) -> NodeSet:
        """The nodes of any alternative."""
        found = node_set.NOBODY
        for each in self.alternatives:
            found |= each
        return found & self.able


class FreeNodes(Protocol):
    """What is free at some instant."""

    def nodes(self, demand: NodeDemand) -> NodeSet:
        """The nodes with room for one task at least."""
        ...

    def tasks(self, demand: NodeDemand) -> Counts:
        """How many tasks each node has room for. To be read only."""
        ...

    def gpus_at(self, place: int, wanted: tuple[Gpus, ...], *, alone: bool) -> tuple[Gpus, ...]:
        """Which of a node's GPUs a job gets."""
        ...


class PlacementSearch:
    """A cluster that requests are read for. What is found for a request is kept for the next of its like."""

    def __init__(self, cluster: NodeTable) -> None:
        self.cluster = cluster
        self.empty = FreeResources(cluster)
        self._known: dict[tuple[ResourceRequest, str], PlacementRequest] = {}
        self._ever: dict[PlacementRequest, bool] = {}

    def request(self, wanted: ResourceRequest, partition: str) -> PlacementRequest:
        """Raises NotFound for a partition or node that is not there, InvalidInput for a constraint that cannot be read."""
        key = wanted, partition
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _request(self.cluster, self.empty, wanted, partition)
        return found

    def ever(self, request: PlacementRequest) -> bool:
        """Whether the job would fit if nobody else were there and all nodes were up."""
        found = self._ever.get(request)
        if found is None:
            found = self._ever[request] = (
                find_placement(self.cluster, self.empty, request, self.cluster.everybody)
                is not None
            )
        return found


def _request(
    cluster: NodeTable, empty: FreeResources, wanted: ResourceRequest, partition: str
) -> PlacementRequest:
    rules, among = cluster.partition(partition)
    what = node_demand(wanted, rules)
    said = constraint.parse(wanted.constraint)
    having, everybody = cluster.having, cluster.everybody
    able = node_set.without(among, cluster.named(wanted.excluded, field="excluded")) & empty.nodes(
        what
    )
    required = cluster.named(wanted.required, field="required")
    least = max(
        wanted.nodes,
        rules.min_nodes,
        required.bit_count(),
        sum(group.least for group in said.groups),
    )
    tasks = max(wanted.least_tasks, least)
    return PlacementRequest(
        partition=partition,
        demand=what,
        least=least,
        upto=max(least, min(filter(None, (wanted.max_nodes or least, rules.max_nodes)))),
        most=min(filter(None, (wanted.max_nodes, rules.max_nodes, tasks))),
        tasks=tasks,
        able=able,
        alternatives=tuple(
            able & constraint.matching_nodes(each, having, everybody) for each in said.alternatives
        ),
        required=required,
        kinds=tuple(
            (constraint.matching_nodes(group.nodes, having, everybody), group.least)
            for group in said.groups
        ),
        contiguous=wanted.contiguous,
    )


def find_placement(
    cluster: NodeTable, room: FreeNodes, request: PlacementRequest, within: NodeSet
) -> Placement | None:
    """Where the job goes if it takes nodes of `within` only; None where it does not fit there now.

    It gets as many nodes of a range as are free. Nodes are the lightest that do; of a constraint in brackets the first alternative that
    fits. Jobs that share CPUs go to where they need not, if they can.
    """
    for plain in (
        (request.demand._replace(rows=1), request.demand)
        if request.demand.rows > 1
        else (request.demand,)
    ):
        free = room.nodes(plain) & within
        for alternative in request.alternatives:
            among = free & alternative
            for asked in _asked(request, among.bit_count()):
                if (
                    places := select_nodes(among, cluster.by_weight, room.tasks(plain), asked)
                ) is not None:
                    return _dealt(cluster, room, request, plain, places)
    return None


def _asked(request: PlacementRequest, there: int) -> Iterator[NodeSelection]:
    """As many nodes of its range as there are, then fewer. Each has a task at least."""
    for nodes in range(min(request.upto, there), request.least - 1, -1):
        most, tasks = max(request.most, nodes), max(request.tasks, nodes)
        yield NodeSelection(nodes, most, tasks, request.required, request.kinds, request.contiguous)


def _dealt(
    cluster: NodeTable,
    room: FreeNodes,
    request: PlacementRequest,
    plain: NodeDemand,
    places: list[int],
) -> Placement:
    """Each node gets as many tasks as it has room for, but for one that is left for each node behind it."""
    tasks, behind, shares = request.tasks, len(places), []
    columns = (room.tasks(plain), cluster.cpus, cluster.threads, cluster.memory)
    for at, fits, whole, threads, has in zip(
        places, *(column[places].tolist() for column in columns), strict=True
    ):
        behind -= 1
        here = min(fits, max(tasks - behind, 1))
        tasks -= here
        cpus = max(here * plain.cpus, plain.least_cpus)
        got = whole if plain.alone else -(-cpus // threads) * threads
        memory = (
            has
            if plain.memory is None
            else plain.memory or plain.memory_per_cpu * (got if plain.alone else cpus)
        )
        gpus = (
            room.gpus_at(at, plain.gpus, alone=plain.alone)
            if cluster.gpus and (plain.gpus or plain.alone)
            else ()
        )
        shares.append(NodeShare(at, got, memory, gpus))
    return Placement(
        node_set.of(places), tuple(shares), request.partition, sharing=request.demand.rows > 1
    )
