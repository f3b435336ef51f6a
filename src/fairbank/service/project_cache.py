"""Cache of all projects. They are few, read with every report, and seldom changed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from fairbank.bank.project import Project, project_chain
from fairbank.bank.query import PAGE_MAX, Page, ProjectQuery
from fairbank.core.errors import NotFound
from fairbank.store.contract import Store

_TTL_SECONDS = 5
"""Time in which a change by another server, or a restored backup, may go unnoticed."""

_MISS_TTL_SECONDS = 1
"""Time in which a project that another server created may be unknown here."""


@dataclass(frozen=True)
class _Projects:
    """All projects as of one reading, which began at the monotonic time `read_at`."""

    by_id: Mapping[int, Project]
    by_account: Mapping[str, Project]
    chains: Mapping[int, tuple[int, ...]]
    read_at: float


def _index(projects: Iterable[Project], read_at: float) -> _Projects:
    by_id = {project.id: project for project in projects}
    parents = {project.id: project.parent for project in by_id.values()}
    return _Projects(
        by_id,
        {project.account: project for project in by_id.values()},
        {number: project_chain(number, parents) for number in by_id},
        read_at,
    )


class ProjectCache:
    """Projects by number and by account, for use from many threads.

    Invariant: `_projects` is immutable and replaced as a whole, so readers need no lock. `_lock`
    is held while the store is read: threads that miss at the same time wait for one reading.

    An account that is not found is read again at most once a second, because clients may send any
    account. A number comes from a row of the store or from staff; one that is not found was
    created by another server just now, and is read at once.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store, self._monotonic = store, monotonic
        self._projects = _index((), -math.inf)
        self._lock = Lock()

    def refresh(self) -> None:
        """Read all projects again."""
        with self._lock:
            self._read()

    def by_account(self, account: str) -> Project | None:
        """Return the project of an account, from the store if needed."""
        self.load((account,))
        return self.cached(account)

    def load(self, accounts: Collection[str]) -> None:
        """Read the projects again if the cache is too old to answer for these accounts."""
        if self.has_fresh(accounts):
            return
        with self._lock:
            # Check again under the lock: another thread may have read meanwhile.
            if self._age() >= (_TTL_SECONDS if self._has(accounts) else _MISS_TTL_SECONDS):
                self._read()

    def has_fresh(self, accounts: Collection[str]) -> bool:
        """Return True if all these accounts are in the cache and it is not stale."""
        return not self._is_stale() and self._has(accounts)

    def cached(self, account: str) -> Project | None:
        """Return the project of an account from the cache only."""
        return self._projects.by_account.get(account)

    def by_id(self, number: int) -> Project:
        """Return a project, from the store if needed. Raises NotFound."""
        if number not in self._projects.by_id or self._is_stale():
            with self._lock:
                if number not in self._projects.by_id or self._is_stale():
                    self._read()
        project = self._projects.by_id.get(number)
        if project is None:
            raise NotFound(
                f"there is no project {number} that you may see",
                field="project",
                remedy="list them: fairbank project list",
            )
        return project

    def project_chain(self, project: Project) -> tuple[int, ...]:
        """Return the project and the parents whose shared credit it may use, nearest first."""
        return self._projects.chains.get(project.id) or (project.id,)

    def _has(self, accounts: Collection[str]) -> bool:
        by_account = self._projects.by_account
        return all(account in by_account for account in accounts)

    def _read(self) -> None:
        """Read all projects. The caller holds the lock.

        The age counts from the beginning of the reading: a project that is created during the
        reading may be missed.
        """
        began = self._monotonic()
        projects: list[Project] = []
        with self._store.reading() as reader:
            while page := reader.projects(
                ProjectQuery(), Page(PAGE_MAX, after=projects[-1].id if projects else None)
            ):
                projects += page
        self._projects = _index(projects, began)

    def _is_stale(self) -> bool:
        return self._age() >= _TTL_SECONDS

    def _age(self) -> float:
        return self._monotonic() - self._projects.read_at
