"""The machine that is made of nodes: what is free on each, and the rules by which they are given away."""

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
    """A cluster, the room on its nodes, reservations, and the rules of preemption and of limits.

    Raises InvalidInput for two reservations of one name.
    """

    def __init__(
        self,
        cluster: NodeTable,
        *,
        reservations: Iterable[Reservation] = (),
        preemption: Preemption | None = None,
        limits: StartLimits | None = None,
        places: PlacementSearch | None = None,
    ) -> None:
        self.cluster = cluster
        self.places = places or PlacementSearch(cluster)
        self.room = FreeResources(cluster)
        self.reserved = ReservationRules(cluster, reservations)
        self.preemption = preemption or Preemption()
        self.limits: StartLimits = limits or NoStartLimits()

    def copy(self) -> Nodes:
        other = Nodes(self.cluster, preemption=self.preemption, places=self.places)
        other.room, other.reserved, other.limits = (
            self.room.copy(),
            self.reserved,
            self.limits.copy(),
        )
        return other

    def place(self, job: PendingJob, now: int) -> Placement | None:
        """In the first of its partitions in which it fits."""
        found = (self.where(job, name, self.room, now) for name in job.partitions)
        return next((each for each in found if each is not None), None)

    def where(
        self, job: PendingJob, partition: str, room: FreeResources, begin: int
    ) -> Placement | None:
        """Where the job goes in a partition if it starts then, with what is free on the nodes then; None where it does not fit."""
        if exclusion_reason(job, self.cluster, partition) is not None:
            return None
        rules, nodes = self.cluster.partition(partition)
        within = (
            nodes & self.cluster.usable & self.reserved.left(job, begin, begin + job.seconds(rules))
        )
        for wanted in (
            (job.wanted.with_preference(), job.wanted) if job.wanted.prefer else (job.wanted,)
        ):
            if (
                found := find_placement(
                    self.cluster, room, self.places.request(wanted, partition), within
                )
            ) is not None:
                return found
        return None

    def ever(self, job: PendingJob) -> bool:
        return any(self.able(job, name) for name in job.partitions)

    def able(self, job: PendingJob, partition: str) -> bool:
        """Whether the partition takes the job, and could ever give it nodes."""
        return exclusion_reason(job, self.cluster, partition) is None and self.places.ever(
            self.places.request(job.wanted, partition)
        )

    def seconds(self, job: PendingJob, placement: Placement) -> int:
        return job.seconds(self.cluster.rules[placement.partition])

    def take(self, placement: Placement) -> None:
        self.room.take(placement)

    def give(self, placement: Placement) -> None:
        self.room.give(placement)

    def ahead(self, running: Sequence[Active], now: int) -> NodeProfile:
        return NodeProfile(self, running, now)

    def there(self, partition: str) -> NodeSet | None:
        """The nodes of a partition; None where it is gone."""
        return self.cluster.partitions.get(partition)
