"""The directory of projects: few, much asked for, never deleted; so they are kept in memory and looked up again on a miss."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock

from fairbank.bank.project import Project, line_of
from fairbank.bank.query import PAGE_MAX, Page, ProjectQuery
from fairbank.store.contract import Store
from fairbank.values.time import Clock
from fairbank.values.trouble import Unknown

_FRESH_SECONDS = 5  # how long it may go unnoticed that the books were replaced by a backup; by themselves projects never change
_MISSED_SECONDS = 1  # how long a project that another server has just entered may be unknown here


class Directory:
    """Projects by number and by account. Safe to use from many threads: a refresh replaces the maps whole.

    An account that is not found is looked up again at most once a second: clients may ask for as many as they like that are
    not there.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._by_id: dict[int, Project] = {}
        self._by_account: dict[str, Project] = {}
        self._parents: dict[int, int | None] = {}
        self._lines: dict[int, tuple[int, ...]] = {}
        self._read_at = -_FRESH_SECONDS
        self._reading = Lock()

    def refresh(self) -> None:
        """Read all projects again."""
        found: list[Project] = []
        with self._store.reading() as reader:
            while page := reader.projects(ProjectQuery(), Page(PAGE_MAX, after=found[-1].id if found else None)):
                found += page
        self._by_id = {each.id: each for each in found}
        self._by_account = {each.account: each for each in found}
        self._parents = {each.id: each.parent for each in found}
        self._lines = {each.id: line_of(each.id, self._parents) for each in found}
        self._read_at = self._clock.now()

    def by_account(self, account: str) -> Project | None:
        self.look_for((account,))
        return self.known(account)

    def look_for(self, accounts: Collection[str]) -> None:
        """Read the projects again where that may tell more of these accounts than is in memory."""
        if self.knows(accounts):
            return
        with self._reading:  # whoever comes meanwhile waits for what is read, and need not read again
            if self._age() >= (_FRESH_SECONDS if self._has(accounts) else _MISSED_SECONDS):
                self.refresh()

    def knows(self, accounts: Collection[str]) -> bool:
        """Whether all these accounts are in memory, and were read lately."""
        return not self._stale() and self._has(accounts)

    def _has(self, accounts: Collection[str]) -> bool:
        return all(each in self._by_account for each in accounts)

    def known(self, account: str) -> Project | None:
        """As it was read last, with no look at the books."""
        return self._by_account.get(account)

    def by_id(self, number: int) -> Project:
        """Raises Unknown."""
        if number not in self._by_id or self._stale():
            self.refresh()
        found = self._by_id.get(number)
        if found is None:
            raise Unknown(f"there is no project {number}", field="project")
        return found

    def line(self, project: Project) -> tuple[int, ...]:
        """The project and the parents whose shared credit it may draw on, nearest first."""
        return self._lines.get(project.id) or line_of(project.id, self._parents)

    def _stale(self) -> bool:
        return self._age() >= _FRESH_SECONDS

    def _age(self) -> int:
        return self._clock.now() - self._read_at
