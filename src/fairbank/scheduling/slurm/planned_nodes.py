"""Nodes without a plan, from now until the window of backfill ends (slurm-rules.md, "Backfill").

Plans take whole nodes, in steps of bf_resolution. Running jobs are not in it: their nodes come back
as they end (`scheduling.slurm.end_times`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.snapshot import FOR_EVER

_STRIDE = 8
"""Steps that are combined before their nodes are counted."""


class PlannedNodes:
    """Nodes without a plan, as steps: `free[i]` from `begins[i]` until the next step begins. The
    last step lasts for ever, but nothing is planned behind `end`.
    """

    def __init__(self, nodes: NodeSet, now: int, window: int, resolution: int) -> None:
        self.resolution = resolution
        self.end = (now + window) // resolution * resolution
        self.begins = [now // resolution * resolution]
        self.free = [nodes]

    def _ends(self, step: int) -> int:
        return self.begins[step + 1] if step + 1 < len(self.begins) else FOR_EVER

    def window(
        self,
        among: NodeSet,
        begin: int,
        end: int,
        least: int,
        nodes_with_room: Callable[[int], NodeSet],
    ) -> tuple[NodeSet, int]:
        """Return nodes without a plan from `begin` until `end`, and a time before which no such
        window has enough.

        If the job fits on fewer than `least` of them, these are some of the nodes, and the time is
        later than `begin`.

        The end is tested first, so that the first steps that together leave too few say how far the
        window must move.

        Args:
            among: nodes that the job may use.
            begin: begin of the window in seconds, included.
            end: end of the window in seconds, included.
            least: number of nodes that the job needs.
            nodes_with_room: function from a time to the nodes on which the job fits. Later there
                are never fewer.
        """
        first = max(bisect_right(self.begins, begin) - 1, 0)
        step = max(bisect_right(self.begins, end) - 1, first)
        usable = among
        while step >= first:
            known, stop = usable, max(step - _STRIDE, first - 1)
            for at in range(step, stop, -1):
                usable &= self.free[at]
            if (usable & nodes_with_room(self._ends(stop + 1))).bit_count() < least:
                while (
                    (known := known & self.free[step]) & nodes_with_room(self._ends(step))
                ).bit_count() >= least:
                    step -= 1
                return known, self._ends(step)
            step = stop
        return usable, begin

    def next_release(self, among: NodeSet, after: int) -> int | None:
        """Return the next time at which a plan releases some of the nodes; None if there is
        none.
        """
        step = max(bisect_right(self.begins, after) - 1, 0)
        here = among & self.free[step]
        for at in range(step + 1, len(self.begins)):
            there = among & self.free[at]
            if there & here != there:
                return self.begins[at]
            here = there
        return None

    def slot(self, begin: int, end: int) -> tuple[int, int]:
        """Return the steps of the clock that a plan takes: from the one in which it begins until
        the one in which it ends, at least one.
        """
        first, resolution = begin // self.resolution * self.resolution, self.resolution
        return first, max(-(-end // resolution) * resolution, first + resolution)

    def first_conflict(self, nodes: NodeSet, begin: int) -> int | None:
        """Return the begin of the first plan on any of the nodes."""
        steps = range(max(bisect_right(self.begins, begin) - 1, 0), len(self.begins))
        return next((self.begins[at] for at in steps if nodes & self.free[at] != nodes), None)

    def take(self, nodes: NodeSet, begin: int, end: int) -> None:
        """Plan the nodes for a job. Times behind the window are ignored."""
        first, behind = self.slot(begin, end)
        if first >= self.end:
            return
        steps = range(
            self._cut(first), self._cut(behind) if behind < self.end else len(self.begins)
        )
        for at in steps:
            self.free[at] = node_set.without(self.free[at], nodes)
        self._merge(steps.stop)
        self._merge(steps.start)

    def _cut(self, at: int) -> int:
        step = bisect_left(self.begins, at)
        if step == len(self.begins) or self.begins[step] != at:
            self.begins.insert(step, at)
            self.free.insert(step, self.free[step - 1])
        return step

    def _merge(self, step: int) -> None:
        if 0 < step < len(self.begins) and self.free[step] == self.free[step - 1]:
            del self.begins[step], self.free[step]
