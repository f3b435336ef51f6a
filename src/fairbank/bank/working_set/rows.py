"""The rows that a batch of wishes needs, as the store loaded them and as they are after the changes."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind, facts_of, tells_of, undone_by
from fairbank.bank.project import Member, Project
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.bank.working_set.changes import Changes, Office
from fairbank.cluster.job import Run
from fairbank.core.errors import Corrupt

NOBODY = UserSums()

_HELD = RunState.HELD
_SEQ = attrgetter("seq")


class Rows:
    """Rows by their keys, as they are after the changes, and what the ledger asks of them.

    `entries` are those that were written since, in their order, and `changes` says which rows are others than were loaded.
    """

    def __init__(
        self,
        allocations: Iterable[Allocation] = (),
        runs: Iterable[RunRecord] = (),
        users: Iterable[tuple[int, int, UserSums]] = (),
        known: Iterable[Entry] = (),
        told: Iterable[Entry] = (),
        undoing: Iterable[Entry] = (),
        words: Iterable[Entry] = (),
        projects: Iterable[Project] = (),
        held_runs: Iterable[tuple[int, Run]] = (),
        used: Iterable[int] = (),
        members: Iterable[Member] = (),
        tokens: Iterable[Token] = (),
        office: Office | None = None,
        entry_ids: Iterable[int] = (),
        allocation_ids: Iterable[int] = (),
        project_ids: Iterable[int] = (),
        token_ids: Iterable[int] = (),
    ) -> None:
        self.entries: list[Entry] = []
        self.changes = Changes()
        self.allocations = {each.id: each for each in allocations}
        self.runs: dict[Run, RunRecord] = {each.run: each for each in runs}
        self.users = {(allocation, uid): sums for allocation, uid, sums in users}
        self.known = {(each.actor, each.key): each for each in known if each.key is not None}
        self.told = {each.id: each for each in told}
        self.undoing = {undone_by(each): each for each in undoing}
        self._words = {each.id: each for each in words}
        self.projects = {each.id: each for each in projects}
        self._held_runs, self._used = tuple(held_runs), frozenset(used)
        self.members = {(each.project, each.uid): each for each in members}
        self.tokens = {each.id: each for each in tokens}
        self.office = office
        self.entry_ids, self.allocation_ids = iter(entry_ids), iter(allocation_ids)
        self.project_ids, self.token_ids = iter(project_ids), iter(token_ids)
        self._by_fund: dict[tuple[int, str], list[int]] = {}
        for each in self.allocations.values():
            self._by_fund.setdefault((each.project, each.resource), []).append(each.id)

    def funds(self, project: int, resource: str) -> list[Allocation]:
        """The project's own allocations of the resource, whatever their period and state."""
        return [self.allocations[number] for number in self._by_fund.get((project, resource), ())]

    def candidates(self, line: tuple[int, ...], resource: str, at: int) -> list[Allocation]:
        """The allocations that a run of `line[0]` starting at `at` may draw on: its own, then shared ones of its parents.

        The period alone says which: one that has ended since still pays for a run that started in time and is reported late.
        """
        return [
            each
            for project in line
            for number in self._by_fund.get((project, resource), ())
            if (each := self.allocations[number]).pays_at(at)
            and (project == line[0] or each.shared)
        ]

    def projects_of(self, numbers: Iterable[int]) -> list[Project]:
        return [self.projects[number] for number in numbers if number in self.projects]

    def entry(self, number: int) -> Entry:
        """An entry that a run's row names. Raises Corrupt when there is none."""
        found = self.told.get(number)
        if found is None:
            raise Corrupt(
                f"entry {number}, which the row of a run names, is missing",
                remedy="fairbank audit verify",
            )
        return found

    def words_like(self, entry: Entry) -> list[Entry]:
        """All that was ever said of the terms, cap or role that `entry` is about, in its order; loaded where that is to be undone."""
        said = [
            each
            for each in (*self._words.values(), *self.entries)
            if tells_of(each) == tells_of(entry)
        ]
        if entry.kind is Kind.MEMBER:  # a user has a role in each project
            said = [
                each for each in said if facts_of(each)["project"] == facts_of(entry)["project"]
            ]
        return sorted(said, key=_SEQ)

    def sums_of(self, allocation: int, uid: int) -> UserSums:
        """What a user drew, and the cap; nothing and none for somebody who never drew."""
        return self.users.get((allocation, uid), NOBODY)

    def held_run_of(self, project: int) -> Run | None:
        """A run of the project with an open hold, wherever it is held; loaded where the project is to be removed."""
        loaded = (run for of, run in self._held_runs if of == project and run not in self.runs)
        return next(loaded, None) or next(
            (
                run
                for run, each in self.runs.items()
                if each.project == project and each.state is _HELD
            ),
            None,
        )

    def is_used(self, project: int) -> bool:
        """Whether the project has, or had, an allocation or a run; loaded where its gid or account is to change."""
        return project in self._used or any(
            each.project == project
            for rows in (self.allocations, self.runs)
            for each in rows.values()
        )
