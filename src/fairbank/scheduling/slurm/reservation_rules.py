"""Nodes that advanced reservations leave to a job (slurm-rules.md, "Advanced reservations")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import NodeTable


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
        """Return the time when the job must have left these nodes: another reservation begins on
        one of them, or its own ends. None: never.
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
