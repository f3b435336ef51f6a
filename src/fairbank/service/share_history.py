"""Fair share from day to day: told by whoever speaks for a cluster, read by its people."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.bank.project import Role
from fairbank.cluster.share_record import ShareKey, ShareQuery, ShareRecord, share_key
from fairbank.service.access.identity import Asker
from fairbank.service.access.permissions import check_cluster
from fairbank.service.project_cache import ProjectCache
from fairbank.store.contract import Store


class ShareHistory:
    """The daily figures. They are no part of the journal: no entry tells of them, and no audit."""

    def __init__(self, store: Store, directory: ProjectCache, *, dry_run: bool = False) -> None:
        """`foretelling`: nothing is kept, only told what would be."""
        self._store, self._directory, self._dry_run = store, directory, dry_run

    def record(self, asker: Asker, cluster: str, figures: Sequence[ShareRecord]) -> int:
        """Keep the figures, all of `cluster`, of associations that have none of that day yet; returns how many that were, or would be.
        Raises Forbidden for who does not speak for the cluster, Busy, Unreachable."""
        check_cluster(asker, cluster, "record the fair share")
        return (
            len(self._unrecorded(figures))
            if self._dry_run
            else self._store.add_share_records(figures)
        )

    def _unrecorded(self, figures: Sequence[ShareRecord]) -> set[ShareKey]:
        days = {each.day for each in figures}
        asked = ShareQuery(
            min(days, default=0),
            max(days, default=-1) + 1,
            figures[0].cluster if figures else None,
            users=True,
        )
        with self._store.reading() as reader:
            return {share_key(each) for each in figures} - {
                share_key(each) for each in reader.share_records(asked)
            }

    def find(self, asker: Asker, query: ShareQuery) -> list[ShareRecord]:
        """What was recorded, as far as the asker may see it: staff everything; others the accounts of their projects, and the users in
        them whose they lead. The agents of a cluster see all of theirs."""
        if not (
            asker.superuser
            or asker.admin
            or (query.cluster is not None and query.cluster in asker.clusters)
        ):
            query = self._restrict(asker, query)
        with self._store.reading() as reader:
            return reader.share_records(query)

    def _restrict(self, asker: Asker, query: ShareQuery) -> ShareQuery:
        roles = {
            self._directory.by_id(project).account: role for project, role in asker.roles.items()
        }
        mine = frozenset(roles)
        led = frozenset(
            account for account, role in roles.items() if role in (Role.PI, Role.COORDINATOR)
        )
        return query._replace(
            accounts=mine if query.accounts is None else mine & query.accounts, users_of=led
        )
