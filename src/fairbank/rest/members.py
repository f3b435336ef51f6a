"""What users are in projects: by the bank's own rows, and by their Unix groups where the settings say so."""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.bank.project import Role
from fairbank.rest.house import House
from fairbank.rest.peers import groups_of
from fairbank.store.contract import Page, ProjectQuery, Reader
from fairbank.values.time import Instant

FRESH_SECONDS = 30  # how long a change of a user's Unix groups may go unnoticed: asking LDAP at each request is too dear
_REMEMBERED_MAX = 10_000


class Memberships:
    """Roles by uid. It reads the books and may ask LDAP: call it from a worker thread."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._by_group: dict[int, tuple[Instant, frozenset[int]]] = {}

    def roles(self, uid: int) -> Mapping[int, Role]:
        """The role of a user in each project; the bank's own rows count more than a Unix group."""
        with self._house.store.reading() as reader:
            rows = {each.project: each.role for each in reader.memberships(uid)}
            if not self._house.unix_groups:
                return rows
            return {**dict.fromkeys(self._projects_by_group(reader, uid), Role.MEMBER), **rows}

    def _projects_by_group(self, reader: Reader, uid: int) -> frozenset[int]:
        now = self._house.clock.now()
        known = self._by_group.get(uid)
        if known is not None and now - known[0] < FRESH_SECONDS:
            return known[1]
        found = frozenset(each.id for gid in groups_of(uid) for each in reader.projects(ProjectQuery(gid=gid), Page(1)))
        if len(self._by_group) >= _REMEMBERED_MAX:
            self._by_group.clear()
        self._by_group[uid] = (now, found)
        return found
