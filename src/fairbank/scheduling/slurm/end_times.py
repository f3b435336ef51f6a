"""When and where a job could start, as jobs end that run now.

Ends are lumped together: Slurm looks again after every stretch of ends, and the stretches double, so that a job is told a time a little
later than the first at which it would fit, for far fewer looks.

Source: docs/reference/slurm-rules.md, "Backfill".
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable

from fairbank.cluster.node import Gpus
from fairbank.scheduling.machines.idle_nodes import IdleNodes
from fairbank.scheduling.pending_job import Active
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_demand import NodeDemand
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts
from fairbank.scheduling.placement.search import (
    FreeNodes,
    PlacementRequest,
    PlacementSearch,
    find_placement,
)
from fairbank.scheduling.slurm.pass_rules import expected_end

STRETCH = 30
"""Seconds: how precisely the first end is looked at, and the first stretch behind it."""


class _WholeNodes:
    """What is free to a job that has its nodes for itself: the idle ones, with all that they have."""

    def __init__(self, empty: FreeResources, idle: NodeSet) -> None:
        self.empty, self.idle = empty, idle

    def nodes(self, demand: NodeDemand) -> NodeSet:
        return self.empty.nodes(demand) & self.idle

    def tasks(self, demand: NodeDemand) -> Counts:
        return self.empty.tasks(demand)

    def gpus_at(self, place: int, wanted: tuple[Gpus, ...], *, alone: bool) -> tuple[Gpus, ...]:
        return self.empty.gpus_at(place, wanted, alone=alone)


class EndTimes:
    """The machine from now on, if everybody who runs uses the whole time limit. What was found for one job serves the next."""

    def __init__(
        self,
        places: PlacementSearch,
        room: FreeResources,
        running: list[Active],
        now: int,
        *,
        linear: int = 0,
    ) -> None:
        """`linear`: how much a stretch grows; 0: it doubles."""
        self.places, self.now, self.room, self.linear = places, now, room, linear
        self.running = sorted((expected_end(job.ends, now), job.number, job) for job in running)
        self._fits: dict[tuple[PlacementRequest, NodeSet], bool] = {}
        self._forget()

    def _forget(self) -> None:
        self._idling = IdleNodes(
            self.room.idle, [(end, job.placement.nodes) for end, _, job in self.running]
        )
        self._rooms: dict[int, FreeResources] = {}
        """At the ends of stretches."""
        self._bases = self._lumped()
        self.stretches = list(self._bases)
        """When it is worth while to look: the last end of each stretch, and the ends of those who started since."""

    def free_at(self, at: int, demand: NodeDemand) -> FreeNodes:
        """What is free when those have ended who are to end by then; for jobs that share nodes, by the end of the last stretch before.

        To be read only.
        """
        if demand.alone:
            return _WholeNodes(self.places.empty, self._idling.at(at))
        before = bisect_right(self._bases, at)
        return self._room(self._bases[before - 1]) if before else self.room

    def _room(self, at: int) -> FreeResources:
        found = self._rooms.get(at)
        if found is None:
            since = max((known for known in self._rooms if known < at), default=self.now)
            found = self._rooms[at] = self._rooms.get(since, self.room).copy()
            begin, end = (bisect_right(self.running, instant, key=_end) for instant in (since, at))
            found.give_all(job.placement for _, _, job in self.running[begin:end])
        return found

    def room_for(self, demand: NodeDemand) -> Callable[[int], NodeSet]:
        """The nodes with room for a task at an instant; to whoever wants nodes for itself all that are idle."""
        return (
            self._idling.at if demand.alone else lambda at: self.free_at(at, demand).nodes(demand)
        )

    def _lumped(self) -> list[int]:
        """The last end of each stretch. The first one begins with the first end."""
        found, at, stretch = list[int](), 0, STRETCH
        while at < len(self.running):
            until = -(-self.running[at][0] // STRETCH) * STRETCH + stretch
            at = bisect_right(self.running, until, key=_end)
            found.append(self.running[at - 1][0])
            stretch = stretch + self.linear if self.linear else stretch * 2
        return found

    def begin(self, job: Active) -> None:
        """Somebody started now."""
        insort(self.running, (job.ends, job.number, job), key=_number)
        self._idling.begin(job.ends, job.placement.nodes)
        self.room.take(job.placement)
        for at, room in self._rooms.items():
            if at < job.ends:
                room.take(job.placement)
        insort(self.stretches, job.ends)
        if not self._bases or job.ends > self._bases[-1]:
            self._bases.append(job.ends)

    def end(self, job: Active) -> None:
        """Somebody was preempted now."""
        self.running = [each for each in self.running if each[1] != job.number]
        self.room.give(job.placement)
        self._forget()

    def place(self, request: PlacementRequest, within: NodeSet, at: int) -> Placement | None:
        """Where the job would go at that time."""
        return find_placement(
            self.places.cluster, self.free_at(at, request.demand), request, within
        )

    def enough_from(self, request: PlacementRequest, within: NodeSet) -> int | None:
        """Before then too few of the nodes are free whatever is planned; None: for ever."""
        key = request, within
        if key not in self._fits:
            self._fits[key] = (
                find_placement(self.places.cluster, self.places.empty, request, within) is not None
            )
        if not self._fits[key]:
            return None
        if (
            not request.demand.alone
            or (self._idling.at(self.now) & within).bit_count() >= request.least
        ):
            return self.now
        low, high = 0, len(self.running)
        while low < high:
            middle = (low + high) // 2
            if (self._idling.at(self.running[middle][0]) & within).bit_count() >= request.least:
                high = middle
            else:
                low = middle + 1
        return self.running[low][0] if low < len(self.running) else self.now

    def needed(self, found: Placement, begin: int, until: int) -> int:
        """The end of the last job that has to end for it, of those between; `begin` where none has."""
        after, upto = (
            bisect_right(self.running, begin, key=_end),
            bisect_right(self.running, until, key=_end),
        )
        for at in range(upto - 1, after - 1, -1):
            end, _, job = self.running[at]
            if job.placement.nodes & found.nodes:
                return end
        return begin


def _end(running: tuple[int, int, Active]) -> int:
    return running[0]


def _number(running: tuple[int, int, Active]) -> tuple[int, int]:
    return running[0], running[1]
