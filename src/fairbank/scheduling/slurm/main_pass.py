"""Slurm's main pass: who starts now, from the head of the queue.

It makes no plan for the future. Once a job of a partition does not fit, all behind it in that partition wait, and the partition's nodes are
given to nobody for the rest of the pass, neither in other partitions: that keeps large jobs from starving, and backfill fills the gap.

Source: docs/reference/slurm-rules.md, "Main scheduler"; RCAC.
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
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.pass_rules import holds_up, main_caps
from fairbank.scheduling.slurm.preemption import place_by_preemption, select_preempted
from fairbank.scheduling.slurm.queue_order import (
    Entries,
    QueueEntry,
    placement_request,
    queue_entries,
)

NOT_AVAILABLE = "ReqNodeNotAvail"


def main(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    now: int,
    *,
    full: bool = False,
    queued: Entries | None = None,
) -> SchedulePlan[PendingJob, Placement]:
    """One pass. `full`: that of every sched_interval, which goes through the whole queue; others stop where default_queue_depth says, for
    which those count too who wait behind somebody. `queued`: the queue, where it is known already."""
    found = _Pass(
        snapshot,
        parameters,
        now,
        queued or queue_entries(snapshot.machine, snapshot.queue.jobs(), now),
    )
    tested = 0
    for entry in found.entries:
        if 0 < parameters.sched_max_job_start <= len(found.starts):
            break
        if found.passed_over(entry):
            continue
        tested += 1
        if not full and tested > parameters.default_queue_depth + 1:
            break
        if not found.waits_behind(entry):
            found.test(entry)
    return SchedulePlan(found.starts, (), found.reasons, NEVER_TESTED)


class _Pass:
    """The state of one pass: its own copies, which nobody else sees."""

    def __init__(
        self, snapshot: OnNodes, parameters: SchedulerParameters, now: int, queued: Entries
    ) -> None:
        self.nodes, self.parameters, self.now = snapshot.machine, parameters, now
        self.room, self.limits = snapshot.machine.room.copy(), snapshot.machine.limits.copy()
        self.running = list(snapshot.running)
        self.open = self.nodes.cluster.usable
        self.entries, self.reasons = queued[0], dict(queued[1])
        self.starts: list[PlannedStart[PendingJob, Placement]] = []
        self.done: set[int] = set()
        self.full: set[str] = set()
        """Partitions, and reservations, in which a job did not fit."""
        self.rejected: set[tuple[int | None, str, str | None]] = set()
        """Arrays of which a task did not fit."""
        self.caps = main_caps(parameters)

    def passed_over(self, entry: QueueEntry) -> bool:
        """Whether the entry is not even counted: it started elsewhere, is of an array that was turned away, or of a partition of which as
        many were looked at as may be."""
        job, partition = entry.job, entry.rules.name
        if job.number in self.done:
            return True
        if job.array is not None and (job.array, partition, job.reservation) in self.rejected:
            self.reasons.setdefault(job.number, RESOURCES)
            return True
        if not self.caps.takes(partition):
            self.reasons.setdefault(job.number, PRIORITY)
            return True
        return False

    def waits_behind(self, entry: QueueEntry) -> bool:
        """Whether somebody ahead did not fit whom it has to wait for."""
        if _queue_of(entry) not in self.full:
            return False
        if (
            self.reasons.get(entry.job.number, RESOURCES) == RESOURCES
        ):  # of another of its partitions: this one's is told
            self.reasons[entry.job.number] = PRIORITY
        return True

    def test(self, entry: QueueEntry) -> None:
        """Start it now, or say why not."""
        job, partition = entry.job, entry.rules.name
        if (why := self.limits.holds(job, partition)) is not None:
            self.reasons[job.number] = why
            if self.parameters.assoc_limit_stop:
                self._fails(entry)
            return
        request = placement_request(self.nodes, entry)
        seconds = job.seconds(entry.rules)
        usable = (
            entry.nodes & self.open & self.nodes.reserved.left(job, self.now, self.now + seconds)
        )
        if request.required & self.nodes.cluster.usable != request.required:
            self.reasons[job.number] = NOT_AVAILABLE
            return
        where = None
        if usable.bit_count() >= request.least:
            where = find_placement(self.nodes.cluster, self.room, request, usable)
            if where is None:
                kind = partition, job.qos
                those = select_preempted(
                    self.nodes, self.running, kind, usable, self.now, spared=self.done
                )
                where = place_by_preemption(self.nodes, self.room, request, usable, those)
        if where is None:
            self._waits(entry, request, seconds)
        elif (why := self.limits.holds(job, partition, where)) is not None:
            self.reasons[job.number] = why
            if self.parameters.assoc_limit_stop:
                self._fails(entry)
        else:
            self._starts(entry, where, seconds)

    def _starts(self, entry: QueueEntry, where: Placement, seconds: int) -> None:
        job = entry.job
        for each in [each for each in self.running if each.number in where.instead]:
            self.room.give(each.placement)
            self.running.remove(each)
        self.room.take(where)
        self.running.append(to_running(job, where, self.now, seconds))
        self.limits.started(job, where)
        self.starts.append(PlannedStart(job, where))
        self.done.add(job.number)
        self.reasons.pop(job.number, None)

    def _waits(self, entry: QueueEntry, request: PlacementRequest, seconds: int) -> None:
        """It does not fit. What follows for those behind it depends on why."""
        job, nodes = entry.job, self.nodes
        if entry.soft:
            return  # it comes again without what it would only prefer
        if not nodes.places.ever(request):
            if not nodes.ever(job):  # in another of its partitions it may
                self.reasons[job.number] = BAD_CONSTRAINTS
            return
        if (
            entry.reservation is None
            and (why := self._maintained(entry, request, seconds)) is not None
        ):
            self.reasons[job.number] = why
            return
        self.reasons[job.number] = RESOURCES
        if job.array is not None:
            self.rejected.add((job.array, entry.rules.name, job.reservation))
        self._fails(entry, request)

    def _maintained(self, entry: QueueEntry, request: PlacementRequest, seconds: int) -> str | None:
        """Slurm's word where it is maintenance that leaves too few nodes to the job."""
        end = self.now + seconds
        without = entry.nodes & self.open & self.nodes.reserved.left(entry.job, self.now, end)
        with_them = (
            entry.nodes
            & self.open
            & self.nodes.reserved.left(entry.job, self.now, end, maintenance=False)
        )
        if without == with_them or (without & request.possible()).bit_count() >= request.least:
            return None
        return (
            NOT_AVAILABLE if (with_them & request.possible()).bit_count() >= request.least else None
        )

    def _fails(self, entry: QueueEntry, request: PlacementRequest | None = None) -> None:
        """Those behind it wait, unless this one is too young or too low for nodes to be kept for it, or has named its own."""
        if not holds_up(self.parameters, self.now - entry.job.eligible, entry.priority):
            return
        if (
            request is not None
            and request.required
            and request.required.bit_count() >= request.least
        ):
            self.open = node_set.without(self.open, request.required)
            return
        self.full.add(_queue_of(entry))
        if entry.kept_to is None:
            self.open = node_set.without(self.open, entry.nodes)


def _queue_of(entry: QueueEntry) -> str:
    """Those who wait behind each other: in a partition, or in a reservation that keeps to its nodes."""
    return (
        f"partition {entry.rules.name}" if entry.kept_to is None else f"reservation {entry.kept_to}"
    )
