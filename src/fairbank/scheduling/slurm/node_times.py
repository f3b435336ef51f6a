"""Nodes from now on, as backfill sees them (slurm-rules.md, "Backfill").

Plans take whole nodes, in steps of bf_resolution: `PlannedNodes` has the nodes without a plan.
Running jobs are not in it: their nodes come back as they end, which `EndTimes` follows. Slurm
groups ends: it tests a job after each stretch of ends, and the stretches double. A job so gets a
time slightly later than the first at which it would fit, for far fewer tests.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from operator import itemgetter

from fairbank.cluster.node import Gpus
from fairbank.scheduling.pending_job import Active
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import FreeResources, NodeDemand, Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts
from fairbank.scheduling.placement.search import (
    FreeNodes,
    PlacementRequest,
    PlacementSearch,
    find_placement,
)
from fairbank.scheduling.slurm.parameters import expected_end
from fairbank.scheduling.snapshot import FOR_EVER

_STRIDE = 8
"""Steps that are combined before their nodes are counted."""


class PlannedNodes:
    """Nodes without a plan, as steps: `free[i]` from `begins[i]` until the next step begins. The
    last step lasts for ever, but nothing is planned behind `end`: that of bf_window, in steps of
    bf_resolution as in Slurm.
    """

    def __init__(self, nodes: NodeSet, now: int, window: int, resolution: int) -> None:
        self.resolution = resolution
        self.end = (now + window) // resolution * resolution
        self.begins = [now // resolution * resolution]
        self.free = [nodes]

    def _ends(self, step: int) -> int:
        return self.begins[step + 1] if step + 1 < len(self.begins) else FOR_EVER

    def unplanned_nodes(
        self,
        among: NodeSet,
        begin: int,
        end: int,
        least: int,
        fitting_nodes: Callable[[int], NodeSet],
    ) -> tuple[NodeSet, int]:
        """Return nodes without a plan from `begin` until `end`, and a time before which no such
        span has enough.

        If the job fits on fewer than `least` of them, these are some of the nodes, and the time is
        later than `begin`.

        The end is tested first, so that the first steps that together leave too few say how far the
        span must move.

        Args:
            among: nodes that the job may use.
            begin: begin of the span in seconds, included.
            end: end of the span in seconds, included.
            least: number of nodes that the job needs.
            fitting_nodes: function from a time to the nodes on which the job fits. Later there
                are never fewer.
        """
        first = max(bisect_right(self.begins, begin) - 1, 0)
        step = max(bisect_right(self.begins, end) - 1, first)
        usable = among
        while step >= first:
            known, stop = usable, max(step - _STRIDE, first - 1)
            for at in range(step, stop, -1):
                usable &= self.free[at]
            if (usable & fitting_nodes(self._ends(stop + 1))).bit_count() < least:
                while (
                    (known := known & self.free[step]) & fitting_nodes(self._ends(step))
                ).bit_count() >= least:
                    step -= 1
                return known, self._ends(step)
            step = stop
        return usable, begin

    def next_release(self, among: NodeSet, after: int) -> int | None:
        """Return the next time at which a plan releases some of the nodes, or None."""
        step = max(bisect_right(self.begins, after) - 1, 0)
        here = among & self.free[step]
        for at in range(step + 1, len(self.begins)):
            there = among & self.free[at]
            if there & here != there:
                return self.begins[at]
            here = there
        return None

    def first_conflict(self, nodes: NodeSet, begin: int) -> int | None:
        """Return the begin of the first plan on any of the nodes."""
        steps = range(max(bisect_right(self.begins, begin) - 1, 0), len(self.begins))
        return next((self.begins[at] for at in steps if nodes & self.free[at] != nodes), None)

    def take(self, nodes: NodeSet, begin: int, end: int) -> None:
        """Plan the nodes for a job.

        Args:
            nodes: nodes that the job would get.
            begin: expected start in seconds, rounded down to a step; nothing is planned if it is
                beyond bf_window.
            end: expected end in seconds, rounded up to a step; beyond bf_window the nodes stay
                planned.
        """
        # From the step in which the plan begins until the one in which it ends, at least one.
        resolution = self.resolution
        first = begin // resolution * resolution
        behind = max(-(-end // resolution) * resolution, first + resolution)
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


class IdleNodes:
    """Idle nodes from now on, if each job stays until its end.

    Invariant: `_begun` has the jobs that started since, by their ends, which are in `_until`;
    `_busy` has the nodes of these jobs from each one on.
    """

    def __init__(self, idle: NodeSet, running: Sequence[tuple[int, NodeSet]]) -> None:
        """Initialise with the idle nodes, and end and nodes of running jobs by end."""
        seen, released = node_set.NO_NODES, list[tuple[int, NodeSet]]()
        for end, nodes in reversed(running):
            # A node is idle when the last of its jobs is gone.
            released.append((end, node_set.without(nodes, seen)))
            seen |= nodes
        self._ends: list[int] = []
        self._idle = [idle]
        for end, nodes in reversed(released):
            idle |= nodes
            self._ends.append(end)
            self._idle.append(idle)
        self._begun: list[tuple[int, NodeSet]] = []
        self._until: list[int] = []
        self._busy: list[NodeSet] = []

    def at(self, instant: int) -> NodeSet:
        """Return the nodes without a job at a time."""
        idle = self._idle[bisect_right(self._ends, instant)]
        later = bisect_right(self._until, instant)
        return node_set.without(idle, self._busy[later]) if later < len(self._until) else idle

    def begin(self, end: int, nodes: NodeSet) -> None:
        """Add a job that starts now on these nodes and runs until `end`."""
        insort(self._begun, (end, nodes))
        busy, busy_from = node_set.NO_NODES, []
        for _, job_nodes in reversed(self._begun):
            busy |= job_nodes
            busy_from.append(busy)
        self._busy = busy_from[::-1]
        self._until = [until for until, _ in self._begun]


_END, _END_AND_NUMBER = itemgetter(0), itemgetter(0, 1)
"""Keys of running jobs: time of the end, and number of the job."""
STRETCH = 30
"""Seconds: resolution of the first end, and length of the first stretch behind it."""


class _WholeNodes:
    """Free nodes for a job that needs whole nodes: the idle ones, with all that they have."""

    def __init__(self, empty: FreeResources, idle: NodeSet) -> None:
        self.empty, self.idle = empty, idle

    def nodes(self, demand: NodeDemand) -> NodeSet:
        return self.empty.nodes(demand) & self.idle

    def tasks(self, demand: NodeDemand) -> Counts:
        return self.empty.tasks(demand)

    def gpus_at(self, place: int, wanted: tuple[Gpus, ...], *, alone: bool) -> tuple[Gpus, ...]:
        return self.empty.gpus_at(place, wanted, alone=alone)

    def gpu_counts(self, kind: str) -> Counts:
        return self.empty.gpu_counts(kind)


class EndTimes:
    """Nodes from now on if all running jobs use their whole time limit.

    Invariants: `running` is in the order of expected ends, with the jobs that started in this pass.
    `stretch_ends` has the last end of each stretch. `_free_by_time` caches the free resources at
    ends of stretches, and `_can_ever_fit` the result for requests: what one job needs is computed
    for the next. `_rebuild` resets all of them after a preemption.
    """

    def __init__(
        self,
        search: PlacementSearch,
        free: FreeResources,
        running: list[Active],
        now: int,
        *,
        linear: int = 0,
    ) -> None:
        """Initialise with the running jobs. `linear`: seconds by which each stretch is longer than
        the one before (bf_window_linear); 0: stretches double.
        """
        self.search, self.now, self.free, self.linear = search, now, free, linear
        self.running = sorted((expected_end(job.ends, now), job.number, job) for job in running)
        self._can_ever_fit: dict[tuple[PlacementRequest, NodeSet], bool] = {}
        self._rebuild()

    def _rebuild(self) -> None:
        self._idle = IdleNodes(
            self.free.idle, [(end, job.placement.nodes) for end, _, job in self.running]
        )
        self._free_by_time: dict[int, FreeResources] = {}
        self.stretch_ends = self._stretch_ends()

    def free_at(self, at: int, demand: NodeDemand) -> FreeNodes:
        """Return what is free when the jobs that end by `at` have ended. For jobs that share nodes:
        by the end of the last stretch before.

        The caller must not change it.
        """
        if demand.alone:
            return _WholeNodes(self.search.empty, self._idle.at(at))
        before = bisect_right(self.stretch_ends, at)
        return self._free_after(self.stretch_ends[before - 1]) if before else self.free

    def _free_after(self, at: int) -> FreeResources:
        free = self._free_by_time.get(at)
        if free is None:
            since = max((known for known in self._free_by_time if known < at), default=self.now)
            free = self._free_by_time[at] = self._free_by_time.get(since, self.free).copy()
            begin, end = (bisect_right(self.running, instant, key=_END) for instant in (since, at))
            free.give_all(job.placement for _, _, job in self.running[begin:end])
        return free

    def usable_nodes(self, demand: NodeDemand) -> Callable[[int], NodeSet]:
        """Return a function from a time to the nodes on which a task fits then."""
        return self._idle.at if demand.alone else lambda at: self.free_at(at, demand).nodes(demand)

    def _stretch_ends(self) -> list[int]:
        """Return the last end of each stretch. The first stretch begins with the first end."""
        ends, at, stretch = list[int](), 0, STRETCH
        while at < len(self.running):
            until = -(-self.running[at][0] // STRETCH) * STRETCH + stretch
            at = bisect_right(self.running, until, key=_END)
            ends.append(self.running[at - 1][0])
            stretch = stretch + self.linear if self.linear else stretch * 2
        return ends

    def begin(self, job: Active) -> None:
        """Add a job that starts now."""
        insort(self.running, (job.ends, job.number, job), key=_END_AND_NUMBER)
        self._idle.begin(job.ends, job.placement.nodes)
        self.free.take(job.placement)
        for at, free in self._free_by_time.items():
            if at < job.ends:
                free.take(job.placement)
        # The job now runs as all others do, so that its end is in one of the stretches, too.
        self.stretch_ends = self._stretch_ends()

    def end(self, job: Active) -> None:
        """Remove a job that is preempted now."""
        self.running = [entry for entry in self.running if entry[1] != job.number]
        self.free.give(job.placement)
        self._rebuild()

    def place(self, request: PlacementRequest, within: NodeSet, at: int) -> Placement | None:
        """Return the placement of the job at a time; None if it does not fit then.

        Args:
            request: resolved request of the job.
            within: nodes that it may use.
            at: time in seconds; what is free then is that of `free_at`.
        """
        return find_placement(
            self.search.cluster, self.free_at(at, request.demand), request, within
        )

    def enough_nodes_from(self, request: PlacementRequest, within: NodeSet) -> int | None:
        """Return the time before which too few nodes are free, even without any plan. None: there
        are never enough.
        """
        key = request, within
        if key not in self._can_ever_fit:
            self._can_ever_fit[key] = (
                find_placement(self.search.cluster, self.search.empty, request, within) is not None
            )
        if not self._can_ever_fit[key]:
            return None
        if (
            not request.demand.alone
            or (self._idle.at(self.now) & within).bit_count() >= request.least
        ):
            return self.now
        # Idle nodes only increase with the ends of running jobs.
        first = bisect_left(
            self.running,
            request.least,
            key=lambda running: (self._idle.at(running[0]) & within).bit_count(),
        )
        return self.running[first][0] if first < len(self.running) else self.now

    def start_time(self, placement: Placement, begin: int, until: int) -> int:
        """Return the last end of a running job for which a placement must wait, or `begin`.

        Args:
            placement: nodes that the job would get.
            begin: time in seconds, before which the job cannot start; ends by then do not count.
            until: time in seconds at which the placement was found, included.
        """
        after = bisect_right(self.running, begin, key=_END)
        upto = bisect_right(self.running, until, key=_END)
        for at in range(upto - 1, after - 1, -1):
            end, _, job = self.running[at]
            if job.placement.nodes & placement.nodes:
                return end
        return begin
