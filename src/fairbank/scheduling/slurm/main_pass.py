"""Slurm's main pass: jobs that start now, from the head of the queue (slurm-rules.md, "Main
scheduler").

It makes no plan for the future. When a job of a partition does not fit, all jobs behind it in that
partition wait, and no job of another partition gets the nodes of that partition either. This keeps
large jobs from starving; backfill fills the gap.
"""

from __future__ import annotations

from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.pending_job import PendingJob, to_running
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.search import PlacementRequest, find_placement
from fairbank.scheduling.plan import (
    BAD_CONSTRAINTS,
    NEVER_TESTED,
    PRIORITY,
    RESOURCES,
    PlannedStart,
    SchedulePlan,
)
from fairbank.scheduling.slurm.parameters import SchedulerParameters, can_reserve, main_caps
from fairbank.scheduling.slurm.preemption import place_by_preemption, select_preempted
from fairbank.scheduling.slurm.queue_order import (
    OrderedEntries,
    QueueEntry,
    placement_request,
    queue_entries,
)

NOT_AVAILABLE = "ReqNodeNotAvail"


def main_pass(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    now: int,
    *,
    full: bool = False,
    queued: OrderedEntries | None = None,
) -> SchedulePlan[PendingJob, Placement]:
    """Run one main pass.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        now: time of the pass in seconds.
        full: the pass of each sched_interval, which tests the whole queue. Other passes stop at
            default_queue_depth tests; jobs that wait behind others count, too.
        queued: entries of the queue if they are known already.
    """
    pass_ = _Pass(
        snapshot,
        parameters,
        now,
        queued or queue_entries(snapshot.machine, snapshot.queue.jobs(), now),
    )
    tested = 0
    for entry in pass_.entries:
        if 0 < parameters.sched_max_job_start <= len(pass_.starts):
            break
        if pass_.is_skipped(entry):
            continue
        tested += 1
        if not full and tested > parameters.default_queue_depth + 1:
            break
        if pass_.is_blocked(entry):
            continue
        if entry.job.het_job is not None:
            pass_.block(entry)  # only backfill starts components, which start together
        else:
            pass_.test(entry)
    return SchedulePlan(pass_.starts, (), pass_.reasons, NEVER_TESTED)


class _Pass:
    """State of one pass: copies that only this pass changes.

    Invariants: a job in `started` is never tested again. `blocked` has each partition and
    reservation in which a job did not fit, `rejected` each array, and `open` the nodes that no such
    job keeps. `free`, `running` and `limits` contain the jobs of `starts` and lack the preempted
    ones.
    """

    def __init__(
        self, snapshot: OnNodes, parameters: SchedulerParameters, now: int, queued: OrderedEntries
    ) -> None:
        self.nodes, self.parameters, self.now = snapshot.machine, parameters, now
        self.free, self.limits = snapshot.machine.free.copy(), snapshot.machine.limits.copy()
        self.running = list(snapshot.running)
        self.open = self.nodes.cluster.usable
        self.entries, self.reasons = queued[0], dict(queued[1])
        self.starts: list[PlannedStart[PendingJob, Placement]] = []
        self.started: set[int] = set()
        self.blocked: set[str] = set()
        self.rejected: set[tuple[int | None, str, str | None]] = set()
        self.caps = main_caps(parameters)

    def is_skipped(self, entry: QueueEntry) -> bool:
        """Return True if the entry is not counted: started, rejected array, or partition cap."""
        job, partition = entry.job, entry.rules.name
        if job.number in self.started:
            return True
        if job.array is not None and (job.array, partition, job.reservation) in self.rejected:
            self.reasons.setdefault(job.number, RESOURCES)
            return True
        if not self.caps.allow(partition):
            self.reasons.setdefault(job.number, PRIORITY)
            return True
        return False

    def is_blocked(self, entry: QueueEntry) -> bool:
        """Return True if the entry waits behind a job that did not fit."""
        if _queue_name(entry) not in self.blocked:
            return False
        # A Resources from another partition of the job is replaced; other reasons stay.
        if self.reasons.get(entry.job.number, RESOURCES) == RESOURCES:
            self.reasons[entry.job.number] = PRIORITY
        return True

    def test(self, entry: QueueEntry) -> None:
        """Start the job now, or record why not."""
        job, partition = entry.job, entry.rules.name
        if (reason := self.limits.hold_reason(job, partition)) is not None:
            self.reasons[job.number] = reason
            if self.parameters.assoc_limit_stop:
                self.block(entry)
            return
        request = placement_request(self.nodes, entry)
        seconds = job.seconds(entry.rules)
        usable = (
            entry.nodes
            & self.open
            & self.nodes.reservations.usable_nodes(job, self.now, self.now + seconds)
        )
        if request.required & self.nodes.cluster.usable != request.required:
            self.reasons[job.number] = NOT_AVAILABLE
            return
        placement = None
        if usable.bit_count() >= request.least:
            placement = find_placement(self.nodes.cluster, self.free, request, usable)
            if placement is None:
                kind = partition, job.qos
                candidates = select_preempted(
                    self.nodes, self.running, kind, usable, self.now, spared=self.started
                )
                placement = place_by_preemption(self.nodes, self.free, request, usable, candidates)
        if placement is None:
            self._wait(entry, request, seconds)
        elif (reason := self.limits.hold_reason(job, partition, placement)) is not None:
            self.reasons[job.number] = reason
            if self.parameters.assoc_limit_stop:
                self.block(entry)
        else:
            self._start(entry, placement, seconds)

    def _start(self, entry: QueueEntry, placement: Placement, seconds: int) -> None:
        job = entry.job
        for running in tuple(self.running):
            if running.number in placement.preempted:
                self.free.give(running.placement)
                self.running.remove(running)
        self.free.take(placement)
        self.running.append(to_running(job, placement, self.now, seconds))
        self.limits.record_start(job, placement)
        self.starts.append(PlannedStart(job, placement))
        self.started.add(job.number)
        self.reasons.pop(job.number, None)

    def _wait(self, entry: QueueEntry, request: PlacementRequest, seconds: int) -> None:
        """Record why the job does not fit, and block the jobs behind it if the reason says so."""
        job, nodes = entry.job, self.nodes
        if entry.with_preference:
            return  # it comes again without what it would only prefer
        if not nodes.search.can_ever_fit(request):
            if not nodes.can_ever_fit(job):  # in another of its partitions it may
                self.reasons[job.number] = BAD_CONSTRAINTS
            return
        if (
            entry.reservation is None
            and (reason := self._maintenance_reason(entry, request, seconds)) is not None
        ):
            self.reasons[job.number] = reason
            return
        self.reasons[job.number] = RESOURCES
        if job.array is not None:
            self.rejected.add((job.array, entry.rules.name, job.reservation))
        self.block(entry, request)

    def _maintenance_reason(
        self, entry: QueueEntry, request: PlacementRequest, seconds: int
    ) -> str | None:
        """Return Slurm's reason if maintenance leaves too few nodes to the job."""
        end, reservations = self.now + seconds, self.nodes.reservations
        possible = entry.nodes & self.open & request.possible()
        usable = possible & reservations.usable_nodes(entry.job, self.now, end)
        usable_otherwise = possible & reservations.usable_nodes(
            entry.job, self.now, end, maintenance=False
        )
        if usable.bit_count() < request.least <= usable_otherwise.bit_count():
            return NOT_AVAILABLE
        return None

    def block(self, entry: QueueEntry, request: PlacementRequest | None = None) -> None:
        """Block the jobs behind, unless the job is too young, too low or has its own nodes."""
        if not can_reserve(self.parameters, self.now - entry.job.eligible, entry.priority):
            return
        if (
            request is not None
            and request.required
            and request.required.bit_count() >= request.least
        ):
            self.open = node_set.without(self.open, request.required)
            return
        self.blocked.add(_queue_name(entry))
        if entry.own_reservation is None:
            self.open = node_set.without(self.open, entry.nodes)


def _queue_name(entry: QueueEntry) -> str:
    """Return the partition, or reservation that keeps to its nodes, in which jobs queue."""
    if entry.own_reservation is None:
        return f"partition {entry.rules.name}"
    return f"reservation {entry.own_reservation}"
