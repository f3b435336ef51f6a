"""The directory of projects: few, much asked for, seldom changed; so they are kept in memory and looked up again on a miss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from fairbank.bank.project import Project, line_of
from fairbank.bank.query import PAGE_MAX, Page, ProjectQuery
from fairbank.core.errors import Unknown
from fairbank.store.contract import Store

_TTL_SECONDS = 5  # how long it may go unnoticed that another server changed or removed a project, or that a backup replaced the books
_MISS_TTL_SECONDS = 1  # how long a project that another server has just entered may be unknown here


@dataclass(frozen=True)
class _Projects:
    """All projects as they were read at one time; `read_at` is the tick at which the reading began."""

    by_id: Mapping[int, Project]
    by_account: Mapping[str, Project]
    chains: Mapping[int, tuple[int, ...]]
    read_at: float


def _index(found: Iterable[Project], read_at: float) -> _Projects:
    by_id = {each.id: each for each in found}
    parents = {each.id: each.parent for each in by_id.values()}
    return _Projects(
        by_id,
        {each.account: each for each in by_id.values()},
        {number: line_of(number, parents) for number in by_id},
        read_at,
    )


class ProjectCache:
    """Projects by number and by account. Safe to use from many threads: a refresh replaces everything in one assignment.

    An account that is not found is looked up again at most once a second: clients may ask for as many as they like that are
    not there. Numbers come from rows of the books, or from staff; so one that is not found has just been entered by another
    server, and is looked up at once.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float] = time.monotonic) -> None:
        """`ticks` are seconds by a clock that nobody sets: set back, it would keep what is old for fresh."""
        self._store, self._monotonic = store, monotonic
        self._projects = _index((), -math.inf)
        self._lock = Lock()

    def refresh(self) -> None:
        """Read all projects again."""
        with self._lock:
            self._read()

    def by_account(self, account: str) -> Project | None:
        self.load((account,))
        return self.cached(account)

    def load(self, accounts: Collection[str]) -> None:
        """Read the projects again where that may tell more of these accounts than is in memory."""
        if self.has_fresh(accounts):
            return
        with self._lock:  # whoever comes meanwhile waits for what is read, and need not read again
            if self._age() >= (_TTL_SECONDS if self._has(accounts) else _MISS_TTL_SECONDS):
                self._read()

    def has_fresh(self, accounts: Collection[str]) -> bool:
        """Whether all these accounts are in memory, and were read lately."""
        return not self._stale() and self._has(accounts)

    def cached(self, account: str) -> Project | None:
        """As it was read last, with no look at the books."""
        return self._projects.by_account.get(account)

    def by_id(self, number: int) -> Project:
        """Raises Unknown."""
        if number not in self._projects.by_id or self._stale():
            with self._lock:  # as above
                if number not in self._projects.by_id or self._stale():
                    self._read()
        found = self._projects.by_id.get(number)
        if found is None:
            raise Unknown(
                f"there is no project {number}",
                field="project",
                remedy="list those there are: fairbank project list",
            )
        return found

    def project_chain(self, project: Project) -> tuple[int, ...]:
        """The project and the parents whose shared credit it may draw on, nearest first."""
        return self._projects.chains.get(project.id) or (project.id,)

    def _has(self, accounts: Collection[str]) -> bool:
        by_account = self._projects.by_account
        return all(each in by_account for each in accounts)

    def _read(self) -> None:
        """Under the lock. What is entered while the reading goes on may be missed, so the age counts from its beginning."""
        began = self._monotonic()
        found: list[Project] = []
        with self._store.reading() as reader:
            while page := reader.projects(
                ProjectQuery(), Page(PAGE_MAX, after=found[-1].id if found else None)
            ):
                found += page
        self._projects = _index(found, began)

    def _stale(self) -> bool:
        return self._age() >= _TTL_SECONDS

    def _age(self) -> float:
        return self._monotonic() - self._projects.read_at
