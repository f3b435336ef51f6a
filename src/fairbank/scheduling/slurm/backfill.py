"""Slurm's backfill pass: jobs that can start now without delaying those ahead, and the expected
start of each of these (slurm-rules.md, "Backfill").

It tests the queue once. A job starts if it fits now on nodes that no plan needs before it would
end. For each other job, whole nodes are planned at the first time that is found, and the jobs
behind keep off them. All plans are forgotten before the next pass. In the
result, a `JobReservation` is the plan of one job. Slurm's advanced reservations are in
`nodes.reservations`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.pending_job import PendingJob, to_running
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.plan import (
    LICENSES,
    NEVER_TESTED,
    RESOURCES,
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
from fairbank.scheduling.slurm.queue_order import (
    OrderedEntries,
    QueueEntry,
    placement_request,
    queue_entries,
)
from fairbank.scheduling.slurm.start_search import JobStart, StartSearch


def backfill(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    now: int,
    *,
    queued: OrderedEntries | None = None,
    begun_now: Iterable[int] = (),
) -> SchedulePlan[PendingJob, Placement]:
    """Run one cycle. A job that starts with a limit reduced towards its least time has that limit.

    With heterogeneous jobs it is the last of some cycles: a component is not planned before the
    time at which, in the cycle before, the last of the others could start.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        now: time of the cycle in seconds.
        queued: entries of the queue if they are known already.
        begun_now: numbers of the jobs that the main pass just started. They are not preempted.
    """
    queued = queued or queue_entries(
        snapshot.machine, snapshot.queue.jobs(), now, by_least_time=True
    )
    components = _components(snapshot.queue.jobs())
    starts_of_whole: StartsOfWhole = {}
    for _ in range(MAX_CYCLES):
        cycle = _Cycle(snapshot, parameters, now, queued, begun_now, starts_of_whole)
        for entry in cycle.entries:
            if cycle.is_over():
                break
            if cycle.is_tested(entry):
                cycle.test(entry)
        before = starts_of_whole
        starts_of_whole = {
            number: cycle.start_together(jobs) for number, jobs in components.items()
        }
        if starts_of_whole == (before or dict.fromkeys(components, now)):
            break
        # Those of a component remain: the next cycle may not test it.
        reasons = {
            job.number: cycle.reasons[job.number]
            for jobs in components.values()
            for job in jobs
            if job.number in cycle.reasons
        }
        queued = queued[0], {**queued[1], **reasons}
    return SchedulePlan(
        cycle.starts, cycle.reservations(starts_of_whole), cycle.reasons, NEVER_TESTED
    )


def _components(jobs: Iterable[PendingJob]) -> Mapping[int, Sequence[PendingJob]]:
    """Return the components of each heterogeneous job."""
    components = defaultdict[int, list[PendingJob]](list)
    for job in jobs:
        if job.het_job is not None:
            components[job.het_job].append(job)
    return components


StartsOfWhole = Mapping[int | None, int | None]
"""Times, by the number of a heterogeneous job, at which all components can start; None: never."""

MAX_CYCLES = 5
"""Most cycles until the starts of all components agree. Mostly two do; components that need the
same nodes never agree.
"""


class _Cycle:
    """State of one cycle: copies that only this cycle changes.

    Invariants: `free`, `limits` and `end_times` contain the jobs of `starts` and lack the preempted
    ones. `planned_nodes` has the nodes of all reservations within the window, and `reserved` counts
    these reservations by job, partition and array. `expected` has the earliest reservation of each
    job, also of those that started later in another partition. A job in `started` is never tested
    again. `starts_of_whole` are those of the cycle before.
    """

    def __init__(
        self,
        snapshot: OnNodes,
        parameters: SchedulerParameters,
        now: int,
        queued: OrderedEntries,
        begun_now: Iterable[int],
        starts_of_whole: StartsOfWhole,
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
        self.search = StartSearch(
            self.nodes, self.free, self.end_times, self.planned_nodes, parameters, now, self.started
        )
        self.starts_of_whole = starts_of_whole
        self.caps = backfill_caps(parameters)
        self.reserved = Counter[str | int]()
        self.tested = 0

    def is_over(self) -> bool:
        """Return True if the cycle has tested or started as many jobs as it may."""
        parameters = self.parameters
        return self.tested >= parameters.bf_max_job_test or 0 < parameters.bf_max_job_start <= len(
            self.starts
        )

    def reservations(
        self, starts_of_whole: StartsOfWhole
    ) -> list[JobReservation[PendingJob, Placement]]:
        """Return the earliest reservation of each job that did not start. A component has one if
        all components agree on the start, before this cycle and now (`starts_of_whole`).
        """
        return [
            reservation
            for number, reservation in self.expected.items()
            if number not in self.started
            and all(
                starts.get(reservation.job.het_job, reservation.at) == reservation.at
                for starts in (self.starts_of_whole, starts_of_whole)
            )
        ]

    def is_tested(self, entry: QueueEntry) -> bool:
        """Return True if the job has not started and its caps allow a test, which is counted."""
        job, expected = entry.job, self.expected.get(entry.job.number)
        if expected is not None and expected.at <= self.now:
            return False  # a component that could start now
        return job.number not in self.started and self.caps.allow(
            *cap_keys(self.parameters, job.user, job.account, entry.rules.name)
        )

    def test(self, entry: QueueEntry) -> None:
        """Start the job, reserve for it, or leave it.

        A limit holds a job in one partition: it may start in another.
        """
        job, partition = entry.job, entry.rules.name
        if job.het_job is not None:
            self.reasons.setdefault(job.number, RESOURCES)
        if (held := self.limits.hold_reason(job, partition)) is not None:
            if held != LICENSES:  # backfill says nothing about licenses
                self.reasons[job.number] = held
            if not self.parameters.assoc_limit_stop:
                return
        self.tested += 1
        request, can_wait = placement_request(self.nodes, entry), self._can_reserve(entry)
        begin = self.starts_of_whole.get(job.het_job, self.now)
        if begin is None:
            return
        start = self.search.earliest_start(entry, request, begin, later=can_wait)
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
        elif held is None and job.het_job is not None:
            self._reserve(entry, start)
        elif held is None:
            self._start(entry, start.placement)

    def start_together(self, components: Sequence[PendingJob]) -> int | None:
        """Start all components of a heterogeneous job if all can start now. Return the time at
        which all can; None if one cannot, or if limits forbid that all start.
        """
        planned = [self.expected[job.number] for job in components if job.number in self.expected]
        if len(planned) < len(components):
            return None
        if (start := max(reservation.at for reservation in planned)) > self.now:
            return start
        limits = self.limits.copy()
        for job, _, placement in planned:
            reason = limits.hold_reason(job, placement.partition, placement)
            if reason is not None:
                self.reasons[job.number] = reason
                return None
            limits.record_start(job, placement)
        for job, _, placement in planned:
            self._begin(job, placement, self.nodes.seconds(job, placement))
        return self.now

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

    def _start(self, entry: QueueEntry, placement: Placement) -> None:
        self._begin(entry.job, placement, self._time_limit(entry, placement.nodes))

    def _begin(self, job: PendingJob, placement: Placement, seconds: int) -> None:
        for running in [job for _, _, job in self.end_times.running]:
            if running.number in placement.preempted:
                self.end_times.end(running)
        self.end_times.begin(to_running(job, placement, self.now, seconds))
        self.limits.record_start(job, placement)
        if seconds != self.nodes.seconds(job, placement):
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

    def _reserve(self, entry: QueueEntry, start: JobStart) -> None:
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
