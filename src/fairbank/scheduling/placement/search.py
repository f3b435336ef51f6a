"""Search for a placement of a request on free nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.placement import constraint, node_set
from fairbank.scheduling.placement.free_resources import (
    FreeResources,
    NodeDemand,
    NodeShare,
    Placement,
    node_demand,
    tasks_together,
)
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts, NodeTable
from fairbank.scheduling.placement.selection import NodeSelection, select_nodes

MIN_NODES_FLAG, MAX_NODES_FLAG = "PartitionMinNodes", "PartitionMaxNodes"
TIME_FLAG = "PartitionTimeLimit"
"""Flags of a QOS whose jobs ignore MinNodes, MaxNodes or MaxTime of partitions."""


class PlacementRequest(NamedTuple):
    """Request of a job in a partition, with names and features resolved to sets of nodes.

    upto            number of nodes that it gets if they are free: the maximum of its range
    fitting         nodes of the partition that could ever run it: by resources, by name, by
                    features of every node
    alternatives    of these; all nodes of the job are from the same alternative
    gpus            of all nodes together; None: as the demand on each node says
    """

    partition: str
    demand: NodeDemand
    least: int
    upto: int
    most: int
    tasks: int
    fitting: NodeSet
    alternatives: tuple[NodeSet, ...]
    required: NodeSet
    kinds: tuple[tuple[NodeSet, int], ...]
    contiguous: bool
    gpus: Gpus | None = None

    def possible(self) -> NodeSet:
        """Return the nodes of all alternatives."""
        nodes = node_set.NO_NODES
        for alternative in self.alternatives:
            nodes |= alternative
        return nodes & self.fitting


class FreeNodes(Protocol):
    """Free resources at some time."""

    def nodes(self, demand: NodeDemand) -> NodeSet:
        """Return the nodes on which at least one task fits."""
        ...

    def tasks(self, demand: NodeDemand) -> Counts:
        """Return how many tasks fit on each node. The caller must not change it."""
        ...

    def gpus_at(self, place: int, wanted: tuple[Gpus, ...], *, alone: bool) -> tuple[Gpus, ...]:
        """Return the GPUs of a node that a job gets.

        Args:
            place: position of the node in the table.
            wanted: GPUs that the job requests of each node; an empty type means any.
            alone: True if the job has the node for itself and gets all of its GPUs.
        """
        ...

    def gpu_counts(self, kind: str) -> Counts:
        """Return how many GPUs of a type are free on each node; of an empty type, how many of all.

        The caller must not change it.
        """
        ...


class PlacementSearch:
    """Requests resolved for a cluster, with a cache: equal requests are resolved once."""

    def __init__(self, cluster: NodeTable) -> None:
        self.cluster = cluster
        self.empty = FreeResources(cluster)
        self._known: dict[tuple[ResourceRequest, str, frozenset[str]], PlacementRequest] = {}
        self._ever: dict[PlacementRequest, bool] = {}

    def request(
        self, wanted: ResourceRequest, partition: str, qos_flags: frozenset[str] = frozenset()
    ) -> PlacementRequest:
        """Return the resolved request of a job.

        Args:
            wanted: request as submitted.
            partition: name of the partition in which the job would start.
            qos_flags: flags of its QOS, which may override limits of the partition.

        Raises:
            NotFound: there is no such partition or node.
            InvalidInput: the constraint cannot be parsed.
        """
        key = wanted, partition, qos_flags
        request = self._known.get(key)
        if request is None:
            request = self._known[key] = _request(
                self.cluster, self.empty, wanted, partition, qos_flags
            )
        return request

    def can_ever_fit(self, request: PlacementRequest) -> bool:
        """Return True if the job would fit if the cluster were empty and all nodes were up."""
        fits = self._ever.get(request)
        if fits is None:
            fits = self._ever[request] = (
                find_placement(self.cluster, self.empty, request, self.cluster.all_nodes)
                is not None
            )
        return fits


def _request(
    cluster: NodeTable,
    empty: FreeResources,
    wanted: ResourceRequest,
    partition: str,
    qos_flags: frozenset[str],
) -> PlacementRequest:
    rules, among = cluster.partition(partition)
    min_nodes = 0 if MIN_NODES_FLAG in qos_flags else rules.min_nodes
    # As in slurmctld a job without a maximum of its own has that of the partition.
    is_own = wanted.max_nodes is not None and MAX_NODES_FLAG in qos_flags
    max_nodes = None if is_own else rules.max_nodes
    demand = node_demand(wanted, rules)
    parsed = constraint.parse(wanted.constraint)
    having, all_nodes = cluster.having, cluster.all_nodes
    fitting = node_set.without(
        among, cluster.named(wanted.excluded, field="excluded")
    ) & empty.nodes(demand)
    required = cluster.named(wanted.required, field="required")
    least = max(
        wanted.nodes, min_nodes, required.bit_count(), sum(group.least for group in parsed.groups)
    )
    together = wanted.cpus_per_task * tasks_together(wanted)
    tasks = max(-(-wanted.task_cpus // together), least)
    most = tasks
    if wanted.total_gpus is not None and wanted.tasks is None:  # as many nodes as hold the GPUs
        most = max(tasks, wanted.total_gpus.number)
    return PlacementRequest(
        partition=partition,
        demand=demand,
        least=least,
        upto=max(least, min(filter(None, (wanted.max_nodes or least, max_nodes)))),
        most=min(filter(None, (wanted.max_nodes, max_nodes, most))),
        tasks=tasks,
        fitting=fitting,
        alternatives=tuple(
            fitting & constraint.matching_nodes(alternative, having, all_nodes)
            for alternative in parsed.alternatives
        ),
        required=required,
        kinds=tuple(
            (constraint.matching_nodes(group.nodes, having, all_nodes), group.least)
            for group in parsed.groups
        ),
        contiguous=wanted.contiguous,
        gpus=wanted.total_gpus,
    )


def find_placement(
    cluster: NodeTable, free: FreeNodes, request: PlacementRequest, within: NodeSet
) -> Placement | None:
    """Return the placement of a job on nodes of `within`; None if it does not fit.

    It gets as many nodes of its range as are free. The lightest sufficient nodes are used, and for
    a constraint in brackets the first alternative that fits. Jobs that share CPUs use free CPUs
    first.

    Args:
        cluster: nodes and partitions.
        free: free resources at the start.
        request: resolved request.
        within: nodes that the job may use.
    """
    for plain in (
        (request.demand._replace(rows=1), request.demand)
        if request.demand.rows > 1
        else (request.demand,)
    ):
        usable = free.nodes(plain) & within
        for alternative in request.alternatives:
            among = usable & alternative
            for selection in _selections(request, among.bit_count()):
                places = (
                    select_nodes(among, cluster.by_weight, free.tasks(plain), selection)
                    if request.gpus is None
                    else _nodes_with_gpus(cluster, free, request.gpus, plain, among, selection)
                )
                if places is not None:
                    return _distribute(cluster, free, request, plain, places)
    return None


def _nodes_with_gpus(
    cluster: NodeTable,
    free: FreeNodes,
    gpus: Gpus,
    plain: NodeDemand,
    among: NodeSet,
    selection: NodeSelection,
) -> list[int] | None:
    """Return nodes that together have the GPUs of a job, as few as possible; None if none do.

    The lightest nodes come first. If these have too few, those with the most GPUs follow.
    """
    counts, tasks = usable_gpus(free, gpus.type, plain), free.tasks(plain)
    by_number = sorted(
        node_set.each(among),
        key=lambda place: (not selection.required >> place & 1, -int(counts[place])),
    )
    for nodes in range(selection.least, min(selection.most, len(by_number)) + 1):
        exact = selection._replace(least=nodes, most=nodes, tasks=max(selection.tasks, nodes))
        for some in (among, node_set.of(by_number[:nodes])):
            places = select_nodes(some, cluster.by_weight, tasks, exact)
            if places is not None and int(counts[places].sum()) >= gpus.number:
                return places
    return None


def usable_gpus(free: FreeNodes, kind: str, plain: NodeDemand) -> Counts:
    """Return how many GPUs of a type a job may have on each node, with what goes with each."""
    if not (plain.cpus_per_gpu or plain.memory_per_gpu):
        return free.gpu_counts(kind)
    size = plain.memory_per_gpu
    of_gpu = plain._replace(
        cpus=max(plain.cpus_per_gpu, 1),
        memory=size or plain.memory,
        gpus=(),
        gpus_per_task=(Gpus(kind, 1),),
        most_tasks=None,
    )
    return free.tasks(of_gpu)


def _selections(request: PlacementRequest, available: int) -> Iterator[NodeSelection]:
    """Yield the selections to try: as many nodes as are free, then fewer, with a task on each."""
    for nodes in range(min(request.upto, available), request.least - 1, -1):
        most, tasks = max(request.most, nodes), max(request.tasks, nodes)
        yield NodeSelection(nodes, most, tasks, request.required, request.kinds, request.contiguous)


def _distribute(
    cluster: NodeTable,
    free: FreeNodes,
    request: PlacementRequest,
    plain: NodeDemand,
    places: list[int],
) -> Placement:
    """Return the placement: each node gets the tasks that fit, but one for each node behind."""
    tasks, nodes_left, shares = request.tasks, len(places), []
    gpus_left = 0 if request.gpus is None else request.gpus.number
    usable = None if request.gpus is None else usable_gpus(free, request.gpus.type, plain)
    columns = (free.tasks(plain), cluster.cpus, cluster.threads, cluster.memory)
    for place, fits, whole, threads, has in zip(
        places, *(column[places].tolist() for column in columns), strict=True
    ):
        nodes_left -= 1
        tasks_here = min(fits, max(tasks - nodes_left, 1))
        tasks -= tasks_here
        wanted = plain.gpus or tuple(
            Gpus(kind, count * tasks_here) for kind, count in plain.gpus_per_task
        )
        if request.gpus is not None and usable is not None:
            most = int(usable[place])
            wanted = (Gpus(request.gpus.type, min(max(gpus_left - nodes_left, 1), most)),)
            gpus_left -= wanted[0].number
        number = sum(count for _, count in wanted)
        cpus = max(tasks_here * plain.cpus, plain.least_cpus, number * plain.cpus_per_gpu)
        cpus_here = whole if plain.alone else -(-cpus // threads) * threads
        memory = (
            has
            if plain.memory is None
            else number * plain.memory_per_gpu
            or plain.memory
            or plain.memory_per_cpu * (cpus_here if plain.alone else cpus)
        )
        gpus = (
            free.gpus_at(place, wanted, alone=plain.alone)
            if cluster.gpus and (wanted or plain.alone)
            else ()
        )
        shares.append(NodeShare(place, cpus_here, memory, gpus))
    return Placement(
        node_set.of(places), tuple(shares), request.partition, sharing=request.demand.rows > 1
    )
