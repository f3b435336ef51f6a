"""Demand of a job on a node, and the free and allocated resources of each node now. No more than a
node has is ever allocated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairbank.cluster.node import Gpus
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ALL_MEMORY, ResourceRequest
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts, NodeTable


class NodeDemand(NamedTuple):
    """Demand on a node. Many jobs have the same, so that results for one are reused for the others.

    cpus             of a task
    least_cpus       of a node
    most_tasks       on a node
    memory           of a node, in MiB; None: all of it
    memory_per_cpu   if requested so; `memory` is then 0
    cpus_per_gpu, memory_per_gpu   of each GPU that a node gives
    alone            no other job may be on the node
    rows             number of jobs that may share a CPU
    capped           partition whose jobs may have together `most_cpus` of a node (MaxCPUsPerNode);
                     empty: there is no such limit
    """

    cpus: int = 1
    least_cpus: int = 1
    most_tasks: int | None = None
    memory: int | None = 0
    memory_per_cpu: int = 0
    gpus: tuple[Gpus, ...] = ()
    gpus_per_task: tuple[Gpus, ...] = ()
    cpus_per_gpu: int = 0
    memory_per_gpu: int = 0
    tmp: int = 0
    alone: bool = False
    rows: int = 1
    capped: str = ""
    most_cpus: int = 0

    def without_cap(self) -> NodeDemand:
        """Return the demand without the limit of the partition."""
        return self._replace(capped="", most_cpus=0)


def node_demand(wanted: ResourceRequest, rules: PartitionRules) -> NodeDemand:
    """Return the demand of a request in a partition. Tasks that have a GPU together are one."""
    request = rules.with_default_memory(wanted)
    memory = 0 if request.memory_per_cpu else request.memory_per_node
    # Of a number for the whole job, each node has one at least.
    gpus = (request.total_gpus._replace(number=1),) if request.total_gpus else request.gpus
    on_node = sum(count for _, count in gpus)
    of_task = sum(count for _, count in request.gpus_per_task)
    cpus_per_gpu, memory_per_gpu = request.cpus_per_gpu or 0, request.memory_per_gpu or 0
    cpus = max(request.cpus_per_task * tasks_together(request), of_task * cpus_per_gpu)
    if memory_per_gpu:
        memory = (on_node or of_task) * memory_per_gpu
    return NodeDemand(
        cpus=cpus,
        least_cpus=max(cpus, request.cpus_per_node, on_node * cpus_per_gpu),
        most_tasks=request.tasks_per_node,
        memory=None if memory == ALL_MEMORY and not request.memory_per_cpu else memory,
        memory_per_cpu=request.memory_per_cpu or 0,
        gpus=gpus,
        gpus_per_task=request.gpus_per_task,
        cpus_per_gpu=cpus_per_gpu,
        memory_per_gpu=memory_per_gpu,
        tmp=request.tmp,
        alone=rules.is_exclusive(request),
        rows=rules.rows_for(request),
        capped="" if rules.max_cpus_per_node is None else rules.name,
        most_cpus=rules.max_cpus_per_node or 0,
    )


def tasks_together(request: ResourceRequest) -> int:
    """Return how many tasks have the GPUs of `gpus_per_task` together."""
    return request.tasks_per_gpu or 1 if request.gpus_per_task else 1


_FEW = 64
"""Up to so many nodes are computed one by one."""


class NodeShare(NamedTuple):
    """Resources of one node that a job has."""

    place: int
    cpus: int
    memory: int
    gpus: tuple[Gpus, ...] = ()


class Placement(NamedTuple):
    """Nodes and resources of a job.

    `sharing`: other jobs may have the same CPUs, too, as many as the partition has rows.
    `partition`: the one of its partitions in which the job runs. `preempted`: numbers of the jobs
    that must go first.
    """

    nodes: NodeSet
    shares: tuple[NodeShare, ...]
    partition: str
    sharing: bool = False
    preempted: tuple[int, ...] = ()

    @property
    def cpus(self) -> int:
        return sum(share.cpus for share in self.shares)


class _CachedCounts:
    """Number of tasks of one demand that fit on each node, as of some changes ago."""

    __slots__ = ("nodes", "tasks", "upto")

    def __init__(self, tasks: Counts, upto: int) -> None:
        self.tasks, self.upto = tasks, upto
        self.nodes = node_set.pack_flags(tasks > 0)


class FreeResources:
    """Free resources of the nodes. `take` and `give` keep them up to date.

    Invariants: `cpus` are the CPUs that no job has for itself; `shared` counts CPUs of jobs that
    share them, once for each job. `idle` are the nodes where `jobs` is 0. `capped` has the CPUs of
    the jobs of each partition with a limit on them. `_cache` has counts by demand; each is valid
    but for the nodes that `_changes` has from its `upto` on.
    """

    def __init__(self, cluster: NodeTable) -> None:
        self.cluster = cluster
        self.cpus = cluster.cpus.copy()
        self.shared = np.zeros_like(self.cpus)
        self.memory = cluster.memory.copy()
        self.gpus = {kind: counts.copy() for kind, counts in cluster.gpus.items()}
        self.jobs = np.zeros_like(self.cpus)
        self.idle = cluster.all_nodes
        self.capped = {
            name: np.zeros_like(self.cpus)
            for name, rules in cluster.rules.items()
            if rules.max_cpus_per_node is not None
        }
        self._cache: dict[NodeDemand, _CachedCounts] = {}
        self._changes: list[int] = []

    def copy(self) -> FreeResources:
        """Return a copy that can be changed by itself. It begins without a cache."""
        other = object.__new__(FreeResources)
        other.cluster = self.cluster
        other.cpus, other.shared = self.cpus.copy(), self.shared.copy()
        other.memory, other.jobs = self.memory.copy(), self.jobs.copy()
        other.gpus = {kind: counts.copy() for kind, counts in self.gpus.items()}
        other.idle = self.idle
        other.capped = {name: counts.copy() for name, counts in self.capped.items()}
        other._cache, other._changes = {}, []
        return other

    def take(self, placement: Placement) -> None:
        """Allocate the resources of a job that starts."""
        self._move(placement, 1)
        self.idle = node_set.without(self.idle, placement.nodes)

    def give(self, placement: Placement) -> None:
        """Free the resources of a job that ends."""
        self._move(placement, -1)
        for share in placement.shares:
            if not self.jobs[share.place]:
                self.idle |= 1 << share.place

    def give_all(self, placements: Iterable[Placement]) -> None:
        for placement in placements:
            self.give(placement)

    def _move(self, placement: Placement, sign: int) -> None:
        held, way = (self.shared, sign) if placement.sharing else (self.cpus, -sign)
        capped = self.capped.get(placement.partition)
        for place, cpus, memory, gpus in placement.shares:
            if capped is not None:
                capped[place] += sign * cpus
            held[place] += way * cpus
            self.memory[place] -= sign * memory
            self.jobs[place] += sign
            for kind, count in gpus:
                if kind not in self.gpus:  # no node has any, so that the node is overdrawn
                    self.gpus[kind] = np.zeros_like(self.cpus)
                self.gpus[kind][place] -= sign * count
            self._changes.append(place)
        if len(self._changes) > 4 * len(self.jobs) + _FEW:
            # Counting again is cheaper, and a long-lived object must not remember all changes.
            self._cache.clear()
            self._changes.clear()

    def overdrawn(self) -> NodeSet:
        """Return the nodes of which more is allocated than they have: for wrong input."""
        left = (self.cpus, self.memory, *self.gpus.values())
        return node_set.pack_flags(np.any([counts < 0 for counts in left], axis=0))

    def tasks(self, demand: NodeDemand) -> Counts:
        """Return how many tasks fit on each node now. The caller must not change it."""
        return self._counts(demand).tasks

    def nodes(self, demand: NodeDemand) -> NodeSet:
        """Return the nodes on which at least one task fits."""
        return self._counts(demand).nodes

    def _counts(self, demand: NodeDemand) -> _CachedCounts:
        """Return the cached counts, updated for the nodes that changed since."""
        cached = self._cache.get(demand)
        changed = [] if cached is None else sorted(set(self._changes[cached.upto :]))
        if cached is None or len(changed) > _FEW:
            counts = self._count(demand, slice(None))
            self._cache[demand] = cached = _CachedCounts(counts, len(self._changes))
        elif changed:
            cached.upto = len(self._changes)
            counts = self._count(demand, np.array(changed))
            cached.tasks[changed] = counts
            suitable = node_set.of(
                place for place, count in zip(changed, counts.tolist(), strict=True) if count
            )
            cached.nodes = node_set.without(cached.nodes, node_set.of(changed)) | suitable
        return cached

    def _count(self, demand: NodeDemand, at: slice | npt.NDArray[np.intp]) -> Counts:
        cluster = self.cluster
        cpus = demand.rows * self.cpus[at] - self.shared[at]
        if demand.capped and not demand.alone:
            cpus = np.minimum(cpus, demand.most_cpus - self.capped[demand.capped][at])
        tasks = cpus // demand.cpus
        fits = (cpus >= demand.least_cpus) & (cluster.tmp[at] >= demand.tmp)
        memory = self.memory[at]
        if demand.memory is None:
            fits &= memory == cluster.memory[at]
        elif demand.memory_per_cpu and demand.alone:
            fits &= memory >= demand.memory_per_cpu * cluster.cpus[at]
        elif demand.memory_per_cpu:
            tasks = np.minimum(tasks, memory // (demand.memory_per_cpu * demand.cpus))
            fits &= memory >= demand.memory_per_cpu * demand.least_cpus
        elif demand.memory:
            fits &= memory >= demand.memory
        if demand.alone:
            fits &= self.jobs[at] == 0
            if demand.capped:  # the job gets all CPUs
                fits &= cluster.cpus[at] <= demand.most_cpus
        if demand.gpus:
            fits &= self._has_gpus(demand.gpus, at)
        for kind, count in demand.gpus_per_task:
            tasks = np.minimum(tasks, self.gpu_counts(kind)[at] // count)
        if demand.gpus_per_task and demand.memory_per_gpu and demand.memory:
            tasks = np.minimum(tasks, memory // demand.memory)
        if demand.most_tasks is not None:
            tasks = np.minimum(tasks, demand.most_tasks)
        return np.where(fits, tasks, 0)

    def _has_gpus(
        self, wanted: tuple[Gpus, ...], at: slice | npt.NDArray[np.intp]
    ) -> npt.NDArray[np.bool_]:
        """Return the nodes with enough GPUs of each type, and besides these enough of any type."""
        fits: npt.NDArray[np.bool_] = self.gpu_counts("")[at] >= sum(count for _, count in wanted)
        for kind, count in wanted:
            fits &= self.gpu_counts(kind)[at] >= count
        return fits

    def gpu_counts(self, kind: str) -> Counts:
        """Return how many GPUs of a type are free on each node; of an empty type, how many of all.

        The caller must not change it.
        """
        none = np.zeros_like(self.cpus)
        return self.gpus.get(kind, none) if kind else sum(self.gpus.values(), none)

    def gpus_at(self, place: int, wanted: tuple[Gpus, ...], *, alone: bool) -> tuple[Gpus, ...]:
        """Return the GPUs of a node that a job gets, which fits there.

        Of any type it gets the first ones.

        Args:
            place: position of the node in the table.
            wanted: GPUs that the job requests of each node; an empty type means any.
            alone: True if the job has the node for itself: it gets all that are free.
        """
        free = {kind: int(counts[place]) for kind, counts in self.gpus.items()}
        if alone:
            return tuple(Gpus(kind, count) for kind, count in free.items() if count)
        granted = {kind: count for kind, count in wanted if kind}
        left = next((count for kind, count in wanted if not kind), 0)
        for kind, count in free.items():
            more = min(left, count - granted.get(kind, 0))
            if more > 0:
                granted[kind] = granted.get(kind, 0) + more
                left -= more
        return tuple(Gpus(kind, count) for kind, count in sorted(granted.items()))
