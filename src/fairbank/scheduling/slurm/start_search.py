"""Search of backfill for the first time at which a job can start on nodes without a plan
(slurm-rules.md, "Backfill").

Slurm guesses a start, finds a plan in its way, and guesses again from there, as long as bf_max_time
permits. This search visits the times at which more nodes are free in order, and skips those at
which too few can be free. The rules are the same, and no limit of time is needed.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from fairbank.scheduling.machines.nodes import Nodes, PreemptBy
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest
from fairbank.scheduling.slurm.node_times import EndTimes, PlannedNodes
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.preemption import place_by_preemption, select_preempted
from fairbank.scheduling.slurm.queue_order import QueueEntry


class JobStart(NamedTuple):
    """Time and place at which a job could start."""

    at: int
    placement: Placement


class StartSearch(NamedTuple):
    """State of a cycle that the search reads. `started` are the jobs of this pass, which are not
    preempted.
    """

    nodes: Nodes
    free: FreeResources
    end_times: EndTimes
    planned_nodes: PlannedNodes
    parameters: SchedulerParameters
    now: int
    started: Set[int]

    def earliest_start(
        self, entry: QueueEntry, request: PlacementRequest, begin: int, *, later: bool
    ) -> JobStart | None:
        """Return the first start from a time on, on nodes that neither plans nor advanced
        reservations need until the job would end; None if there is none.

        Args:
            entry: the job in one of its partitions.
            request: its request, resolved for that partition.
            begin: time in seconds, now or later.
            later: search after now, too.
        """
        possible = entry.nodes & self.nodes.cluster.usable & request.possible()
        if possible.bit_count() < request.least or request.required & possible != request.required:
            return None
        seconds = entry.job.least_seconds(entry.rules)
        if begin > self.now:
            if not later:
                return None
            return self._later_start(entry.job, request, possible, seconds, begin)
        usable, not_before = self._usable_nodes(
            entry.job, request, possible, self.now, self.now, seconds
        )
        placement = (
            self.end_times.place(request, usable, self.now) if not_before <= self.now else None
        )
        if placement is None and self.nodes.preemption.by is not PreemptBy.NONE:
            placement = self._place_by_preemption(entry, request, possible, self.now + seconds)
        if placement is not None:
            return JobStart(self.now, placement)
        if not later:
            return None
        return self._later_start(entry.job, request, possible, seconds, not_before)

    def _later_start(
        self,
        job: PendingJob,
        request: PlacementRequest,
        possible: NodeSet,
        seconds: int,
        not_before: int,
    ) -> JobStart | None:
        """Return the first start after now; None if bf_window ends before it.

        As in Slurm no time behind bf_window is tried, but the last step may lead behind it: such a
        start is expected and takes no nodes, so that it delays no other job.

        More nodes become usable at two kinds of times: when jobs end (visited at the end of each
        stretch, as Slurm does), and when a plan or advanced reservation releases nodes. Both are
        visited in order.

        Args:
            job: the pending job.
            possible: nodes of its partition that could run it.
            seconds: how long it must be able to run.
            not_before: every span that begins earlier has too few nodes.
        """
        enough_from = self.end_times.enough_nodes_from(request, possible)
        if enough_from is None:
            return None
        ends = iter(self.end_times.stretch_ends)
        end, visited = next(ends, None), self.now
        while visited <= self.now + self.parameters.window_seconds:
            not_before = max(not_before, enough_from)
            while end is not None and (end <= visited or end < not_before):
                # No need to test here, but what is released later is looked for from here on.
                visited, end = max(visited, end), next(ends, None)
            if not_before > max(visited, enough_from):
                release: int | None = not_before  # plans say so: no release before it helps
            else:
                # `_next_release` looks behind a time. A release at `enough_from` counts too.
                release = self._next_release(possible, max(visited, enough_from - 1))
            if release is not None and (end is None or release <= end):
                begin = at = release
            elif end is not None:
                # The job starts when the last job that it needs to end has ended, which may be
                # before the end of the stretch. So its span begins with the stretch.
                at = end
                begin = (
                    visited if visited >= enough_from else self._last_release(possible, visited, at)
                )
            else:
                return None
            usable, not_before = self._usable_nodes(job, request, possible, begin, at, seconds)
            if not_before <= begin:
                placement = self.end_times.place(request, usable, at)
                if placement is not None:
                    return JobStart(self.end_times.start_time(placement, begin, at), placement)
            visited = at
        return None

    def _last_release(self, possible: NodeSet, since: int, until: int) -> int:
        """Return the last release up to a time; `since` if there is none.

        Times at which too few jobs had ended were skipped. Plans that ended at one of them must
        not be in the way.
        """
        last, release = since, self._next_release(possible, since)
        while release is not None and release <= until:
            last, release = release, self._next_release(possible, release)
        return last

    def _next_release(self, possible: NodeSet, after: int) -> int | None:
        """Return the next time at which a plan or advanced reservation releases a node."""
        times = (
            self.planned_nodes.next_release(possible, after),
            self.nodes.reservations.next_release(after),
        )
        return min((time for time in times if time is not None), default=None)

    def _usable_nodes(
        self,
        job: PendingJob,
        request: PlacementRequest,
        possible: NodeSet,
        begin: int,
        at: int,
        seconds: int,
    ) -> tuple[NodeSet, int]:
        """Return the nodes for a job that starts at `at`, from `begin` until it ends, and a time
        before which every span has too few.

        Plans begin at a step of bf_resolution, so another plan for a start at `at` begins before
        `at`. It must not count against the nodes that are free at `at`.
        """
        end, nodes_at = at + seconds, self.end_times.usable_nodes(request.demand)
        by_start = nodes_at if at == begin else lambda time: nodes_at(max(time, at))
        usable, not_before = self.planned_nodes.unplanned_nodes(
            possible, begin, end, request.least, by_start
        )
        if self.nodes.reservations:
            usable &= self.nodes.reservations.usable_nodes(
                job, begin, end, resolution=self.parameters.bf_resolution
            )
        return usable, not_before

    def _place_by_preemption(
        self, entry: QueueEntry, request: PlacementRequest, possible: NodeSet, end: int
    ) -> Placement | None:
        """Return a placement now on nodes of jobs that go first. Nodes with a plan are excluded."""
        usable, _ = self.planned_nodes.unplanned_nodes(
            possible, self.now, end, request.least, lambda time: possible
        )
        usable &= self.nodes.reservations.usable_nodes(
            entry.job, self.now, end, resolution=self.parameters.bf_resolution
        )
        kind = entry.rules.name, entry.job.qos
        running = [job for _, _, job in self.end_times.running]
        candidates = select_preempted(
            self.nodes, running, kind, usable, self.now, spared=self.started
        )
        return place_by_preemption(self.nodes, self.free, request, usable, candidates)
