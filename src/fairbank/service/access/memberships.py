"""Roles of users in projects: from the bank's own rows, and from Unix groups if these count."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from fairbank.bank.project import Project, Role
from fairbank.bank.query import Page, ProjectQuery
from fairbank.store.contract import Store

GROUPS_TTL_SECONDS = 30
"""Time in which a change of a user's Unix groups may go unnoticed: an LDAP query is slow."""

_CACHE_MAX = 10_000


class Memberships:
    """Roles by uid. It reads the store and may query LDAP: call it from a worker thread."""

    def __init__(
        self,
        store: Store,
        groups_of: Callable[[int], frozenset[int]] | None,
        monotonic: Callable[[], float] = time.monotonic,
        members_of: Callable[[int], frozenset[int]] | None = None,
    ) -> None:
        """Create an empty cache.

        Args:
            groups_of: returns the Unix groups of a user; None if groups do not count.
            monotonic: clock for the age of cached groups.
            members_of: returns the users of a Unix group; None if groups do not count.
        """
        self._store, self._groups_of, self._monotonic = store, groups_of, monotonic
        self._members_of = members_of
        self._by_group: dict[int, tuple[float, frozenset[int]]] = {}

    def roles(self, uid: int) -> Mapping[int, Role]:
        """Return a user's role in each project. The bank's own rows override a Unix group."""
        by_group, gids = self._cached(uid), frozenset[int]()
        # Query LDAP before the snapshot opens: it would stay open while LDAP is slow.
        if by_group is None and self._groups_of is not None:
            gids = self._groups_of(uid)
        with self._store.reading() as reader:
            rows = {member.project: member.role for member in reader.memberships(uid)}
            if by_group is None:
                by_group = frozenset(
                    project.id
                    for gid in gids
                    for project in reader.projects(ProjectQuery(gid=gid, removed=False), Page(1))
                )
                self._store_in_cache(uid, by_group)
        return {**dict.fromkeys(by_group, Role.MEMBER), **rows}

    def by_group(self, project: Project) -> frozenset[int]:
        """Return the users who are members of a project through its Unix group."""
        if self._members_of is None or project.removed:
            return frozenset()
        return self._members_of(project.gid)

    def _cached(self, uid: int) -> frozenset[int] | None:
        """Return a user's projects by Unix group; None if they are unknown or too old."""
        if self._groups_of is None:
            return frozenset()
        cached = self._by_group.get(uid)
        if cached is None or self._monotonic() - cached[0] >= GROUPS_TTL_SECONDS:
            return None
        return cached[1]

    def _store_in_cache(self, uid: int, projects: frozenset[int]) -> None:
        if len(self._by_group) >= _CACHE_MAX:
            self._by_group.clear()
        self._by_group[uid] = (self._monotonic(), projects)
