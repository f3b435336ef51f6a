"""Tables in memory: dictionaries, and the changes of one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from operator import attrgetter
from typing import Any

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import EFFECTS, Entry, subject_of, undone_entry
from fairbank.bank.lock_set import LockSet, entries_of_runs
from fairbank.bank.project import Member, Project, with_all_above
from fairbank.bank.query import UserRow
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import (
    LoadedEntries,
    NewIds,
    RegistryHead,
    RegistryRows,
    TransactionData,
)
from fairbank.cluster.job import Run
from fairbank.cluster.share import ShareKey, ShareRecord, share_key


class MemoryTables:
    """All rows. While `readers` is not 0 a writer changes a copy, so readers keep their view."""

    def __init__(self) -> None:
        self.readers = 0
        self.projects: dict[int, Project] = {}
        self.members: dict[tuple[int, int], Member] = {}
        self.allocations: dict[int, Allocation] = {}
        self.by_project: dict[tuple[int, str], list[int]] = {}
        self.users: dict[tuple[int, int], UserSums] = {}
        self.runs: dict[Run, RunRecord] = {}
        self.entries: dict[int, Entry] = {}
        self.journals: dict[int, list[Entry]] = {}
        self.keys: dict[tuple[int, str], Entry] = {}
        self.tokens: dict[int, Token] = {}
        self.shares: dict[ShareKey, ShareRecord] = {}
        self.registry = RegistryHead()
        self.last_entry = 0

    def copy(self) -> MemoryTables:
        """Return a copy with the same rows."""
        twin = MemoryTables()
        twin.__dict__.update(
            (name, table.copy() if isinstance(table, dict) else table)
            for name, table in vars(self).items()
        )
        twin.readers = 0
        twin.by_project = {key: numbers.copy() for key, numbers in self.by_project.items()}
        twin.journals = {number: entries.copy() for number, entries in self.journals.items()}
        return twin

    def load(self, locks: LockSet) -> TransactionData:
        """Return the rows that a batch with these locks reads and changes."""
        runs = [self.runs[run] for run in locks.runs if run in self.runs]
        allocations = self._allocations(locks, runs)
        pairs = locks.caps | {(run.allocation, run.owner) for run in runs}
        for allocation in allocations:
            place = allocation.terms.project, allocation.terms.resource
            pairs |= {(allocation.id, owner) for owner in locks.owners.get(place, ())}
        return TransactionData(
            allocations=allocations,
            runs=runs,
            users=((*pair, self.users[pair]) for pair in pairs if pair in self.users),
            loaded=LoadedEntries(
                by_key=(self.keys[key] for key in locks.keys if key in self.keys),
                of_runs=(
                    self.entries[number]
                    for number in entries_of_runs(locks, runs)
                    if number in self.entries
                ),
                undoing=self._undoing(locks),
                of_terms=self._words(locks),
                moving={
                    (number, entry.kind)
                    for number in locks.relabelling
                    for entry in self.journals.get(number, ())
                    if entry.kind in EFFECTS
                },
            ),
            registry=RegistryRows(
                head=self.registry if locks.registry else None,
                projects=self._projects(locks),
                members=(self.members[pair] for pair in locks.members if pair in self.members),
                tokens=self._tokens(locks),
                held_runs=self._held_runs(locks),
                used=self._used(locks),
            ),
            ids=NewIds(
                entries=count(self.last_entry + 1),
                allocations=count(max(self.allocations, default=0) + 1) if locks.opens else (),
                projects=count(max(self.projects, default=0) + 1) if locks.creates else (),
                tokens=count(max(self.tokens, default=0) + 1) if locks.issues else (),
            ),
        )

    def _allocations(self, locks: LockSet, runs: Sequence[RunRecord]) -> list[Allocation]:
        """Return the allocations that a transaction may change, by their numbers."""
        numbers = locks.allocations.union(run.allocation for run in runs)
        for project, resource, reach in locks.filters({record.reported.run for record in runs}):
            numbers.update(
                number
                for number in self.by_project.get((project, resource), ())
                if reach.has(self.allocations[number])
            )
        if locks.closing:
            numbers.update(
                number
                for number, allocation in self.allocations.items()
                if allocation.terms.project in locks.closing
            )
        return [
            self.allocations[number] for number in sorted(numbers) if number in self.allocations
        ]

    def apply(self, data: TransactionData) -> None:
        """Apply the changes of a batch."""
        changes = data.changes
        for number in changes.new_projects | changes.changed_projects:
            self.projects[number] = data.projects[number]
        for pair in changes.changed_members:
            self.members.pop(pair, None)
            if pair in data.members:
                self.members[pair] = data.members[pair]
        for number in changes.new_tokens | changes.changed_tokens:
            self.tokens[number] = data.tokens[number]
        self._add_allocations(data.allocations[number] for number in changes.touched)
        self.users.update((pair, data.users[pair]) for pair in changes.changed_users)
        self.runs.update((run, data.runs[run]) for run in changes.new_runs | changes.changed_runs)
        self._add_entries(data.entries)
        if data.registry is not None:
            self.registry = data.registry

    def insert(self, kind: type, rows: Iterable[Any]) -> None:
        """Insert rows of one of the kinds that `Reader.scan` yields."""
        if kind is Allocation:
            self._add_allocations(rows)
        elif kind is Entry:
            self._add_entries(rows)
        elif kind is UserRow:
            self.users.update(((user.allocation, user.uid), user.sums) for user in rows)
        else:
            tables: dict[type, tuple[dict[Any, Any], Callable[[Any], Any]]] = {
                Project: (self.projects, attrgetter("id")),
                Member: (self.members, attrgetter("project", "uid")),
                RunRecord: (self.runs, attrgetter("reported.run")),
                Token: (self.tokens, attrgetter("id")),
                ShareRecord: (self.shares, share_key),
            }
            table, key = tables[kind]
            table.update((key(row), row) for row in rows)

    def user_rows(self) -> Iterator[UserRow]:
        """Yield the sums of the users as rows."""
        return (UserRow(*pair, sums) for pair, sums in self.users.items())

    def _add_allocations(self, rows: Iterable[Allocation]) -> None:
        for allocation in rows:
            before = self.allocations.get(allocation.id)
            if before is not None and before.terms.resource != allocation.terms.resource:
                self.by_project[before.terms.project, before.terms.resource].remove(allocation.id)
                before = None
            if before is None:
                place = allocation.terms.project, allocation.terms.resource
                self.by_project.setdefault(place, []).append(allocation.id)
            self.allocations[allocation.id] = allocation

    def _add_entries(self, rows: Iterable[Entry]) -> None:
        for entry in rows:
            self.entries[entry.id] = entry
            self.last_entry = max(self.last_entry, entry.id)
            self.journals.setdefault(entry.allocation, []).append(entry)
            if entry.key is not None:
                self.keys[entry.actor, entry.key] = entry

    def _undoing(self, locks: LockSet) -> Iterable[Entry]:
        allocations = {
            self.entries[number].allocation for number in locks.undone if number in self.entries
        }
        return (
            entry
            for number in sorted(allocations)
            for entry in self.journals[number]
            if undone_entry(entry) in locks.undone
        )

    def _words(self, locks: LockSet) -> list[Entry]:
        numbers = sorted({number for number, _ in locks.subjects if number in self.journals})
        return [
            entry
            for number in numbers
            for entry in self.journals[number]
            if subject_of(entry) in locks.subjects
        ]

    def _projects(self, locks: LockSet) -> list[Project]:
        wanted = locks.projects | {
            self.allocations[credited].terms.project
            for credited in locks.credited
            if credited in self.allocations
        }
        if locks.closing:
            wanted |= {
                number
                for number, project in self.projects.items()
                if project.parent in locks.closing and not project.removed
            }
        if not locks.creating:
            return [self.projects[number] for number in sorted(wanted) if number in self.projects]
        gnames = {request.gname for request in locks.creating}
        gids = {request.gid for request in locks.creating}
        accounts = {request.account for request in locks.creating}
        projects = [
            project
            for number, project in sorted(self.projects.items())
            if number in wanted
            or project.gname in gnames
            or project.gid in gids
            or project.account in accounts
        ]
        if not locks.with_parents:
            return projects
        return with_all_above(
            projects,
            lambda numbers: (
                self.projects[number] for number in numbers if number in self.projects
            ),
        )

    def _held_runs(self, locks: LockSet) -> list[tuple[int, Run]]:
        if not locks.closing:
            return []
        return [
            (record.reported.project, run)
            for run, record in self.runs.items()
            if record.reported.project in locks.closing and record.state is RunState.HELD
        ]

    def _used(self, locks: LockSet) -> set[int]:
        if not locks.renaming:
            return set()
        used = {allocation.terms.project for allocation in self.allocations.values()}
        return locks.renaming & (used | {record.reported.project for record in self.runs.values()})

    def _tokens(self, locks: LockSet) -> list[Token]:
        if not locks.tokens and not locks.digests:
            return []
        return [
            token
            for number, token in sorted(self.tokens.items())
            if number in locks.tokens or token.digest in locks.digests
        ]
