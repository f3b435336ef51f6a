"""A partition: the nodes of one kind that bill exactly one resource, and the weights that price them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

from fairbank.core.errors import Unknown
from fairbank.core.tres import BillingRule


class Partition(msgspec.Struct, frozen=True):
    """Where jobs run. `weights` are billing units per TRES; without them a job bills its CPUs."""

    name: str
    resource: str
    weights: Mapping[str, Fraction] | None = None
    billing_rule: BillingRule = BillingRule.MAX_TRES


class Cluster(msgspec.Struct, frozen=True):
    """A machine whose jobs the bank pays for, with its partitions and the price factor of each QOS."""

    name: str
    partitions: Mapping[str, Partition]
    qos_factors: Mapping[str, Fraction] = {}

    def partition(self, name: str) -> Partition:
        """Raises Unknown, listing the partitions there are."""
        found = self.partitions.get(name)
        if found is None:
            there = ", ".join(sorted(self.partitions)) or "none"
            raise Unknown(
                f"cluster {self.name} has no partition {name!r}",
                field="partition",
                remedy=f"there are: {there}",
            )
        return found

    def qos_factor(self, qos: str | None) -> Fraction:
        """What the price is multiplied by. A QOS that nobody priced costs the plain price."""
        return self.qos_factors.get(qos, Fraction(1)) if qos else Fraction(1)


def cluster_names(clusters: Mapping[str, Cluster]) -> str:
    """The names of the clusters in the settings, for whoever named another."""
    return f"the settings know: {', '.join(sorted(clusters)) or 'none'}"


def unbilled_warnings(resource: str, clusters: Mapping[str, Cluster]) -> list[str]:
    """What to warn of where no partition bills this resource: credit for one that is yet to come is fine, a word misspelt is not."""
    billed = sorted(
        {each.resource for cluster in clusters.values() for each in cluster.partitions.values()}
    )
    if resource in billed:
        return []
    return [
        f"no partition bills {resource!r} yet, so no job can draw on it; billed are: {', '.join(billed) or 'none'}"
    ]


def find_cluster(clusters: Mapping[str, Cluster], name: str, *, otherwise: str = "") -> Cluster:
    """The cluster of this name. Raises Unknown, listing those there are and what else may be done."""
    if (found := clusters.get(name)) is None:
        raise Unknown(
            f"there is no cluster {name!r}",
            field="cluster",
            remedy=f"{cluster_names(clusters)}{otherwise}",
        )
    return found
