"""What advanced reservations leave to a job.

Source: docs/reference/slurm-rules.md, "Advanced reservations".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import NodeTable


class ReservationRules:
    """The reservations of a cluster by their names, each with those of its nodes that are there: one may have gone since.

    Raises InvalidInput for two of one name.
    """

    def __init__(self, cluster: NodeTable, reservations: Iterable[Reservation] = ()) -> None:
        self.everybody = cluster.everybody
        self.named: dict[str, tuple[Reservation, NodeSet]] = {}
        for each in reservations:
            if each.name in self.named:
                remedy = "give each a name of its own"
                raise InvalidInput(
                    f"reservation {each.name} is there twice", field="reservations", remedy=remedy
                )
            self.named[each.name] = (
                each,
                node_set.of(cluster.place[node] for node in each.nodes if node in cluster.place),
            )

    def __iter__(self) -> Iterator[tuple[Reservation, NodeSet]]:
        return iter(self.named.values())

    def __len__(self) -> int:
        return len(self.named)

    def left(
        self,
        job: PendingJob,
        begin: int,
        end: int,
        *,
        resolution: int = 1,
        maintenance: bool = True,
    ) -> NodeSet:
        """The nodes that the job may have from `begin` until `end`, both included: one that would end at the second at which a
        reservation of others begins does not fit. That beginning is floored to `resolution`.

        Its own reservation lets it have its nodes and no others, if it begins there: slurmctld ends it with the reservation. A flexible one
        lets it have others too, and before and after its time. `maintenance` False: as if nobody worked on the nodes.
        """
        own: Reservation | None = None
        found = self.everybody
        for each, nodes in self:
            if each.name == job.reservation:
                own = each
                if not (each.flexible or each.any_nodes):
                    found &= nodes
            elif (
                each.begin // resolution * resolution <= end
                and begin < each.end
                and (maintenance or not each.maintenance)
            ):
                found = node_set.without(found, nodes)
        if own is not None and not own.flexible and not own.begin <= begin < own.end:
            return node_set.NOBODY
        return found

    def next_change(self, after: int) -> int | None:
        """When reservations next let nodes go; None where none does."""
        return min((each.end for each, _ in self if each.end > after), default=None)

    def next_claim(self, job: PendingJob, nodes: NodeSet, after: int) -> int | None:
        """When the job must be off these nodes: others have reserved one of them, or its own reservation ends; None where never."""
        claims = [
            each.end if each.name == job.reservation else each.begin
            for each, reserved in self
            if reserved & nodes
            and (not each.flexible if each.name == job.reservation else each.begin > after)
        ]
        return min(claims, default=None)
