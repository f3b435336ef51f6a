"""The machine that is made of nodes: what is free on each, and the rules by which they are given away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairbank.cluster.reservation import Reservation
from fairbank.scheduling.admission import outside
from fairbank.scheduling.pending_job import (Active, Pending)
from fairbank.scheduling.placement.node_table import Cluster
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import (Places, place)
from fairbank.scheduling.placement.free_resources import (Placement, Room)
from fairbank.scheduling.slurm.reservation_rules import Reserved
from fairbank.scheduling.machines.node_profile import Rooms
from fairbank.scheduling.machines.node_rules import (Limits, Preemption, Unlimited)


class Nodes:
    """A cluster, the room on its nodes, reservations, and the rules of preemption and of limits.

    Raises Malformed for two reservations of one name.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        reservations: Iterable[Reservation] = (),
        preemption: Preemption | None = None,
        limits: Limits | None = None,
        places: Places | None = None,
    ) -> None:
        self.cluster = cluster
        self.places = places or Places(cluster)
        self.room = Room(cluster)
        self.reserved = Reserved(cluster, reservations)
        self.preemption = preemption or Preemption()
        self.limits: Limits = limits or Unlimited()

    def copy(self) -> Nodes:
        other = Nodes(self.cluster, preemption=self.preemption, places=self.places)
        other.room, other.reserved, other.limits = (
            self.room.copy(),
            self.reserved,
            self.limits.copy(),
        )
        return other

    def place(self, job: Pending, now: int) -> Placement | None:
        """In the first of its partitions in which it fits."""
        found = (self.where(job, name, self.room, now) for name in job.partitions)
        return next((each for each in found if each is not None), None)

    def where(self, job: Pending, partition: str, room: Room, begin: int) -> Placement | None:
        """Where the job goes in a partition if it starts then, with what is free on the nodes then; None where it does not fit."""
        if outside(job, self.cluster, partition) is not None:
            return None
        rules, nodes = self.cluster.partition(partition)
        within = (
            nodes & self.cluster.usable & self.reserved.left(job, begin, begin + job.seconds(rules))
        )
        for wanted in (job.wanted.preferring(), job.wanted) if job.wanted.prefer else (job.wanted,):
            if (
                found := place(self.cluster, room, self.places.request(wanted, partition), within)
            ) is not None:
                return found
        return None

    def ever(self, job: Pending) -> bool:
        return any(self.able(job, name) for name in job.partitions)

    def able(self, job: Pending, partition: str) -> bool:
        """Whether the partition takes the job, and could ever give it nodes."""
        return outside(job, self.cluster, partition) is None and self.places.ever(
            self.places.request(job.wanted, partition)
        )

    def seconds(self, job: Pending, placement: Placement) -> int:
        return job.seconds(self.cluster.rules[placement.partition])

    def take(self, placement: Placement) -> None:
        self.room.take(placement)

    def give(self, placement: Placement) -> None:
        self.room.give(placement)

    def ahead(self, running: Sequence[Active], now: int) -> Rooms:
        return Rooms(self, running, now)

    def there(self, partition: str) -> NodeSet | None:
        """The nodes of a partition; None where it is gone."""
        return self.cluster.partitions.get(partition)
