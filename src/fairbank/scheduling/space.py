"""Which nodes are planned for nobody, from now until the window of backfill ends: whole nodes, in steps of bf_resolution (facts, 6.2).

Jobs that run are not in it: what they hold comes back as they end (`scheduling.ahead`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from fairbank.scheduling.placement import nodeset
from fairbank.scheduling.placement.nodeset import NodeSet


class Space:
    """Steps in order: `free[i]` from `begins[i]` until the next one begins; the last one until `end`."""

    def __init__(self, nodes: NodeSet, now: int, window: int, resolution: int) -> None:
        self.resolution = resolution
        self.end = (now + window) // resolution * resolution
        self.begins = [now // resolution * resolution]
        self.free = [nodes]

    def _ends(self, step: int) -> int:
        return self.begins[step + 1] if step + 1 < len(self.begins) else self.end

    def window(self, among: NodeSet, begin: int, end: int, least: int) -> tuple[NodeSet, int | None]:
        """Those of the nodes that are planned for nobody from `begin` until `end`, both included; and the first instant after `begin` at
        which others of them come free, None where that never happens.

        Looks no further than is needed to say that fewer than `least` are left.
        """
        step = max(bisect_right(self.begins, begin) - 1, 0)
        usable = among
        for at in range(step, max(bisect_right(self.begins, end), step + 1)):
            usable &= self.free[at]
            if usable.bit_count() < least:
                if (among & self.free[at]).bit_count() < least:
                    return usable, self._next_with(among, at + 1, least)
                break
        return usable, self._more(among, step)

    def _more(self, among: NodeSet, step: int) -> int | None:
        here = among & self.free[step]
        for at in range(step + 1, len(self.begins)):
            there = among & self.free[at]
            if there & here != there:
                return self.begins[at]
            here = there
        return None

    def _next_with(self, among: NodeSet, step: int, least: int) -> int | None:
        """When so many of the nodes are planned for nobody: no stretch that holds an earlier instant will do."""
        steps = range(step, len(self.begins))
        return next((self.begins[at] for at in steps if (among & self.free[at]).bit_count() >= least), None)

    def slot(self, begin: int, end: int) -> tuple[int, int]:
        """The steps of the clock that a plan takes: from the one it begins in until the one it ends in, one at least."""
        first, resolution = begin // self.resolution * self.resolution, self.resolution
        return first, max(-(-end // resolution) * resolution, first + resolution)

    def overlaps(self, nodes: NodeSet, begin: int, end: int) -> bool:
        """Whether some of the nodes are planned for somebody in that time."""
        first, behind = self.slot(begin, end)
        steps = range(max(bisect_right(self.begins, first) - 1, 0), bisect_left(self.begins, behind))
        return any(nodes & self.free[at] != nodes for at in steps)

    def first_conflict(self, nodes: NodeSet, begin: int) -> int | None:
        """When the first plan begins on any of the nodes."""
        steps = range(max(bisect_right(self.begins, begin) - 1, 0), len(self.begins))
        return next((self.begins[at] for at in steps if nodes & self.free[at] != nodes), None)

    def take(self, nodes: NodeSet, begin: int, end: int) -> None:
        """They are planned for somebody. What lies behind the window is nobody's concern."""
        first, behind = self.slot(begin, end)
        if first >= self.end:
            return
        steps = range(self._cut(first), self._cut(behind) if behind < self.end else len(self.begins))
        for at in steps:
            self.free[at] = nodeset.without(self.free[at], nodes)
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
