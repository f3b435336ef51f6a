"""Which nodes are idle when, as jobs end: what jobs that have their nodes for themselves need to know, as sets alone."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet


class IdleNodes:
    """Idle nodes from now on, if everybody stays until its end."""

    def __init__(self, idle: NodeSet, running: Sequence[tuple[int, NodeSet]]) -> None:
        """`running`: until when, and where, of each job that runs, in the order of those ends."""
        seen, freed = node_set.NOBODY, list[tuple[int, NodeSet]]()
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
        """When each of those ends."""
        self._busy: list[NodeSet] = []
        """Where those are that end last, from each one on."""

    def at(self, instant: int) -> NodeSet:
        """The nodes where nobody is."""
        idle = self._idle[bisect_right(self._ends, instant)]
        later = bisect_right(self._until, instant)
        return node_set.without(idle, self._busy[later]) if later < len(self._until) else idle

    def begin(self, end: int, nodes: NodeSet) -> None:
        """Somebody started now, there and until then."""
        insort(self._begun, (end, nodes))
        busy, found = node_set.NOBODY, []
        for _, some in reversed(self._begun):
            busy |= some
            found.append(busy)
        self._busy = found[::-1]
        self._until = [until for until, _ in self._begun]
