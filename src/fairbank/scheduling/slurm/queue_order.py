"""The order of the queue: six steps, of which the first difference decides.

Jobs that can preempt; jobs with an advanced reservation; PriorityTier; priority; submit time; job id. Before all of them come jobs that
were requeued to be expedited, behind them the tasks of an array.

Source: docs/reference/slurm-rules.md, "Queue order"; RCAC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import Any, NamedTuple

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.scheduling.admission import exclusion_reason, is_request_valid
from fairbank.scheduling.machines.machine import StartsNow
from fairbank.scheduling.machines.node_rules import PreemptBy
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest
from fairbank.scheduling.slurm.preemption import Kind, may_preempt

Rank = tuple[bool, bool, int, int, int, int, int, int, bool]


class QueueEntry(NamedTuple):
    """A job in one of its partitions; less goes first. `soft`: with what it would prefer as if it were a constraint, tried first."""

    rank: Rank
    job: PendingJob
    rules: PartitionRules
    nodes: NodeSet
    soft: bool = False
    reservation: Reservation | None = None

    @property
    def kept_to(self) -> str | None:
        """The reservation whose nodes it does not leave."""
        reserved = self.reservation
        return (
            None if reserved is None or reserved.flexible or reserved.any_nodes else reserved.name
        )

    @property
    def priority(self) -> int:
        return -self.rank[3]


Entries = tuple[list[QueueEntry], dict[int, str]]
"""In order, and why each job that has none waits, in Slurm's word."""


def queue_entries(
    nodes: Nodes, jobs: Iterable[PendingJob], now: int, *, shortest: bool = False
) -> Entries:
    """An entry for each job in each partition that takes it, in order; and why each job that has none waits, in Slurm's word.

    `shortest`: a job whose least time is within the partition's limit is admitted, as backfill has it.
    """
    found: list[QueueEntry] = []
    reasons: dict[int, str] = {}
    for job in jobs:
        if (why := _not_yet(job, nodes, now)) is not None:
            reasons[job.number] = why
            continue
        before = len(found)
        for at, name in enumerate(job.partitions):
            if (why := exclusion_reason(job, nodes.cluster, name, shortest=shortest)) is None:
                found.extend(_entries(job, at, nodes))
            elif job.number not in reasons:
                reasons[job.number] = why
        if len(found) > before:
            reasons.pop(job.number, None)
    return _sorted(found, nodes), reasons


def entries_in_all_partitions(nodes: Nodes, job: PendingJob) -> list[QueueEntry]:
    """The job in each of its partitions that is there, as if all of them took it and nothing held it back: to look at their nodes. Empty
    where it asks for what cannot be read."""
    if not is_request_valid(job.wanted, nodes.cluster):
        return []
    return [
        list(_entries(job, at, nodes))[-1]
        for at, name in enumerate(job.partitions)
        if name in nodes.cluster.rules
    ]


class NodeQueue:
    """Jobs that wait for nodes, in no order: this is found for each pass anew, since priorities change and times come."""

    def __init__(self, nodes: Nodes, jobs: Iterable[PendingJob] = ()) -> None:
        self._nodes = nodes
        self._jobs = {job.number: job for job in jobs}

    def add(self, job: PendingJob) -> None:
        self._jobs[job.number] = job

    def remove(self, job: PendingJob) -> None:
        del self._jobs[job.number]

    def __len__(self) -> int:
        return len(self._jobs)

    def jobs(self) -> Iterator[PendingJob]:
        return iter(self._jobs.values())

    def line(self, now: int) -> NodeQueueOrder:
        return NodeQueueOrder(*queue_entries(self._nodes, self._jobs.values(), now))


class NodeQueueOrder:
    """Who may start, by the six steps: a job where the first of its entries is, and in the line of each partition that takes it."""

    def __init__(self, found: Sequence[QueueEntry], reasons: Mapping[int, str]) -> None:
        self.reasons = reasons
        self._jobs = list({entry.job.number: entry.job for entry in reversed(found)}.values())[::-1]
        self._lines: dict[str, list[tuple[int, PendingJob]]] = {}
        for turn, entry in enumerate(found):
            if not entry.soft:
                self._lines.setdefault(entry.rules.name, []).append(
                    (turn, entry.job.within(entry.rules.name))
                )

    def __iter__(self) -> Iterator[tuple[int, PendingJob]]:
        return enumerate(self._jobs)

    def lines(self) -> Iterable[Iterator[tuple[int, PendingJob]]]:
        return map(iter, self._lines.values())

    def first(self, after: int, ahead: StartsNow[PendingJob, Any]) -> tuple[int, PendingJob] | None:
        behind = enumerate(self._jobs[after + 1 :], start=after + 1)
        return next((turn for turn in behind if ahead.now(turn[1]) is not None), None)


def _not_yet(job: PendingJob, nodes: Nodes, now: int) -> str | None:
    if job.held is not None:
        return job.held
    if job.eligible > now:
        return "BeginTime"
    if job.reservation is None:
        return None
    if job.reservation not in nodes.reserved.named:
        return "ReservationDeleted"
    reserved, _ = nodes.reserved.named[job.reservation]
    if not reserved.is_for(job.user, job.account):
        return "ReservationInvalid"
    return (
        None
        if reserved.is_active(now) or (reserved.flexible and not reserved.is_over(now))
        else "Reservation"
    )


def _entries(job: PendingJob, at: int, nodes: Nodes) -> Iterable[QueueEntry]:
    rules, there = nodes.cluster.partition(job.partitions[at])
    priority = job.priorities[at] if job.priorities else job.priority
    reserved, _ = nodes.reserved.named.get(job.reservation or "", (None, None))
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
    hard = QueueEntry(rank, job, rules, there, False, reserved)
    return (
        (QueueEntry((*rank[:-1], False), job, rules, there, True, reserved), hard)
        if job.wanted.prefer
        else (hard,)
    )


def _sorted(found: list[QueueEntry], nodes: Nodes) -> list[QueueEntry]:
    """By rank, but nobody before one who can preempt it.

    "Who can preempt goes first" and the steps behind it make circles: Slurm's own comparison is no order then. Here the next is always
    the first by rank of those whom nobody left in the queue can preempt.
    """
    found.sort(key=_rank)
    if nodes.preemption.by is PreemptBy.NONE:
        return found
    first = [entry for entry in found if entry.job.expedited]
    kinds: dict[Kind, list[QueueEntry]] = {}
    for entry in found[len(first) :]:
        kinds.setdefault((entry.rules.name, entry.job.qos), []).append(entry)
    return first + list(_merged(kinds, nodes))


def _rank(entry: QueueEntry) -> Rank:
    return entry.rank


def _merged(kinds: Mapping[Kind, list[QueueEntry]], nodes: Nodes) -> Iterator[QueueEntry]:
    above = {kind: [other for other in kinds if may_preempt(nodes, other, kind)] for kind in kinds}
    sorter = TopologicalSorter(above)
    sorter.prepare()
    waiting = {kind: iter(some) for kind, some in kinds.items()}
    heads: list[tuple[Rank, Kind, QueueEntry]] = []

    def step(kind: Kind) -> None:
        """The next of a kind comes to the head; behind the last of it come those whom it could preempt."""
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
    """What the entry asks for: what it would prefer in place of its constraint, where it is soft."""
    wanted = entry.job.wanted.with_preference() if entry.soft else entry.job.wanted
    return nodes.places.request(wanted, entry.rules.name)
