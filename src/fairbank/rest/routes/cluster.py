"""Clusters of the settings, with the prices of their partitions."""

from __future__ import annotations

from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route
from fairbank.rest.schemas.cluster import ClusterRow, cluster_row
from fairbank.rest.schemas.envelope import ListResponse, list_response


@read_route("/cluster", sync_to_thread=False)
def list_clusters(request: ApiRequest) -> ListResponse[ClusterRow]:
    """List the clusters with their partitions, weights, QOS factors and free states, for every
    authenticated user.
    """
    services = request.services
    rows = [
        cluster_row(cluster, services.free_states)
        for _, cluster in sorted(services.clusters.items())
    ]
    return list_response("cluster", services.clock, rows)


ROUTES = (list_clusters,)
