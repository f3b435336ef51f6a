"""What is free on each node now, and what of it jobs hold. Never more is held than there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairbank.cluster.node import Gpus
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_demand import NodeDemand
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts, NodeTable

_ALL = slice(None)
_FEW = 64
"""Up to so many nodes are looked at one by one."""


class NodeShare(NamedTuple):
    """What a job holds of a node."""

    place: int
    cpus: int
    memory: int
    gpus: tuple[Gpus, ...] = ()


class Placement(NamedTuple):
    """Where a job is. `sharing`: its CPUs may be those of other jobs too, as many as its partition has rows.

    `partition`: in which of its partitions the job runs. `instead`: the numbers of the jobs that must go first.
    """

    nodes: NodeSet
    shares: tuple[NodeShare, ...]
    partition: str
    sharing: bool = False
    instead: tuple[int, ...] = ()

    @property
    def cpus(self) -> int:
        return sum(share.cpus for share in self.shares)


class _Seen:
    """How many tasks of some kind each node has room for, as it was found some changes ago."""

    __slots__ = ("nodes", "tasks", "upto")

    def __init__(self, tasks: Counts, upto: int) -> None:
        self.tasks, self.upto = tasks, upto
        self.nodes = node_set.packed(tasks > 0)


class FreeResources:
    """What is free. `take` and `give` keep it up to date; a copy may be played with."""

    def __init__(self, cluster: NodeTable) -> None:
        self.cluster = cluster
        self.cpus = cluster.cpus.copy()
        """Not held by a job that shares none."""
        self.shared = np.zeros_like(self.cpus)
        """CPUs of jobs that share them, counted as often as they are held."""
        self.memory = cluster.memory.copy()
        self.gpus = {kind: counts.copy() for kind, counts in cluster.gpus.items()}
        self.jobs = np.zeros_like(self.cpus)
        self.idle = cluster.everybody
        """Where no job is."""
        self._seen: dict[NodeDemand, _Seen] = {}
        self._changes: list[int] = []

    def copy(self) -> FreeResources:
        """The same, to be changed without changing this one."""
        other = object.__new__(FreeResources)
        other.cluster = self.cluster
        other.cpus, other.shared, other.memory, other.jobs = (
            self.cpus.copy(),
            self.shared.copy(),
            self.memory.copy(),
            self.jobs.copy(),
        )
        other.gpus = {kind: counts.copy() for kind, counts in self.gpus.items()}
        other.idle = self.idle
        other._seen, other._changes = {}, []
        return other

    def take(self, placement: Placement) -> None:
        """The job is there."""
        self._move(placement, 1)
        self.idle = node_set.without(self.idle, placement.nodes)

    def give(self, placement: Placement) -> None:
        """The job is gone."""
        self._move(placement, -1)
        for share in placement.shares:
            if not self.jobs[share.place]:
                self.idle |= 1 << share.place

    def give_all(self, placements: Iterable[Placement]) -> None:
        for placement in placements:
            self.give(placement)

    def _move(self, placement: Placement, sign: int) -> None:
        held, way = (self.shared, sign) if placement.sharing else (self.cpus, -sign)
        for place, cpus, memory, gpus in placement.shares:
            held[place] += way * cpus
            self.memory[place] -= sign * memory
            self.jobs[place] += sign
            for kind, count in gpus:
                self.gpus[kind][place] -= sign * count
            self._changes.append(place)
        if len(self._changes) > 4 * len(self.jobs) + _FEW:
            self._seen.clear()  # cheaper to look anew, and a room that is kept for days is not to remember them
            self._changes.clear()

    def overdrawn(self) -> NodeSet:
        """Nodes of which more is held than there is: none, unless somebody told what cannot be."""
        left = (self.cpus, self.memory, *self.gpus.values())
        return node_set.packed(np.any([counts < 0 for counts in left], axis=0))

    def tasks(self, demand: NodeDemand) -> Counts:
        """How many tasks each node has room for now; 0 where the node would not do. To be read only."""
        return self._looked(demand).tasks

    def nodes(self, demand: NodeDemand) -> NodeSet:
        """The nodes with room for one task at least."""
        return self._looked(demand).nodes

    def _looked(self, demand: NodeDemand) -> _Seen:
        """What was found before, brought up to date for the nodes that changed since."""
        seen = self._seen.get(demand)
        if seen is None:
            self._seen[demand] = seen = _Seen(self._count(demand, _ALL), len(self._changes))
        elif seen.upto < len(self._changes):
            changed = sorted(set(self._changes[seen.upto :]))
            if len(changed) > _FEW:
                self._seen[demand] = seen = _Seen(self._count(demand, _ALL), len(self._changes))
                return seen
            seen.upto = len(self._changes)
            found = self._count(demand, np.array(changed))
            seen.tasks[changed] = found
            have = node_set.of(
                place for place, count in zip(changed, found.tolist(), strict=True) if count
            )
            seen.nodes = node_set.without(seen.nodes, node_set.of(changed)) | have
        return seen

    def _count(self, demand: NodeDemand, at: slice | npt.NDArray[np.intp]) -> Counts:
        cluster = self.cluster
        cpus = demand.rows * self.cpus[at] - self.shared[at]
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
        if demand.gpus:
            fits &= self._has_gpus(demand.gpus, at)
        if demand.most_tasks is not None:
            tasks = np.minimum(tasks, demand.most_tasks)
        return np.where(fits, tasks, 0)

    def _has_gpus(
        self, wanted: tuple[Gpus, ...], at: slice | npt.NDArray[np.intp]
    ) -> npt.NDArray[np.bool_]:
        """Enough of each type, and of any type as many as are wanted beside those."""
        none = np.zeros_like(self.cpus)
        fits: npt.NDArray[np.bool_] = sum(self.gpus.values(), none)[at] >= sum(
            count for _, count in wanted
        )
        for kind, count in wanted:
            if kind:
                fits &= self.gpus.get(kind, none)[at] >= count
        return fits

    def gpus_at(self, place: int, wanted: tuple[Gpus, ...], *, alone: bool) -> tuple[Gpus, ...]:
        """Which of a node's GPUs a job gets that fits there: of any type from the first on; a job that is alone gets all."""
        free = {kind: int(counts[place]) for kind, counts in self.gpus.items()}
        if alone:
            return tuple(Gpus(kind, count) for kind, count in free.items() if count)
        got = {kind: count for kind, count in wanted if kind}
        left = next((count for kind, count in wanted if not kind), 0)
        for kind, count in free.items():
            more = min(left, count - got.get(kind, 0))
            if more > 0:
                got[kind] = got.get(kind, 0) + more
                left -= more
        return tuple(Gpus(kind, count) for kind, count in sorted(got.items()))
