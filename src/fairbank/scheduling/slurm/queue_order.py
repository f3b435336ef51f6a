"""Order of the queue: six steps, of which the first difference decides (slurm-rules.md,
"Queue order").

The steps are: jobs that can preempt; jobs with an advanced reservation; PriorityTier; priority;
submit time; job id. Jobs that were requeued to be expedited come before all of them, tasks of an
array after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from operator import attrgetter
from typing import NamedTuple

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.scheduling.machines.nodes import Nodes, PreemptBy
from fairbank.scheduling.machines.partition_access import exclusion_reason, is_request_valid
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest
from fairbank.scheduling.slurm.preemption import Kind, can_preempt

Rank = tuple[bool, bool, int, int, int, int, int, int, bool]


class QueueEntry(NamedTuple):
    """Job in one of its partitions; lower ranks go first. `with_preference`: its preferred features
    count as a constraint; this entry is tested first.
    """

    rank: Rank
    job: PendingJob
    rules: PartitionRules
    nodes: NodeSet
    with_preference: bool = False
    reservation: Reservation | None = None

    @property
    def own_reservation(self) -> str | None:
        """Return the reservation whose nodes the job does not leave."""
        reserved = self.reservation
        return (
            None if reserved is None or reserved.flexible or reserved.any_nodes else reserved.name
        )

    @property
    def priority(self) -> int:
        return -self.rank[3]


OrderedEntries = tuple[list[QueueEntry], dict[int, str]]
"""Entries in order, and Slurm's reason of each job that has none."""


def queue_entries(
    nodes: Nodes, jobs: Iterable[PendingJob], now: int, *, by_least_time: bool = False
) -> OrderedEntries:
    """Return an entry for each job in each partition that accepts it, in order, and Slurm's reason
    of each job without one.

    Args:
        nodes: the machine.
        jobs: pending jobs.
        now: time in seconds.
        by_least_time: accept a job whose least time is within the partition's limit, as backfill
            does.
    """
    entries: list[QueueEntry] = []
    reasons: dict[int, str] = {}
    for job in jobs:
        if (reason := _wait_reason(job, nodes, now)) is not None:
            reasons[job.number] = reason
            continue
        before = len(entries)
        for at, name in enumerate(job.partitions):
            if (
                reason := exclusion_reason(job, nodes.cluster, name, by_least_time=by_least_time)
            ) is None:
                entries.extend(_entries(job, at, nodes))
            elif job.number not in reasons:
                reasons[job.number] = reason
        if len(entries) > before:
            reasons.pop(job.number, None)
    return _sorted(entries, nodes), reasons


def entries_in_all_partitions(nodes: Nodes, job: PendingJob) -> list[QueueEntry]:
    """Return an entry for the job in each of its partitions that exists, as if all accepted it and
    nothing held it. Explanations use it to filter nodes. Empty if the request is invalid.
    """
    if not is_request_valid(job.wanted, nodes.cluster):
        return []
    return [
        list(_entries(job, at, nodes))[-1]
        for at, name in enumerate(job.partitions)
        if name in nodes.cluster.rules
    ]


class NodeQueue:
    """Pending jobs for nodes. Each pass sorts them: priorities change and begin times pass."""

    def __init__(self, jobs: Iterable[PendingJob] = ()) -> None:
        self._jobs = {job.number: job for job in jobs}

    def add(self, job: PendingJob) -> None:
        self._jobs[job.number] = job

    def remove(self, job: PendingJob) -> None:
        del self._jobs[job.number]

    def jobs(self) -> Iterator[PendingJob]:
        return iter(self._jobs.values())

    def job(self, number: int) -> PendingJob | None:
        """Return the job with a number."""
        return self._jobs.get(number)


def _wait_reason(job: PendingJob, nodes: Nodes, now: int) -> str | None:
    if job.held is not None:
        return job.held
    if job.eligible > now:
        return "BeginTime"
    if job.reservation is None:
        return None
    if job.reservation not in nodes.reservations.named:
        return "ReservationDeleted"
    reservation, _ = nodes.reservations.named[job.reservation]
    if not reservation.is_for(job.user, job.account):
        return "ReservationInvalid"
    if reservation.is_active(now) or (reservation.flexible and not reservation.is_over(now)):
        return None
    return "Reservation"


def _entries(job: PendingJob, at: int, nodes: Nodes) -> Iterable[QueueEntry]:
    rules, nodes_of_partition = nodes.cluster.partition(job.partitions[at])
    priority = job.priorities[at] if job.priorities else job.priority
    reserved, _ = nodes.reservations.named.get(job.reservation or "", (None, None))
    begins = 0 if reserved is None else reserved.begin
    number = job.number if job.array is None else job.array
    rank = (
        not job.expedited,
        reserved is None,
        -rules.tier,
        -priority,
        job.submitted,
        number,
        job.task,
        begins,
        True,
    )
    hard = QueueEntry(rank, job, rules, nodes_of_partition, False, reserved)
    if job.wanted.prefer:
        return (
            QueueEntry((*rank[:-1], False), job, rules, nodes_of_partition, True, reserved),
            hard,
        )
    return (hard,)


def _sorted(entries: list[QueueEntry], nodes: Nodes) -> list[QueueEntry]:
    """Sort entries by rank, but no job before one that can preempt it.

    "Jobs that can preempt go first" and the later steps contradict each other in circles, and
    Slurm's comparison is then no order. Here the next entry is always the first by rank among those
    that no remaining entry can preempt.
    """
    entries.sort(key=attrgetter("rank"))
    if nodes.preemption.by is PreemptBy.NONE:
        return entries
    first = [entry for entry in entries if entry.job.expedited]
    kinds: dict[Kind, list[QueueEntry]] = {}
    for entry in entries[len(first) :]:
        kinds.setdefault((entry.rules.name, entry.job.qos), []).append(entry)
    return first + list(_merge_by_preemption(kinds, nodes))


def _merge_by_preemption(
    kinds: Mapping[Kind, list[QueueEntry]], nodes: Nodes
) -> Iterator[QueueEntry]:
    above = {kind: [other for other in kinds if can_preempt(nodes, other, kind)] for kind in kinds}
    sorter = TopologicalSorter(above)
    sorter.prepare()
    waiting = {kind: iter(entries) for kind, entries in kinds.items()}
    heads: list[tuple[Rank, Kind, QueueEntry]] = []

    def step(kind: Kind) -> None:
        """Put the next entry of a kind on the heap; behind the last, the kinds below it."""
        if (entry := next(waiting[kind], None)) is not None:
            heappush(heads, (entry.rank, kind, entry))
            return
        sorter.done(kind)
        for other in sorter.get_ready():
            step(other)

    for kind in sorter.get_ready():
        step(kind)
    while heads:
        _, kind, entry = heappop(heads)
        yield entry
        step(kind)


def placement_request(nodes: Nodes, entry: QueueEntry) -> PlacementRequest:
    """Return the request of an entry. Preferred features may replace the constraint."""
    wanted = entry.job.wanted.with_preference() if entry.with_preference else entry.job.wanted
    return nodes.search.request(wanted, entry.rules.name, entry.job.qos_flags)
