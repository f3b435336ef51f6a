"""Daily fair-share records: written by the agent of a cluster, read by its users."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.bank.project import Role
from fairbank.cluster.share import ShareKey, ShareQuery, ShareRecord, share_key
from fairbank.service.access.identity import Identity, check_cluster
from fairbank.service.use_cases import UseCases


class ShareHistory(UseCases):
    """Use cases of the daily records. They are not part of the journal or of its audit."""

    def record(self, identity: Identity, cluster: str, figures: Sequence[ShareRecord]) -> int:
        """Store records of a cluster, except for associations that have one of that day already.

        Args:
            identity: the user who reports; must be an agent of the cluster or a superuser.
            cluster: name of the cluster of all these records.
            figures: one record for each association and day.

        Returns:
            The number of new records.

        Raises:
            Forbidden: the user may not report for the cluster.
            Busy, Unavailable: the store cannot write now.
        """
        check_cluster(identity, cluster, self._context.clusters, "record the fair share")
        return (
            len(self._unrecorded(figures))
            if self._context.is_dry_run
            else self._store.add_share_records(figures)
        )

    def _unrecorded(self, figures: Sequence[ShareRecord]) -> set[ShareKey]:
        days = {record.day for record in figures}
        query = ShareQuery(
            min(days, default=0),
            max(days, default=-1) + 1,
            figures[0].cluster if figures else None,
            users=True,
        )
        with self._store.reading() as reader:
            return {share_key(record) for record in figures} - {
                share_key(record) for record in reader.share_records(query)
            }

    def find(self, identity: Identity, query: ShareQuery) -> list[ShareRecord]:
        """Return the records that a user may see.

        Staff, and the agents of the cluster, see all of them, and all users if the settings show
        them all jobs. Else others see the accounts of their projects, and the users of those they
        lead.
        """
        if not (
            identity.job_visibility.everything
            or (query.cluster is not None and query.cluster in identity.clusters)
        ):
            query = self._restrict(identity, query)
        with self._store.reading() as reader:
            return reader.share_records(query)

    def _restrict(self, identity: Identity, query: ShareQuery) -> ShareQuery:
        roles = {
            self._project_cache.by_id(project).account: role
            for project, role in identity.roles.items()
        }
        mine = frozenset(roles)
        led = frozenset(
            account for account, role in roles.items() if role in (Role.PI, Role.COORDINATOR)
        )
        return query._replace(
            accounts=mine if query.accounts is None else mine & query.accounts, users_of=led
        )
