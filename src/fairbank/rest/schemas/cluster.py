"""Clusters of the settings, with the prices of their partitions."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.final_state import FinalState


class PartitionRow(Struct, frozen=True, kw_only=True):
    """A partition and its prices.

    `weights` are billing units for one of each TRES (memory: for one MiB), exact, as a decimal or a
    fraction; null: jobs are billed by their CPUs. `adding` is how weighted TRES are combined.
    """

    name: str
    resource: str
    weights: dict[str, str] | None
    adding: Literal["sum", "max_tres", "max_tres_gres"]


class ClusterRow(Struct, frozen=True, kw_only=True):
    """A cluster. The factor of a QOS that `qos_factors` does not list is 1. A run that ends in one
    of `free_states` costs nothing (policy.free_states)."""

    name: str
    partitions: list[PartitionRow]
    qos_factors: dict[str, str]
    free_states: list[FinalState]


def cluster_row(cluster: Cluster, free_states: tuple[FinalState, ...]) -> ClusterRow:
    """Return a cluster with its partitions, sorted by name."""
    return ClusterRow(
        name=cluster.name,
        partitions=[
            partition_row(partition) for _, partition in sorted(cluster.partitions.items())
        ],
        qos_factors={name: str(factor) for name, factor in sorted(cluster.qos_factors.items())},
        free_states=list(free_states),
    )


def partition_row(partition: Partition) -> PartitionRow:
    """Return a partition with its prices."""
    weights = partition.weights
    return PartitionRow(
        name=partition.name,
        resource=partition.resource,
        weights=(
            None
            if weights is None
            else {name: str(weight) for name, weight in sorted(weights.items())}
        ),
        adding=partition.billing_rule.value,
    )
