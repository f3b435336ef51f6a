"""Machine that is made of nodes: what is free on each, and the rules by which nodes are given to
jobs: partitions, advanced reservations, preemption and the limits of accounting (slurm-rules.md,
"Advanced reservations").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import msgspec

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.machines.partition_access import exclusion_reason
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch


class LimitCheck(NamedTuple):
    """Test of one limit for a job: Slurm's reason if it holds the job, else None, and an object
    whose text has the figures.
    """

    reason: str | None
    figures: object


class StartLimits:
    """Limits of accounting while jobs start one after the other in a pass. By default there are
    none.
    """

    def copy(self) -> StartLimits:
        """Return a copy for another pass."""
        return self

    def hold_reason(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> str | None:
        """Return Slurm's reason why the job may not start beside the running ones; None if it may.

        Args:
            job: the pending job.
            partition: partition in which it would start.
            placement: nodes that it would get; None: they count as the job requests them.
        """
        checks = self.checks(job, partition, placement)
        return next((check.reason for check in checks if check.reason is not None), None)

    def checks(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> Iterator[LimitCheck]:
        """Yield the test of each limit that concerns the job, in Slurm's order.

        Args:
            job: the pending job.
            partition: partition in which it would start.
            placement: nodes that it would get; None: they count as the job requests them.
        """
        yield from ()

    def record_start(self, job: PendingJob, placement: Placement) -> None:
        """Count a job that starts."""

    def record_end(self, job: PendingJob, placement: Placement, seconds: int) -> None:
        """Stop to count a job that ends.

        Args:
            job: the job as `record_start` got it, or one that ran before.
            placement: nodes that it leaves.
            seconds: run time that the snapshot did not contain.
        """


class PreemptBy(Enum):
    """PreemptType: rule by which jobs preempt others."""

    NONE = "preempt/none"
    PARTITION = "preempt/partition_prio"
    QOS = "preempt/qos"


class QosRules(msgspec.Struct, frozen=True, kw_only=True):
    """Preemption rules of a QOS.

    `priority`: jobs of the QOS with the lowest go first. `preempted` None: the mode of the cluster.
    `exempt_seconds`: time after the start in which its jobs are not preempted.
    """

    priority: int = 0
    preempts: frozenset[str] = frozenset()
    preempted: PreemptMode | None = None
    exempt_seconds: int = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """Preemption rules. Raises InvalidInput for QOS that preempt each other in a circle."""

    by: PreemptBy = PreemptBy.NONE
    mode: PreemptMode = PreemptMode.REQUEUE
    qos: Mapping[str, QosRules] = {}

    def __post_init__(self) -> None:
        try:
            TopologicalSorter({name: rules.preempts for name, rules in self.qos.items()}).prepare()
        except CycleError as circle:
            around = " before ".join(circle.args[1])
            raise InvalidInput(
                f"QOS preempt each other in a circle: {around}",
                field="qos.preempts",
                remedy="take one of them out",
            ) from None


class ReservationRules:
    """Reservations by name, each with those of its nodes that exist.

    Raises InvalidInput for two with the same name.
    """

    def __init__(self, cluster: NodeTable, reservations: Iterable[Reservation] = ()) -> None:
        self.all_nodes = cluster.all_nodes
        self.named: dict[str, tuple[Reservation, NodeSet]] = {}
        for reservation in reservations:
            if reservation.name in self.named:
                remedy = "give each a name of its own"
                raise InvalidInput(
                    f"reservation {reservation.name} is there twice",
                    field="reservations",
                    remedy=remedy,
                )
            self.named[reservation.name] = (
                reservation,
                node_set.of(
                    cluster.place[node] for node in reservation.nodes if node in cluster.place
                ),
            )

    def __iter__(self) -> Iterator[tuple[Reservation, NodeSet]]:
        return iter(self.named.values())

    def __len__(self) -> int:
        return len(self.named)

    def usable_nodes(
        self,
        job: PendingJob,
        begin: int,
        end: int,
        *,
        resolution: int = 1,
        maintenance: bool = True,
    ) -> NodeSet:
        """Return the nodes that the job may use from `begin` until `end`, both included.

        A job that would end in the second in which another reservation begins does not fit. A job
        with its own reservation uses only its nodes, and must begin within it: slurmctld ends the
        job with the reservation. A flexible reservation allows other nodes, too, and times before
        and after.

        Args:
            job: the pending job.
            begin: start of the job in seconds.
            end: end of the job in seconds.
            resolution: seconds to which begins of reservations are rounded down.
            maintenance: count maintenance reservations.
        """
        own: Reservation | None = None
        usable = self.all_nodes
        for reservation, nodes in self:
            if reservation.name == job.reservation:
                own = reservation
                if not (reservation.flexible or reservation.any_nodes):
                    usable &= nodes
            elif (
                reservation.begin // resolution * resolution <= end
                and begin < reservation.end
                and (maintenance or not reservation.maintenance)
            ):
                usable = node_set.without(usable, nodes)
        if own is not None and not own.flexible and not own.begin <= begin < own.end:
            return node_set.NO_NODES
        return usable

    def next_release(self, after: int) -> int | None:
        """Return the next time at which a reservation releases nodes; None if there is none."""
        return min(
            (reservation.end for reservation, _ in self if reservation.end > after), default=None
        )

    def next_claim(self, job: PendingJob, nodes: NodeSet, after: int) -> int | None:
        """Return when another reservation or the end of its own claims a node, or None.

        Args:
            job: the job that would run there.
            nodes: nodes of which one is enough.
            after: time in seconds; other reservations that have begun by then do not count.
        """
        claims = [
            reservation.end if reservation.name == job.reservation else reservation.begin
            for reservation, reserved in self
            if reserved & nodes
            and (
                not reservation.flexible
                if reservation.name == job.reservation
                else reservation.begin > after
            )
        ]
        return min(claims, default=None)


class Nodes:
    """Cluster with free resources, reservations, preemption rules and limits.

    Raises InvalidInput for two reservations with the same name.
    """

    def __init__(
        self,
        cluster: NodeTable,
        *,
        reservations: Iterable[Reservation] = (),
        preemption: Preemption | None = None,
        limits: StartLimits | None = None,
        search: PlacementSearch | None = None,
    ) -> None:
        self.cluster = cluster
        self.search = search or PlacementSearch(cluster)
        self.free = FreeResources(cluster)
        self.reservations = ReservationRules(cluster, reservations)
        self.preemption = preemption or Preemption()
        self.limits = limits or StartLimits()

    def copy(self) -> Nodes:
        """Return a copy that can be changed by itself."""
        other = Nodes(self.cluster, preemption=self.preemption, search=self.search)
        other.free, other.limits = self.free.copy(), self.limits.copy()
        other.reservations = self.reservations
        return other

    def can_ever_fit(self, job: PendingJob) -> bool:
        """Return True if a partition accepts the job and could give it nodes if it were empty."""
        return any(
            exclusion_reason(job, self.cluster, name) is None
            and self.search.can_ever_fit(self.search.request(job.wanted, name, job.qos_flags))
            for name in job.partitions
        )

    def seconds(self, job: PendingJob, placement: Placement) -> int:
        return job.seconds(self.cluster.rules[placement.partition])

    def take(self, placement: Placement) -> None:
        self.free.take(placement)

    def give(self, placement: Placement) -> None:
        self.free.give(placement)
