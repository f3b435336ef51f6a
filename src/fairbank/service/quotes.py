"""What a described job would cost its asker, without touching the books."""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.bank.book import Book
from fairbank.bank.charge import bill
from fairbank.bank.query import AllocationQuery, Page
from fairbank.bank.quote import Quote, quote
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster
from fairbank.service.askers import Asker
from fairbank.service.directory import Directory
from fairbank.store.contract import Store
from fairbank.values.time import Clock
from fairbank.values.trouble import Unknown


class Quotes:
    def __init__(self, store: Store, directory: Directory, clusters: Mapping[str, Cluster], clock: Clock) -> None:
        self._store, self._directory, self._clusters, self._clock = store, directory, clusters, clock

    def quote(self, asker: Asker, account: str, request: JobRequest) -> Quote:
        """The price with its lines, and the allocation that would carry it now. Raises Unknown, Malformed."""
        cluster = self._clusters.get(request.cluster)
        if cluster is None:
            there = ", ".join(sorted(self._clusters)) or "none"
            raise Unknown(f"there is no cluster {request.cluster!r}", field="cluster", remedy=f"the settings know: {there}")
        project = self._directory.by_account(account)
        if project is None or not (asker.sight.everything or project.id in asker.sight.projects):
            raise Unknown(
                f"there is no project with the account {account!r}", field="account", remedy="list yours with: fairbank project list"
            )
        priced = bill(request, cluster)
        line, now = self._directory.line(project), self._clock.now()
        with self._store.reading() as reader:
            query = AllocationQuery(projects=frozenset(line), resource=priced.resource, active_at=now)
            found = reader.allocations(query, Page())
            users = {row.allocation: row.sums for row in reader.users(frozenset(each.id for each in found)) if row.uid == asker.uid}
        book = Book(allocations=found, users=((number, asker.uid, sums) for number, sums in users.items()))
        return quote(priced, [(each, book.sums_of(each.id, asker.uid)) for each in book.candidates(line, priced.resource, now)])
