"""Nodes that fit a job, and the first cause that excludes each other node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fairbank.cluster.node import NodeState
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest
from fairbank.scheduling.plan import JobReservation
from fairbank.scheduling.slurm.queue_order import QueueEntry, placement_request


class ExcludedNodes(NamedTuple):
    """Nodes that the job cannot use, and the cause. `is_permanent`: the cause holds on an empty
    machine, too.
    """

    cause: str
    nodes: NodeSet
    is_permanent: bool


class FilteredNodes(NamedTuple):
    """Nodes of a partition: those that the job could use now, and the others with the cause."""

    fitting: NodeSet
    excluded: tuple[ExcludedNodes, ...]

    @property
    def suitable(self) -> NodeSet:
        """Return the nodes that it could use at some time."""
        found = self.fitting
        for each in self.excluded:
            if not each.is_permanent:
                found |= each.nodes
        return found


def filter_nodes(
    nodes: Nodes,
    entry: QueueEntry,
    ahead: Iterable[JobReservation[PendingJob, Placement]],
    now: int,
) -> FilteredNodes:
    """Return the nodes of an entry, filtered. `ahead`: reservations of jobs ahead of it."""
    left, excluded = entry.nodes, list[ExcludedNodes]()
    request = placement_request(nodes, entry)
    causes = (
        _unable(nodes, entry, request),
        _unusable(nodes),
        _reserved(nodes, entry, now),
        _taken(nodes, request),
    )
    for lasting, found in zip((True, False, False, False), causes, strict=True):
        for cause, some in found:
            if some & left:
                excluded.append(ExcludedNodes(cause, some & left, lasting))
                left = node_set.without(left, some)
    end = now + entry.job.least_seconds(entry.rules)
    for each in ahead:
        if each.at <= end and each.placement.nodes & left:
            excluded.append(
                ExcludedNodes(
                    f"reserved for job {each.job.name}, which is ahead",
                    each.placement.nodes & left,
                    False,
                )
            )
            left = node_set.without(left, each.placement.nodes)
    return FilteredNodes(left, tuple(excluded))


Cause = tuple[str, NodeSet]


def _unable(nodes: Nodes, entry: QueueEntry, request: PlacementRequest) -> Iterator[Cause]:
    """Yield causes that hold on an empty machine."""
    cluster, what, wanted = nodes.cluster, request.demand, entry.job.wanted
    yield "excluded by name", cluster.named(wanted.excluded, field="excluded")
    yield f"fewer than {what.least_cpus} CPUs", node_set.packed(cluster.cpus < what.least_cpus)
    memory = max(what.memory or 0, what.memory_per_cpu * what.least_cpus)
    yield f"less than {memory} MiB of memory", node_set.packed(cluster.memory < memory)
    yield f"less than {what.tmp} MiB of temporary disk", node_set.packed(cluster.tmp < what.tmp)
    everybody = cluster.all_nodes
    if what.gpus:
        names = ", ".join(f"{number} {kind}".strip() for kind, number in what.gpus)
        yield (
            f"without these GPUs: {names}",
            node_set.without(
                everybody, nodes.search.empty.nodes(what._replace(memory=0, memory_per_cpu=0))
            ),
        )
    yield (
        "too few resources for a task",
        node_set.without(everybody, nodes.search.empty.nodes(what)),
    )
    if wanted.constraint:
        of_any = node_set.NO_NODES
        for some in (*request.alternatives, *(kind for kind, _ in request.kinds)):
            of_any |= some
        plain = not request.kinds
        yield (
            f"without the features {wanted.constraint}",
            node_set.without(everybody, of_any) if plain else node_set.NO_NODES,
        )


def _unusable(nodes: Nodes) -> Iterator[Cause]:
    """Yield causes by the state of nodes."""
    for state in NodeState:
        if not state.usable:
            yield (
                state.value,
                node_set.of(
                    place for place, node in enumerate(nodes.cluster.nodes) if node.state is state
                ),
            )


def _reserved(nodes: Nodes, entry: QueueEntry, now: int) -> Iterator[Cause]:
    """Yield causes by reservations that the job would run into, and by its own, outside of which it
    has no nodes.
    """
    end = now + entry.job.least_seconds(entry.rules)
    for each, there in nodes.reservations:
        if each.name == entry.job.reservation:
            if entry.own_reservation is not None:
                yield (
                    f"not in reservation {each.name}",
                    node_set.without(nodes.cluster.all_nodes, there),
                )
        elif each.begin <= end and now < each.end:
            what = "reserved for maintenance" if each.maintenance else "reserved for others"
            yield f"{what}: {each.name}", there


def _taken(nodes: Nodes, request: PlacementRequest) -> Iterator[Cause]:
    """Yield causes by running jobs."""
    cluster, room, what = nodes.cluster, nodes.free, request.demand
    everybody, busy = cluster.all_nodes, node_set.without(cluster.all_nodes, room.idle)
    if what.alone:
        yield "other jobs run there", busy
    yield (
        "too few CPUs are free",
        node_set.packed(what.rows * room.cpus - room.shared < what.least_cpus),
    )
    if what.memory is None:
        yield (
            "a job there has memory, and this one needs all of it",
            node_set.packed(room.memory < cluster.memory),
        )
    else:
        memory = max(what.memory, what.memory_per_cpu * what.least_cpus)
        yield "too little memory is free", node_set.packed(room.memory < memory)
    yield (
        "too few GPUs are free" if what.gpus else "too few resources are free for a task",
        node_set.without(everybody, room.nodes(what)),
    )
