"""Use case of the whole centre: capacity, granted and used credit of each resource."""

from __future__ import annotations

from fractions import Fraction

from fairbank.bank.allocation import Allocation
from fairbank.bank.centre import CentreUse, ClusterSize, centre_use
from fairbank.bank.query import PAGE_MAX, GroupPage, UsageBy, UsageQuery
from fairbank.cluster.partition import price_groups
from fairbank.core.errors import Forbidden
from fairbank.core.time import Instant
from fairbank.service.access.identity import Identity
from fairbank.service.use_cases import UseCases


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
        query = UsageQuery(since=since, until=until, price_groups=groups)
        with self._store.reading() as reader:
            allocations = list(reader.scan(Allocation))
            usage = reader.usage(query, UsageBy.RESOURCE, GroupPage(PAGE_MAX))
        sizes = [
            ClusterSize(name, cluster.cpus, cluster.gpus)
            for name, cluster in sorted(self._context.clusters.items())
        ]
        return centre_use(self._units(groups), sizes, allocations, usage, since, until)

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
