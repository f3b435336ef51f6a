"""The order of the queue: six steps, of which the first difference decides (seed 002; facts, section 5.2).

Jobs that can preempt; jobs with an advanced reservation; PriorityTier; priority; submit time; job id. Before all of them come jobs that
were requeued to be expedited, behind them the tasks of an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import NamedTuple

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.wanted import Wanted
from fairbank.scheduling.pending import Pending
from fairbank.scheduling.placement import constraint
from fairbank.scheduling.placement.cluster import Cluster
from fairbank.scheduling.placement.nodeset import NodeSet
from fairbank.scheduling.placement.placing import Request
from fairbank.scheduling.preemption import Kind, may_preempt
from fairbank.scheduling.situation import PreemptBy, Situation
from fairbank.values.trouble import Malformed, Unknown

Rank = tuple[bool, bool, int, int, int, int, int, int, bool]


class Entry(NamedTuple):
    """A job in one of its partitions; less goes first. `soft`: with what it would prefer as if it were a constraint, tried first."""

    rank: Rank
    job: Pending
    rules: PartitionRules
    nodes: NodeSet
    soft: bool = False
    reservation: Reservation | None = None

    @property
    def kept_to(self) -> str | None:
        """The reservation whose nodes it does not leave."""
        reserved = self.reservation
        return None if reserved is None or reserved.flexible or reserved.any_nodes else reserved.name

    @property
    def priority(self) -> int:
        return -self.rank[3]


Queue = tuple[list[Entry], dict[int, str]]
"""The entries in order, and why each job that has none waits, in Slurm's word."""


def queue(situation: Situation, now: int, *, shortest: bool = False) -> Queue:
    """The entries in order, and why each job that has none waits, in Slurm's word.

    `shortest`: a job whose least time is within the partition's limit is admitted, as backfill has it.
    """
    entries: list[Entry] = []
    reasons: dict[int, str] = {}
    for job in situation.pending:
        if (why := _not_yet(job, situation, now)) is not None:
            reasons[job.number] = why
            continue
        found = len(entries)
        for at, name in enumerate(job.partitions):
            if (why := outside(job, situation.cluster, name, shortest=shortest)) is None:
                entries.extend(_entries(job, at, situation))
            elif job.number not in reasons:
                reasons[job.number] = why
        if len(entries) > found:
            reasons.pop(job.number, None)
    return _sorted(entries, situation), reasons


def _not_yet(job: Pending, situation: Situation, now: int) -> str | None:
    if job.held is not None:
        return job.held
    if job.eligible > now:
        return "BeginTime"
    if job.reservation is None:
        return None
    if job.reservation not in situation.reservations:
        return "ReservationDeleted"
    reserved, _ = situation.reservations[job.reservation]
    if not reserved.is_for(job.user, job.account):
        return "ReservationInvalid"
    return None if reserved.running(now) or (reserved.flexible and not reserved.over(now)) else "Reservation"


def outside(job: Pending, cluster: Cluster, name: str, *, shortest: bool = False) -> str | None:
    """Why the job has no place in a partition, in Slurm's word; None where it has one.

    The machine may have changed since the job was taken, and it waits with a reason then: one job is not to end the pass for all.
    """
    if name not in cluster.rules:
        return "PartitionConfig"
    if not _readable(job.wanted, cluster):
        return "BadConstraints"
    rules, nodes = cluster.partition(name)
    if not rules.up:
        return "PartitionDown"
    asked = job.time_min if shortest and job.time_min is not None else job.limit
    if rules.max_seconds is not None and asked is not None and asked > rules.max_seconds:
        return "PartitionTimeLimit"
    if job.wanted.nodes > (rules.max_nodes or job.wanted.nodes) or (job.wanted.max_nodes or rules.min_nodes) < rules.min_nodes:
        return "PartitionNodeLimit"
    return "PartitionNodeLimit" if job.wanted.nodes > nodes.bit_count() else None


def _readable(wanted: Wanted, cluster: Cluster) -> bool:
    """Whether its constraints are some, and the nodes that it names are there."""
    try:
        for text in (wanted.constraint, wanted.prefer):
            constraint.parse(text)
        cluster.named((*wanted.required, *wanted.excluded))
    except (Malformed, Unknown):
        return False
    return True


def _entries(job: Pending, at: int, situation: Situation) -> Iterable[Entry]:
    rules, nodes = situation.cluster.partition(job.partitions[at])
    priority = job.priorities[at] if job.priorities else job.priority
    reserved = None if job.reservation is None else situation.reservations[job.reservation][0]
    begins = 0 if reserved is None else reserved.begin
    number = job.number if job.array is None else job.array
    rank = (not job.expedited, reserved is None, -rules.tier, -priority, job.submitted, number, job.task, begins, True)
    hard = Entry(rank, job, rules, nodes, False, reserved)
    return (Entry((*rank[:-1], False), job, rules, nodes, True, reserved), hard) if job.wanted.prefer else (hard,)


def _sorted(entries: list[Entry], situation: Situation) -> list[Entry]:
    """By rank, but nobody before one who can preempt it.

    "Who can preempt goes first" and the steps behind it make circles: Slurm's own comparison is no order then. Here the next is always
    the first by rank of those whom nobody left in the queue can preempt.
    """
    entries.sort(key=_rank)
    if situation.preemption.by is PreemptBy.NONE:
        return entries
    first = [entry for entry in entries if entry.job.expedited]
    kinds: dict[Kind, list[Entry]] = {}
    for entry in entries[len(first) :]:
        kinds.setdefault((entry.rules.name, entry.job.qos), []).append(entry)
    return first + list(_merged(kinds, situation))


def _rank(entry: Entry) -> Rank:
    return entry.rank


def _merged(kinds: Mapping[Kind, list[Entry]], situation: Situation) -> Iterator[Entry]:
    above = {kind: [other for other in kinds if may_preempt(situation, other, kind)] for kind in kinds}
    sorter = TopologicalSorter(above)
    sorter.prepare()
    waiting = {kind: iter(some) for kind, some in kinds.items()}
    heads: list[tuple[Rank, Kind, Entry]] = []

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


def requested(situation: Situation, entry: Entry) -> Request:
    """What the entry asks for: what it would prefer in place of its constraint, where it is soft."""
    wanted = entry.job.wanted.preferring() if entry.soft else entry.job.wanted
    return situation.places.request(wanted, entry.rules.name)
