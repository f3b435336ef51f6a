"""What users are in projects: by the bank's own rows, and by their Unix groups where those count."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from fairbank.bank.project import Role
from fairbank.bank.query import Page, ProjectQuery
from fairbank.store.contract import Reader, Store

FRESH_SECONDS = 30  # how long a change of a user's Unix groups may go unnoticed: asking LDAP at each request is too dear
_REMEMBERED_MAX = 10_000


class Memberships:
    """Roles by uid. It reads the books and may ask LDAP: call it from a worker thread."""

    def __init__(
        self, store: Store, groups_of: Callable[[int], frozenset[int]] | None, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        """`groups_of` tells a user's Unix groups; None: they do not count. `ticks` as in Directory."""
        self._store, self._groups_of, self._ticks = store, groups_of, ticks
        self._by_group: dict[int, tuple[float, frozenset[int]]] = {}

    def roles(self, uid: int) -> Mapping[int, Role]:
        """The role of a user in each project; the bank's own rows count more than a Unix group."""
        with self._store.reading() as reader:
            rows = {each.project: each.role for each in reader.memberships(uid)}
            if self._groups_of is None:
                return rows
            return {**dict.fromkeys(self._by_groups(reader, uid, self._groups_of), Role.MEMBER), **rows}

    def _by_groups(self, reader: Reader, uid: int, groups_of: Callable[[int], frozenset[int]]) -> frozenset[int]:
        now = self._ticks()
        known = self._by_group.get(uid)
        if known is not None and now - known[0] < FRESH_SECONDS:
            return known[1]
        found = frozenset(each.id for gid in groups_of(uid) for each in reader.projects(ProjectQuery(gid=gid, removed=False), Page(1)))
        if len(self._by_group) >= _REMEMBERED_MAX:
            self._by_group.clear()
        self._by_group[uid] = (now, found)
        return found
