"""Cluster and partition as the bank bills them.

Each partition bills exactly one resource, except to jobs of a QOS that has its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction

import msgspec

from fairbank.cluster.allocated_tres import Memory, NodeSize
from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.tres import BY_CPU, BillingRule
from fairbank.core.units import exact_decimal


class Partition(msgspec.Struct, frozen=True):
    """Partition. `weights` are billing units per TRES; without them a job bills its CPUs.

    `size` is that of its nodes, `default_memory` that of jobs that request none; None: unknown.
    `exclusive` gives each job whole nodes.
    """

    name: str
    resource: str
    weights: Mapping[str, Fraction] | None = None
    billing_rule: BillingRule = BillingRule.MAX_TRES
    size: NodeSize = NodeSize()
    default_memory: Memory | None = None
    exclusive: bool = False


class Cluster(msgspec.Struct, frozen=True):
    """Cluster whose jobs the bank bills, with its partitions and the price factor of each QOS.

    `qos_resources` are the resources of QOS whose jobs have credit of their own. `capacity` is
    what all its nodes together bill, in billing units by resource; `cpus` and `gpus` are their
    processors and GPUs, None if not known. `default_partition` is the partition of jobs that name
    none; None if they are refused.
    """

    name: str
    partitions: Mapping[str, Partition]
    qos_factors: Mapping[str, Fraction] = {}
    capacity: Mapping[str, Fraction] = {}
    qos_resources: Mapping[str, str] = {}
    default_partition: str | None = None
    cpus: int | None = None
    gpus: int | None = None

    def partition(self, name: str) -> Partition:
        """Return a partition. Raises NotFound, listing the partitions that exist."""
        partition = self.partitions.get(name)
        if partition is None:
            there = ", ".join(sorted(self.partitions)) or "none"
            raise NotFound(
                f"cluster {self.name} has no partition {name!r}",
                field="partition",
                remedy=f"there are: {there}",
            )
        return partition

    def partition_names(self, text: str | None) -> tuple[str, ...]:
        """Return the partitions in a list such as `cpu,gpu`, each once; without a list the default.

        Raises InvalidInput for a list with an invalid name, and if there is neither.
        """
        listed = self.default_partition if text is None else text
        if listed is None:
            raise InvalidInput(
                f"no partition is named, and cluster {self.name} has no default_partition in the"
                " bank's settings",
                field="partition",
                remedy=f"there are: {', '.join(sorted(self.partitions)) or 'none'}",
            )
        return tuple(dict.fromkeys(ids.name(name, field="partition") for name in listed.split(",")))

    def resource(self, partition: str, qos: str | None) -> str:
        """Return the resource that a job is billed on. Raises NotFound for its partition."""
        own = self.partition(partition).resource
        return self.qos_resources.get(qos, own) if qos else own

    @property
    def resources(self) -> frozenset[str]:
        """All resources that jobs are billed on."""
        return frozenset(self.qos_resources.values()).union(
            partition.resource for partition in self.partitions.values()
        )

    def partitions_of(self, resource: str) -> list[Partition]:
        """Return the partitions whose jobs may be billed on a resource: all for that of a QOS."""
        return [
            partition
            for partition in self.partitions.values()
            if partition.resource == resource or resource in self.qos_resources.values()
        ]

    def qos_factor(self, qos: str | None) -> Fraction:
        """Return the factor of the price. A QOS without a factor costs the plain price."""
        return self.qos_factors.get(qos, Fraction(1)) if qos else Fraction(1)


def cluster_names(clusters: Iterable[str]) -> str:
    """List the clusters of the settings, for the remedy of an error."""
    return f"the settings know: {', '.join(sorted(clusters)) or 'none'}"


def only_cluster(names: Collection[str], *, field: str = "cluster") -> str:
    """Return the only cluster of the bank. Raises InvalidInput if there is not just one.

    Args:
        names: clusters of the bank's settings.
        field: option of a command, or field of a request, that would name one.
    """
    if len(names) == 1:
        return next(iter(names))
    how = "with -M CLUSTER, or FAIRBANK_CLUSTER" if field[0] == "-" else f"in the field {field}"
    raise InvalidInput(
        "the cluster is missing, and the bank has not just one",
        field=field,
        remedy=f"name one {how}; {cluster_names(names)}",
    )


def price_groups(clusters: Mapping[str, Cluster]) -> tuple[tuple[str, str, str], ...]:
    """Return (resource, cluster, names) for each resource that a cluster bills.

    `names` joins the clusters that bill the resource at the same prices: only their SU can be
    added. Prices are the same if weights, billing rule and QOS factors are.
    """
    groups: dict[tuple[str, object], list[str]] = {}
    for name, cluster in sorted(clusters.items()):
        for resource in cluster.resources:
            prices = {
                (frozenset(_weights(partition).items()), partition.billing_rule)
                for partition in cluster.partitions_of(resource)
            }
            at = frozenset(prices), frozenset(cluster.qos_factors.items())
            groups.setdefault((resource, at), []).append(name)
    return tuple(
        sorted(
            (resource, name, "+".join(names))
            for (resource, _), names in groups.items()
            for name in names
        )
    )


def one_su(resource: str, clusters: Mapping[str, Cluster]) -> str | None:
    """Return what one SU of a resource buys for an hour: `1 GPU, 16 cores or 32 GiB`.

    Partitions with other weights follow with their names, and those of their clusters if several
    bill it; None if no partition bills it.
    """
    partitions: dict[str, list[str]] = {}
    billing = [cluster for cluster in clusters.values() if cluster.partitions_of(resource)]
    for cluster in billing:
        of_cluster = f" of {cluster.name}" if len(billing) > 1 else ""
        for partition in cluster.partitions_of(resource):
            partitions.setdefault(_bought(partition), []).append(f"{partition.name}{of_cluster}")
    if not partitions:
        return None
    if len(partitions) == 1:
        return next(iter(partitions))
    if len(partitions) > _PRICES_SHOWN:
        return "different in each partition: fairbank quote -p PARTITION"
    return "; ".join(f"in {', '.join(names)} {text}" for text, names in partitions.items())


_PRICES_SHOWN = 3
_COMBINED = {BillingRule.SUM: ", added up", BillingRule.MAX_TRES_GRES: ", GRES added"}
_UNITS = {"cpu": ("core", "cores"), "gres/gpu": ("GPU", "GPUs")}


def _bought(partition: Partition) -> str:
    """Return the counts of TRES of which each is billed as one unit, and how they are combined."""
    parts = []
    for name, weight in sorted(_weights(partition).items(), key=lambda item: -item[1]):
        if weight <= 0:
            continue
        if name == "mem":
            parts.append(f"{exact_decimal(_rounded(1 / (1024 * weight)))} GiB")
            continue
        count = _rounded(1 / weight)
        one, many = _UNITS.get(name, (name, name))
        parts.append(f"{exact_decimal(count)} {one if count == 1 else many}")
    if len(parts) < 2:
        return "".join(parts) or "nothing"
    return f"{', '.join(parts[:-1])} or {parts[-1]}{_COMBINED.get(partition.billing_rule, '')}"


def _rounded(count: Fraction) -> Fraction:
    """Return a count with two decimals, or three if it is below 1, as 0.125."""
    return round(count, 3 if count < 1 else 2)


def _weights(partition: Partition) -> Mapping[str, Fraction]:
    return BY_CPU if partition.weights is None else partition.weights


def unbilled_warnings(resource: str, clusters: Mapping[str, Cluster]) -> list[str]:
    """Return a warning if no partition bills this resource.

    Credit for a partition that does not exist yet is allowed, so this is no error.
    """
    billed = sorted({name for cluster in clusters.values() for name in cluster.resources})
    if resource in billed:
        return []
    return [
        f"no partition bills {resource!r}, so only measured use can be charged to it"
        f" (fairbank storage import), no jobs; billed are: {', '.join(billed) or 'none'}"
    ]


def find_cluster(clusters: Mapping[str, Cluster], name: str, *, otherwise: str = "") -> Cluster:
    """Return the cluster with this name.

    Args:
        name: the name to find.
        otherwise: text to append to the remedy.

    Raises:
        NotFound: the cluster does not exist; the remedy lists those that do.
    """
    if (cluster := clusters.get(name)) is None:
        raise NotFound(
            f"there is no cluster {name!r}",
            field="cluster",
            remedy=f"{cluster_names(clusters)}{otherwise}",
        )
    return cluster
