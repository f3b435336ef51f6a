"""Slurm's backfill pass: jobs that can start now without delaying those ahead, and the expected
start of each of these (slurm-rules.md, "Backfill").

It tests the queue once. A job starts if it fits now on nodes that no plan needs before it would
end. For each other job, whole nodes are planned at the first time that is found, and the jobs
behind keep off them. All plans are forgotten before the next pass. The result calls the plan of a
job its `JobReservation`. Slurm's advanced reservations are another thing: `nodes.reservations`.

Slurm guesses a start, finds a plan in its way, and guesses again from there, as long as bf_max_time
permits. This pass visits the times at which more nodes are free in order, and skips those at which
too few can be free. The rules are the same, and no limit of time is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.machines.nodes import PreemptBy
from fairbank.scheduling.pending_job import PendingJob, to_running
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest
from fairbank.scheduling.plan import (
    LICENCES,
    NEVER_TESTED,
    JobReservation,
    PlannedStart,
    SchedulePlan,
)
from fairbank.scheduling.slurm.node_times import EndTimes, PlannedNodes
from fairbank.scheduling.slurm.parameters import (
    SchedulerParameters,
    backfill_caps,
    can_reserve,
    cap_keys,
)
from fairbank.scheduling.slurm.preemption import place_by_preemption, select_preempted
from fairbank.scheduling.slurm.queue_order import (
    OrderedEntries,
    QueueEntry,
    placement_request,
    queue_entries,
)


def backfill(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    now: int,
    *,
    queued: OrderedEntries | None = None,
    begun_now: Iterable[int] = (),
) -> SchedulePlan[PendingJob, Placement]:
    """Run one cycle. A job that starts with a limit reduced towards its least time has that limit.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        now: time of the cycle in seconds.
        queued: entries of the queue if they are known already.
        begun_now: numbers of the jobs that the main pass just started. They are not preempted.
    """
    cycle = _Cycle(
        snapshot,
        parameters,
        now,
        queued or queue_entries(snapshot.machine, snapshot.queue.jobs(), now, by_least_time=True),
        begun_now,
    )
    for entry in cycle.entries:
        if cycle.is_over():
            break
        if cycle.is_tested(entry):
            cycle.test(entry)
    return SchedulePlan(cycle.starts, cycle.reservations(), cycle.reasons, NEVER_TESTED)


class _JobStart(NamedTuple):
    """Time and place at which a job could start."""

    at: int
    placement: Placement


class _Cycle:
    """State of one cycle: copies that only this cycle changes.

    Invariants: `free`, `limits` and `end_times` contain the jobs of `starts` and lack the preempted
    ones. `planned_nodes` has the nodes of all reservations within the window, and `reserved` counts
    these reservations by job, partition and array. `expected` has the earliest reservation of each
    job, also of those that started later in another partition. A job in `started` is never tested
    again.
    """

    def __init__(
        self,
        snapshot: OnNodes,
        parameters: SchedulerParameters,
        now: int,
        queued: OrderedEntries,
        begun_now: Iterable[int],
    ) -> None:
        self.nodes, self.parameters, self.now = snapshot.machine, parameters, now
        self.limits = snapshot.machine.limits.copy()
        self.free = snapshot.machine.free.copy()
        self.end_times = EndTimes(
            self.nodes.search, self.free, snapshot.running, now, linear=parameters.bf_window_linear
        )
        self.planned_nodes = PlannedNodes(
            self.nodes.cluster.usable, now, parameters.window_seconds, parameters.bf_resolution
        )
        self.entries, self.reasons = queued[0], dict(queued[1])
        self.starts: list[PlannedStart[PendingJob, Placement]] = []
        self.expected: dict[int, JobReservation[PendingJob, Placement]] = {}
        self.started = set(begun_now)
        self.caps = backfill_caps(parameters)
        self.reserved = Counter[str | int]()
        self.tested = 0

    def is_over(self) -> bool:
        """Return True if the cycle has tested or started as many jobs as it may."""
        parameters = self.parameters
        return self.tested >= parameters.bf_max_job_test or 0 < parameters.bf_max_job_start <= len(
            self.starts
        )

    def reservations(self) -> list[JobReservation[PendingJob, Placement]]:
        """Return the earliest reservation of each job that did not start."""
        return [
            reservation
            for number, reservation in self.expected.items()
            if number not in self.started
        ]

    def is_tested(self, entry: QueueEntry) -> bool:
        """Return True if the job has not started and its caps allow a test, which is counted."""
        job = entry.job
        return job.number not in self.started and self.caps.allow(
            *cap_keys(self.parameters, job.user, job.account, entry.rules.name)
        )

    def test(self, entry: QueueEntry) -> None:
        """Start the job, reserve for it, or leave it.

        A limit holds a job in one partition: it may start in another.
        """
        job, partition = entry.job, entry.rules.name
        if (held := self.limits.hold_reason(job, partition)) is not None:
            if held != LICENCES:  # backfill says nothing about licences
                self.reasons[job.number] = held
            if not self.parameters.assoc_limit_stop:
                return
        self.tested += 1
        request, can_wait = placement_request(self.nodes, entry), self._can_reserve(entry)
        start = self._earliest_start(entry, request, later=can_wait)
        if start is None:
            return
        # Without a placement the limits counted what the job requests, now what it would get.
        exceeded = (
            None if held is not None else self.limits.hold_reason(job, partition, start.placement)
        )
        if exceeded is not None:
            self.reasons[job.number] = exceeded
        elif start.at > self.now:
            if can_wait:
                self._reserve(entry, start)
        elif held is None:
            self._start(entry, start.placement)

    def _can_reserve(self, entry: QueueEntry) -> bool:
        """Return True if nodes are reserved for the job if it cannot start now.

        Nothing is planned for jobs that are too young or too low, for an entry with
        preference, which comes again without it, nor beyond the maximum for a job, array or
        partition.
        """
        parameters, job = self.parameters, entry.job
        if entry.with_preference or not can_reserve(
            parameters, self.now - job.eligible, entry.priority
        ):
            return False
        of_partition = self.reserved[f"partition {entry.rules.name}"]
        return not (
            (parameters.bf_one_resv_per_job and self.reserved[job.number])
            or (
                job.array is not None
                and self.reserved[f"array {job.array}"] > parameters.bf_max_job_array_resv
            )
            or 0 < parameters.bf_job_part_count_reserve <= of_partition
        )

    def _earliest_start(
        self, entry: QueueEntry, request: PlacementRequest, *, later: bool
    ) -> _JobStart | None:
        """Return the first start on nodes that neither plans nor advanced reservations need until
        the job would end. `later`: search after now, too.
        """
        possible = entry.nodes & self.nodes.cluster.usable & request.possible()
        if possible.bit_count() < request.least or request.required & possible != request.required:
            return None
        seconds = entry.job.least_seconds(entry.rules)
        usable, not_before = self._usable_nodes(
            entry.job, request, possible, self.now, self.now, seconds
        )
        placement = (
            self.end_times.place(request, usable, self.now) if not_before <= self.now else None
        )
        if placement is None and self.nodes.preemption.by is not PreemptBy.NONE:
            placement = self._place_by_preemption(entry, request, possible, self.now + seconds)
        if placement is not None:
            return _JobStart(self.now, placement)
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
    ) -> _JobStart | None:
        """Return the first start after now; None if bf_window ends before it.

        As in Slurm no time behind bf_window is tried, but the last step may lead behind it: such a
        start is expected and takes no nodes, so that it delays no other job.

        More nodes become usable at two kinds of times: when jobs end (visited at the end of each
        stretch, as Slurm does), and when a plan or advanced reservation releases nodes. Both are
        visited in order.

        Args:
            job: the pending job.
            request: its request.
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
                # A release at `enough_from` itself counts, hence the second before.
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
                    return _JobStart(self.end_times.start_time(placement, begin, at), placement)
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

        A plan for the same time as this one begins earlier, with its step of bf_resolution. It must
        not count against the nodes that are free by then.
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

    def _start(self, entry: QueueEntry, placement: Placement) -> None:
        job = entry.job
        seconds = self._time_limit(entry, placement.nodes)
        for running in [job for _, _, job in self.end_times.running]:
            if running.number in placement.preempted:
                self.end_times.end(running)
        self.end_times.begin(to_running(job, placement, self.now, seconds))
        self.limits.record_start(job, placement)
        if seconds != job.seconds(entry.rules):
            job = msgspec.structs.replace(job, limit=seconds)
        self.starts.append(PlannedStart(job, placement))
        self.started.add(job.number)
        self.reasons.pop(job.number, None)

    def _time_limit(self, entry: QueueEntry, nodes: NodeSet) -> int:
        """Return the time limit of a job that starts now, in seconds.

        A job with a least time runs until its nodes are planned or reserved for others, in whole
        minutes, but not less than that.
        """
        longest, least = entry.job.seconds(entry.rules), entry.job.least_seconds(entry.rules)
        if least == longest:
            return longest
        claims = (
            self.planned_nodes.first_conflict(nodes, self.now),
            self.nodes.reservations.next_claim(entry.job, nodes, self.now),
        )
        until = min((time for time in claims if time is not None), default=self.now + longest)
        return longest if until >= self.now + longest else max((until - self.now) // 60 * 60, least)

    def _reserve(self, entry: QueueEntry, start: _JobStart) -> None:
        """Plan whole nodes for the job. A start behind bf_window is expected, but not planned."""
        job, partition = entry.job, entry.rules.name
        expected = self.expected.get(job.number)
        if expected is None or start.at < expected.at:
            self.expected[job.number] = JobReservation(job, start.at, start.placement)
        if start.at >= self.planned_nodes.end:
            return
        self.reserved.update((job.number, f"partition {partition}", f"array {job.array}"))
        until = start.at + job.least_seconds(entry.rules)
        self.planned_nodes.take(start.placement.nodes, start.at, until)
