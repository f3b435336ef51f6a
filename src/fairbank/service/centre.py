"""Use case of the whole centre: capacity, granted and used credit of each resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from operator import attrgetter

from msgspec.structs import replace

from fairbank.bank.allocation import Allocation
from fairbank.bank.centre import CentreUse, ClusterSize, Occupied, centre_use
from fairbank.bank.entry import is_ended_early
from fairbank.bank.query import PAGE_MAX, GroupPage, Usage, UsageQuery
from fairbank.cluster.partition import price_groups
from fairbank.core.errors import Forbidden
from fairbank.core.time import Instant
from fairbank.core.usage_groups import UsageBy
from fairbank.service.access.identity import Identity
from fairbank.service.use_cases import UseCases
from fairbank.store.contract import Reader

Unit = tuple[str, str]
Prices = Mapping[Unit, str]
"""Clusters that have the prices of a cluster, by resource and cluster."""


class Centre(UseCases):
    """Use of the centre in a period, for staff."""

    def use(self, identity: Identity, since: Instant, until: Instant) -> CentreUse:
        """Return the use of the whole centre in a period. Raises Forbidden.

        Args:
            identity: the user who asks; must be staff.
            since: the start of the period. Runs count by their end.
            until: its end, which is excluded.
        """
        if not identity.visibility.everything:
            raise Forbidden(
                "the use of the whole centre is for staff",
                remedy="see your own with: fairbank usage",
            )
        groups = price_groups(self._context.clusters)
        prices = {(resource, name): clusters for resource, name, clusters in groups}
        with self._store.reading() as reader:
            allocations = list(reader.scan(Allocation))
            early = _ended_early(reader, allocations, since, self._clock.now())
            usage = _usage_by_partition(reader, since, until, prices)
        members: dict[str, list[str]] = {}
        for _, name, clusters in groups:
            if name not in members.setdefault(clusters, []):
                members[clusters].append(name)
        sizes = [
            ClusterSize(name, cluster.cpus, cluster.gpus)
            for name, cluster in sorted(self._context.clusters.items())
        ]
        return centre_use(
            self._units(groups),
            members,
            sizes,
            allocations,
            [
                replace(row, clusters=prices.get((row.resource, row.clusters), row.clusters))
                for row in usage
            ],
            self._occupied(usage, prices),
            since,
            until,
            self._resources_of_qos(),
            early,
        )

    def _occupied(self, usage: Sequence[Usage], prices: Prices) -> dict[Unit, Occupied]:
        """Return what runs had of each resource and group of clusters: of the resource of their
        partition, if the settings have it, whichever resource paid.

        Args:
            usage: usage of the period by partition and cluster.
            prices: the clusters with the same prices, by resource and cluster.
        """
        sums: dict[Unit, Occupied] = {}
        for row in usage:
            cluster = self._context.clusters.get(row.clusters)
            partition = cluster and cluster.partitions.get(str(row.group))
            resource = partition.resource if partition else row.resource
            unit = resource, prices.get((resource, row.clusters), row.clusters)
            minutes, without_size = sums.get(unit, Occupied())
            sums[unit] = Occupied(minutes + row.occupied, without_size + row.without_size)
        return sums

    def _units(
        self, groups: tuple[tuple[str, str, str], ...]
    ) -> dict[tuple[str, str], Fraction | None]:
        """Return the units of each resource and group of clusters; None if one has no capacity."""
        units: dict[tuple[str, str], Fraction | None] = {}
        for resource, name, clusters in groups:
            own = self._context.clusters[name].capacity.get(resource)
            before = units.get((resource, clusters), Fraction(0))
            units[resource, clusters] = None if own is None or before is None else before + own
        return units

    def _resources_of_qos(self) -> set[str]:
        """Return the resources that QOS bill, and no partition of any cluster."""
        clusters = self._context.clusters.values()
        of_partitions = {
            partition.resource for cluster in clusters for partition in cluster.partitions.values()
        }
        return set().union(*(cluster.resources for cluster in clusters)) - of_partitions


def _usage_by_partition(
    reader: Reader, since: Instant, until: Instant, prices: Prices
) -> list[Usage]:
    """Return the usage of a period by partition, resource and cluster: once, since adding up a
    million runs by two groupings takes twice as long.
    """
    groups = tuple((resource, name, name) for resource, name in prices)
    query = UsageQuery(since=since, until=until, price_groups=groups)
    usage: list[Usage] = []
    page = GroupPage(PAGE_MAX)
    while rows := reader.usage(query, UsageBy.PARTITION, page):
        usage += rows
        if len(rows) < PAGE_MAX:
            break
        page = GroupPage(PAGE_MAX, rows[-1].key)
    return usage


def _ended_early(
    reader: Reader, allocations: Sequence[Allocation], since: Instant, now: Instant
) -> set[int]:
    """Return which allocations with unused credit staff ended before their time.

    Args:
        reader: reads the terms that an allocation had before.
        allocations: all allocations.
        since: those that ended earlier are left out.
        now: those that end later are left out.
    """
    unspent = [
        allocation.id
        for allocation in allocations
        if since < allocation.terms.end <= now and allocation.withdrawable > 0
    ]
    early: set[int] = set()
    for first in range(0, len(unspent), PAGE_MAX):
        entries = reader.term_entries(frozenset(unspent[first : first + PAGE_MAX]))
        for number, terms in groupby(entries, attrgetter("allocation")):
            early |= {number} if is_ended_early(terms) else set()
    return early
