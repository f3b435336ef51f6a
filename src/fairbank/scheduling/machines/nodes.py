"""The machine that is made of nodes: what is free on each, and the rules by which they are given
away."""

from __future__ import annotations

from collections.abc import Iterable

from fairbank.cluster.reservation import Reservation
from fairbank.scheduling.admission import exclusion_reason
from fairbank.scheduling.machines.node_rules import NoStartLimits, Preemption, StartLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch
from fairbank.scheduling.slurm.reservation_rules import ReservationRules


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
        self.limits: StartLimits = limits or NoStartLimits()

    def copy(self) -> Nodes:
        other = Nodes(self.cluster, preemption=self.preemption, search=self.search)
        other.free, other.reservations, other.limits = (
            self.free.copy(),
            self.reservations,
            self.limits.copy(),
        )
        return other

    def can_ever_fit(self, job: PendingJob) -> bool:
        return any(self.can_ever_fit_in(job, name) for name in job.partitions)

    def can_ever_fit_in(self, job: PendingJob, partition: str) -> bool:
        """Return True if the partition accepts the job and could give it nodes if it were empty."""
        return exclusion_reason(job, self.cluster, partition) is None and self.search.can_ever_fit(
            self.search.request(job.wanted, partition)
        )

    def seconds(self, job: PendingJob, placement: Placement) -> int:
        return job.seconds(self.cluster.rules[placement.partition])

    def take(self, placement: Placement) -> None:
        self.free.take(placement)

    def give(self, placement: Placement) -> None:
        self.free.give(placement)
