"""Who used what, when and where."""

from __future__ import annotations

from fairbank.bank.query import GroupPage, Usage, UsageBy, UsageQuery
from fairbank.store.contract import Store


class UsageReports:
    """Sums over resolved runs, as far as the query's sight sees them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def totals(self, query: UsageQuery, by: UsageBy, page: GroupPage) -> list[Usage]:
        """One row for each user, day, month, partition, allocation, job or QOS."""
        with self._store.reading() as reader:
            return reader.usage(query, by, page)
