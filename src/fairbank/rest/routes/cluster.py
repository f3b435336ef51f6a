"""The machines that the settings know, and what their partitions cost."""

from __future__ import annotations

from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.final_state import FinalState
from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import ClusterRow, Listing, PartitionRow
from fairbank.rest.verbs import reads
from fairbank.rest.views import listing


@reads("/cluster", sync_to_thread=False)
def list_clusters(request: Asking) -> Listing[ClusterRow]:
    """The clusters with their partitions, weights, QOS factors and what costs nothing, for whoever signed in: prices are no secret."""
    found, free = request.services.clusters, request.services.free_states
    return listing(
        "cluster", request.services.clock, [_cluster(found[name], free) for name in sorted(found)]
    )


def _cluster(cluster: Cluster, free_states: tuple[FinalState, ...]) -> ClusterRow:
    partitions = [_partition(cluster.partitions[name]) for name in sorted(cluster.partitions)]
    factors = {name: str(factor) for name, factor in sorted(cluster.qos_factors.items())}
    return ClusterRow(
        name=cluster.name, partitions=partitions, qos_factors=factors, free_states=list(free_states)
    )


def _partition(partition: Partition) -> PartitionRow:
    weights = (
        None
        if partition.weights is None
        else {name: str(weight) for name, weight in sorted(partition.weights.items())}
    )
    return PartitionRow(
        name=partition.name,
        resource=partition.resource,
        weights=weights,
        adding=partition.billing_rule.value,
    )


ROUTES = (list_clusters,)
