"""State of a pending job after a plan is applied: all of an explanation follows from it. The nodes
that fit the job, and the first cause that excludes each other node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.cluster.node import NodeState
from fairbank.core.errors import NotFound
from fairbank.scheduling.machines.node_snapshot import OnNodes, apply_plan
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest
from fairbank.scheduling.plan import JobReservation, SchedulePlan
from fairbank.scheduling.slurm.queue_order import (
    QueueEntry,
    entries_in_all_partitions,
    placement_request,
    queue_entries,
)


class ExcludedNodes(NamedTuple):
    """Nodes that the job cannot use. `is_permanent`: the cause holds on an empty machine, too;
    `is_by_order`: only a job ahead keeps the nodes from it.
    """

    cause: str
    nodes: NodeSet
    is_permanent: bool
    is_by_order: bool = False


class FilteredNodes(NamedTuple):
    """Nodes of a partition: those that the job could use now, and the others with the cause."""

    fitting: NodeSet
    excluded: tuple[ExcludedNodes, ...]

    @property
    def suitable(self) -> NodeSet:
        """Return the nodes that it could use at some time."""
        suitable = self.fitting
        for exclusion in self.excluded:
            if not exclusion.is_permanent:
                suitable |= exclusion.nodes
        return suitable


def filter_nodes(
    nodes: Nodes,
    entry: QueueEntry,
    ahead: Iterable[JobReservation[PendingJob, Placement]],
    now: int,
) -> FilteredNodes:
    """Return the nodes of an entry, filtered.

    Args:
        nodes: the machine.
        entry: the job in one of its partitions.
        ahead: reservations of jobs ahead of it.
        now: time in seconds since 1970.
    """
    left, excluded = entry.nodes, list[ExcludedNodes]()
    request = placement_request(nodes, entry)
    causes = (
        _unable(nodes, entry, request),
        _unusable(nodes),
        _reserved(nodes, entry, now),
        _taken(nodes, request),
    )
    for lasting, causes_of_kind in zip((True, False, False, False), causes, strict=True):
        for cause, affected in causes_of_kind:
            if affected & left:
                excluded.append(ExcludedNodes(cause, affected & left, lasting))
                left = node_set.without(left, affected)
    end = now + entry.job.least_seconds(entry.rules)
    for reservation in ahead:
        if reservation.at <= end and reservation.placement.nodes & left:
            excluded.append(
                ExcludedNodes(
                    f"reserved for job {reservation.job.name}, which is ahead",
                    reservation.placement.nodes & left,
                    is_permanent=False,
                    is_by_order=True,
                )
            )
            left = node_set.without(left, reservation.placement.nodes)
    return FilteredNodes(left, tuple(excluded))


Cause = tuple[str, NodeSet]


def _unable(nodes: Nodes, entry: QueueEntry, request: PlacementRequest) -> Iterator[Cause]:
    """Yield causes that hold on an empty machine."""
    cluster, demand, wanted = nodes.cluster, request.demand, entry.job.wanted
    yield "excluded by name", cluster.named(wanted.excluded, field="excluded")
    yield (
        f"fewer than {demand.least_cpus} CPUs",
        node_set.pack_flags(cluster.cpus < demand.least_cpus),
    )
    memory = max(demand.memory or 0, demand.memory_per_cpu * demand.least_cpus)
    yield f"less than {memory} MiB of memory", node_set.pack_flags(cluster.memory < memory)
    yield (
        f"less than {demand.tmp} MiB of temporary disk",
        node_set.pack_flags(cluster.tmp < demand.tmp),
    )
    all_nodes = cluster.all_nodes
    if gpus := demand.gpus or demand.gpus_per_task:
        names = ", ".join(f"{number} {kind or 'of any type'}" for kind, number in gpus)
        yield (
            f"without these GPUs: {names}",
            node_set.without(
                all_nodes, nodes.search.empty.nodes(demand._replace(memory=0, memory_per_cpu=0))
            ),
        )
    if demand.capped:
        yield (
            f"MaxCPUsPerNode of partition {demand.capped} is {demand.most_cpus}",
            node_set.without(
                nodes.search.empty.nodes(demand.without_cap()), nodes.search.empty.nodes(demand)
            ),
        )
    yield (
        "too few resources for a task",
        node_set.without(all_nodes, nodes.search.empty.nodes(demand)),
    )
    if wanted.constraint:
        matching = node_set.NO_NODES
        for alternative in (*request.alternatives, *(kind for kind, _ in request.kinds)):
            matching |= alternative
        plain = not request.kinds
        yield (
            f"without the features {wanted.constraint}",
            node_set.without(all_nodes, matching) if plain else node_set.NO_NODES,
        )


def _unusable(nodes: Nodes) -> Iterator[Cause]:
    """Yield causes by the state of nodes."""
    for state in NodeState:
        if not state.is_usable:
            yield (
                state.value,
                node_set.of(
                    place for place, node in enumerate(nodes.cluster.nodes) if node.state is state
                ),
            )


def _reserved(nodes: Nodes, entry: QueueEntry, now: int) -> Iterator[Cause]:
    """Yield causes by reservations: other ones, and its own, outside of which it has no nodes."""
    end = now + entry.job.least_seconds(entry.rules)
    for reservation, reserved in nodes.reservations:
        if reservation.name == entry.job.reservation:
            if entry.own_reservation is not None:
                yield (
                    f"not in reservation {reservation.name}",
                    node_set.without(nodes.cluster.all_nodes, reserved),
                )
        elif reservation.begin <= end and now < reservation.end:
            what = "reserved for maintenance" if reservation.maintenance else "reserved for others"
            yield f"{what}: {reservation.name}", reserved


def _taken(nodes: Nodes, request: PlacementRequest) -> Iterator[Cause]:
    """Yield causes by running jobs."""
    cluster, free, demand = nodes.cluster, nodes.free, request.demand
    all_nodes, busy = cluster.all_nodes, node_set.without(cluster.all_nodes, free.idle)
    if demand.alone:
        yield "other jobs run there", busy
    yield (
        "too few CPUs are free",
        node_set.pack_flags(demand.rows * free.cpus - free.shared < demand.least_cpus),
    )
    if demand.memory is None:
        yield (
            "a job there has memory, and this one needs all of it",
            node_set.pack_flags(free.memory < cluster.memory),
        )
    else:
        memory = max(demand.memory, demand.memory_per_cpu * demand.least_cpus)
        yield "too little memory is free", node_set.pack_flags(free.memory < memory)
    if demand.capped:
        yield (
            f"jobs of partition {demand.capped} leave too few of its {demand.most_cpus} CPUs of"
            " each node (MaxCPUsPerNode)",
            node_set.without(free.nodes(demand.without_cap()), free.nodes(demand)),
        )
    yield (
        "too few GPUs are free"
        if demand.gpus or demand.gpus_per_task
        else "too few resources are free for a task",
        node_set.without(all_nodes, free.nodes(demand)),
    )


class JobView(NamedTuple):
    """Pending job, and all that it must pass.

    code           Slurm's reason why it waits
    snapshot       machine and running jobs, with those that start now
    is_queued      True if it is in the queue
    filtered       nodes of each partition that accepts it; of each of its partitions if it is not
                   in the queue
    ahead          jobs before it that want nodes that it could use, in order
    names          all jobs of the queue, in order, with squeue's names
    reservations   reservations of the plan
    """

    job: PendingJob
    now: int
    code: str
    snapshot: OnNodes
    is_queued: bool
    filtered: Sequence[tuple[QueueEntry, FilteredNodes]]
    ahead: tuple[int, ...]
    names: Mapping[int, str]
    reservations: Mapping[int, JobReservation[PendingJob, Placement]]

    @property
    def position(self) -> int | None:
        """Return the position in the queue, 1 for the next."""
        return list(self.names).index(self.job.number) + 1 if self.is_queued else None

    @property
    def reservation(self) -> JobReservation[PendingJob, Placement] | None:
        """Return the reservation of the job."""
        return self.reservations.get(self.job.number)


def job_view(
    snapshot: OnNodes, plan: SchedulePlan[PendingJob, Placement], number: int, now: int
) -> JobView:
    """Return the view of a job. Raises NotFound for a job that does not wait.

    Args:
        snapshot: machine, queue and running jobs.
        plan: plan that a pass made from the snapshot.
        now: time in seconds since 1970.
    """
    starts = {start.job.number for start in plan.starts}
    job = snapshot.queue.job(number)
    if job is None or number in starts:
        raise NotFound(
            f"job {number} does not wait",
            field="job",
            remedy="look among the jobs that run or have ended",
        )
    after = apply_plan(snapshot, plan, now)
    entries, _ = queue_entries(snapshot.machine, snapshot.queue.jobs(), now, by_least_time=True)
    order = [entry for entry in entries if entry.job.number not in starts]
    own = [entry for entry in order if entry.job.number == number and not entry.with_preference]
    ahead = _ahead(order, own)
    planned = {reservation.job.number: reservation for reservation in plan.reservations}
    before = [planned[other] for other in ahead if other in planned]
    return JobView(
        job=job,
        now=now,
        code=plan.reason(number),
        snapshot=after,
        is_queued=bool(own),
        filtered=[
            (entry, filter_nodes(after.machine, entry, before, now))
            for entry in own or entries_in_all_partitions(after.machine, job)
        ],
        ahead=ahead,
        names={entry.job.number: entry.job.name for entry in order},
        reservations=planned,
    )


def _ahead(order: list[QueueEntry], mine: list[QueueEntry]) -> tuple[int, ...]:
    """Return the jobs before its last entry that want nodes that it could use."""
    if not mine:
        return ()
    nodes = mine[0].nodes
    for entry in mine[1:]:
        nodes |= entry.nodes
    upto, own = order.index(mine[-1]), mine[0].job.number
    return tuple(
        dict.fromkeys(
            entry.job.number
            for entry in order[:upto]
            if entry.nodes & nodes and entry.job.number != own
        )
    )
