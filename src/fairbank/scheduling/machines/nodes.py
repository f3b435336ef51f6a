"""The machine that is made of nodes: what is free on each, and the rules by which they are given
away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairbank.cluster.reservation import Reservation
from fairbank.scheduling.admission import exclusion_reason
from fairbank.scheduling.machines.node_profile import NodeProfile
from fairbank.scheduling.machines.node_rules import NoStartLimits, Preemption, StartLimits
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch, find_placement
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

    def place(self, job: PendingJob, now: int) -> Placement | None:
        """Return the placement in the first of its partitions in which the job fits."""
        placements = (self.placement_at(job, name, self.free, now) for name in job.partitions)
        return next((placement for placement in placements if placement is not None), None)

    def placement_at(
        self, job: PendingJob, partition: str, free: FreeResources, begin: int
    ) -> Placement | None:
        """Return the placement of the job in a partition if it starts at a time; None if it does
        not fit.

        Args:
            job: the pending job.
            partition: name of the partition.
            free: free resources at that time.
            begin: start time in seconds.
        """
        if exclusion_reason(job, self.cluster, partition) is not None:
            return None
        rules, nodes = self.cluster.partition(partition)
        within = (
            nodes
            & self.cluster.usable
            & self.reservations.usable_nodes(job, begin, begin + job.seconds(rules))
        )
        for wanted in (
            (job.wanted.with_preference(), job.wanted) if job.wanted.prefer else (job.wanted,)
        ):
            if (
                placement := find_placement(
                    self.cluster, free, self.search.request(wanted, partition), within
                )
            ) is not None:
                return placement
        return None

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

    def profile(self, running: Sequence[Active], now: int) -> NodeProfile:
        return NodeProfile(self, running, now)

    def partition_nodes(self, partition: str) -> NodeSet | None:
        """Return the nodes of a partition; None if it does not exist."""
        return self.cluster.partitions.get(partition)
