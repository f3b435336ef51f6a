"""Prices of described jobs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.policy import Policy
from fairbank.bank.pricing import Quote, bill, quote, remarks
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, cluster_names, find_cluster
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.time import Clock
from fairbank.service.access.identity import Identity
from fairbank.service.available_credit import available_credit
from fairbank.service.project_cache import ProjectCache
from fairbank.store.contract import Store


class Quotes:
    """Use case: the price of a job, without a change of the ledger."""

    def __init__(
        self,
        store: Store,
        project_cache: ProjectCache,
        clusters: Mapping[str, Cluster],
        policy: Policy,
        clock: Clock,
    ) -> None:
        self._store, self._project_cache, self._clusters, self._policy, self._clock = (
            store,
            project_cache,
            clusters,
            policy,
            clock,
        )

    def quote(self, identity: Identity, account: str, request: JobRequest) -> Quote:
        """Return the price of a job with its lines, and the allocation that would carry it now.

        Raises NotFound, InvalidInput.
        """
        cluster = find_cluster(self._clusters, request.cluster)
        project = self._project_cache.by_account(account)
        if project is None or project.removed or not identity.visibility.sees(project.id):
            raise NotFound(
                f"there is no project with the account {account!r}",
                field="account",
                remedy="list yours with: fairbank project list",
            )
        priced = bill(request, cluster)
        line, now = self._project_cache.project_chain(project), self._clock.now()
        offers = available_credit(self._store, [line], priced.resource, identity.uid, now)[0]
        offer = quote(priced, offers, self._policy)
        return msgspec.structs.replace(offer, notes=(*offer.notes, *remarks(request, cluster)))

    def only_cluster(self) -> str:
        """Return the only cluster of the bank. Raises InvalidInput if there are several."""
        if len(self._clusters) == 1:
            return next(iter(self._clusters))
        raise InvalidInput(
            "which cluster?", field="cluster", remedy=f"name one; {cluster_names(self._clusters)}"
        )
