"""Which nodes are planned for nobody, from now until the window of backfill ends: whole nodes, in steps of bf_resolution.

Jobs that run are not in it: what they hold comes back as they end (`scheduling.slurm.end_times`).

Source: docs/reference/slurm-rules.md, "Backfill".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from fairbank.scheduling.machines.machine import FOR_EVER
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet

_STRIDE = 8
"""So many steps are taken together before it is counted what they leave."""


class PlannedNodes:
    """Steps in order: `free[i]` from `begins[i]` until the next one begins; the last one for ever, but nothing is kept behind `end`."""

    def __init__(self, nodes: NodeSet, now: int, window: int, resolution: int) -> None:
        self.resolution = resolution
        self.end = (now + window) // resolution * resolution
        self.begins = [now // resolution * resolution]
        self.free = [nodes]

    def _ends(self, step: int) -> int:
        return self.begins[step + 1] if step + 1 < len(self.begins) else FOR_EVER

    def window(
        self, among: NodeSet, begin: int, end: int, least: int, room: Callable[[int], NodeSet]
    ) -> tuple[NodeSet, int]:
        """Those of the nodes that are planned for nobody from `begin` until `end`, both included, and `begin`. Where fewer than `least` are
        left that have room: some of them, and the instant before which every window of that length has too few.

        `room` says which nodes have room for the job at an instant: later never fewer. The end is looked at first, so that the first steps
        that leave too few together say how far the window must move.
        """
        first = max(bisect_right(self.begins, begin) - 1, 0)
        step = max(bisect_right(self.begins, end) - 1, first)
        usable = among
        while step >= first:
            known, stop = usable, max(step - _STRIDE, first - 1)
            for at in range(step, stop, -1):
                usable &= self.free[at]
            if (usable & room(self._ends(stop + 1))).bit_count() < least:
                while (
                    (known := known & self.free[step]) & room(self._ends(step))
                ).bit_count() >= least:
                    step -= 1
                return known, self._ends(step)
            step = stop
        return usable, begin

    def more(self, among: NodeSet, after: int) -> int | None:
        """When some of the nodes are next given back by a plan; None where that never happens."""
        step = max(bisect_right(self.begins, after) - 1, 0)
        here = among & self.free[step]
        for at in range(step + 1, len(self.begins)):
            there = among & self.free[at]
            if there & here != there:
                return self.begins[at]
            here = there
        return None

    def slot(self, begin: int, end: int) -> tuple[int, int]:
        """The steps of the clock that a plan takes: from the one it begins in until the one it ends in, one at least."""
        first, resolution = begin // self.resolution * self.resolution, self.resolution
        return first, max(-(-end // resolution) * resolution, first + resolution)

    def first_conflict(self, nodes: NodeSet, begin: int) -> int | None:
        """When the first plan begins on any of the nodes."""
        steps = range(max(bisect_right(self.begins, begin) - 1, 0), len(self.begins))
        return next((self.begins[at] for at in steps if nodes & self.free[at] != nodes), None)

    def take(self, nodes: NodeSet, begin: int, end: int) -> None:
        """They are planned for somebody. What lies behind the window is nobody's concern."""
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
