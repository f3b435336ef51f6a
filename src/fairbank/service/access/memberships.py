"""What users are in projects: by the bank's own rows, and by their Unix groups where those count."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from fairbank.bank.project import Role
from fairbank.bank.query import Page, ProjectQuery
from fairbank.store.contract import Store

GROUPS_TTL_SECONDS = 30  # how long a change of a user's Unix groups may go unnoticed: asking LDAP at each request is too dear
_CACHE_MAX = 10_000


class Memberships:
    """Roles by uid. It reads the books and may ask LDAP: call it from a worker thread."""

    def __init__(
        self,
        store: Store,
        groups_of: Callable[[int], frozenset[int]] | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`groups_of` tells a user's Unix groups; None: they do not count. `ticks` as in Directory."""
        self._store, self._groups_of, self._monotonic = store, groups_of, monotonic
        self._by_group: dict[int, tuple[float, frozenset[int]]] = {}

    def roles(self, uid: int) -> Mapping[int, Role]:
        """The role of a user in each project; the bank's own rows count more than a Unix group."""
        by_group, gids = self._cached(uid), frozenset[int]()
        if by_group is None and self._groups_of is not None:
            gids = self._groups_of(
                uid
            )  # before there is a snapshot: while a directory is slow, none stays open
        with self._store.reading() as reader:
            rows = {each.project: each.role for each in reader.memberships(uid)}
            if by_group is None:
                by_group = frozenset(
                    each.id
                    for gid in gids
                    for each in reader.projects(ProjectQuery(gid=gid, removed=False), Page(1))
                )
                self._store_in_cache(uid, by_group)
        return {**dict.fromkeys(by_group, Role.MEMBER), **rows}

    def _cached(self, uid: int) -> frozenset[int] | None:
        """A user's projects by their groups, as far as they are known and fresh; none where groups do not count."""
        if self._groups_of is None:
            return frozenset()
        known = self._by_group.get(uid)
        return (
            known[1]
            if known is not None and self._monotonic() - known[0] < GROUPS_TTL_SECONDS
            else None
        )

    def _store_in_cache(self, uid: int, projects: frozenset[int]) -> None:
        if len(self._by_group) >= _CACHE_MAX:
            self._by_group.clear()
        self._by_group[uid] = (self._monotonic(), projects)
