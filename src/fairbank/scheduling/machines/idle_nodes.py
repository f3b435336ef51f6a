"""Idle nodes over time, for jobs that need whole nodes. They need sets of nodes only."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet


class IdleNodes:
    """Idle nodes from now on, if each job stays until its end."""

    def __init__(self, idle: NodeSet, running: Sequence[tuple[int, NodeSet]]) -> None:
        """Initialise with the idle nodes, and the end and nodes of each running job in the order of
        the ends.
        """
        seen, freed = node_set.NO_NODES, list[tuple[int, NodeSet]]()
        for end, nodes in reversed(running):
            freed.append(
                (end, nodes ^ (nodes & seen))
            )  # a node is idle when the last of its jobs is gone
            seen |= nodes
        self._ends: list[int] = []
        self._idle = [idle]
        for end, nodes in reversed(freed):
            idle |= nodes
            self._ends.append(end)
            self._idle.append(idle)
        self._begun: list[tuple[int, NodeSet]] = []
        self._until: list[int] = []
        """End of each job in `_begun`."""
        self._busy: list[NodeSet] = []
        """Nodes of the jobs in `_begun` from each one on."""

    def at(self, instant: int) -> NodeSet:
        """Return the nodes without a job at a time."""
        idle = self._idle[bisect_right(self._ends, instant)]
        later = bisect_right(self._until, instant)
        return node_set.without(idle, self._busy[later]) if later < len(self._until) else idle

    def begin(self, end: int, nodes: NodeSet) -> None:
        """Add a job that starts now on these nodes and runs until `end`."""
        insort(self._begun, (end, nodes))
        busy, found = node_set.NO_NODES, []
        for _, some in reversed(self._begun):
            busy |= some
            found.append(busy)
        self._busy = found[::-1]
        self._until = [until for until, _ in self._begun]
