"""Tables in memory: dictionaries, and the changes of one batch."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, tells_of, undone_by
from fairbank.bank.needs import Needs, told_by
from fairbank.bank.project import Member, Project, with_all_above
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.bank.working_set import Office, WorkingSet
from fairbank.cluster.job import Run
from fairbank.cluster.share_record import ShareKey, ShareRecord, share_key


class MemoryTables:
    """All rows. While `readers` is not 0 a writer changes a copy, so readers keep their view."""

    def __init__(self) -> None:
        self.readers = 0
        self.projects: dict[int, Project] = {}
        self.members: dict[tuple[int, int], Member] = {}
        self.allocations: dict[int, Allocation] = {}
        self.funds: dict[tuple[int, str], list[int]] = {}
        self.users: dict[tuple[int, int], UserSums] = {}
        self.runs: dict[Run, RunRecord] = {}
        self.entries: dict[int, Entry] = {}
        self.books: dict[int, list[Entry]] = {}
        self.keys: dict[tuple[int, str], Entry] = {}
        self.tokens: dict[int, Token] = {}
        self.shares: dict[ShareKey, ShareRecord] = {}
        self.office = Office()
        self.last_entry = 0

    def copy(self) -> MemoryTables:
        """Return a copy with the same rows."""
        twin = MemoryTables()
        twin.projects, twin.members, twin.allocations = (
            self.projects.copy(),
            self.members.copy(),
            self.allocations.copy(),
        )
        twin.users, twin.runs, twin.entries = (
            self.users.copy(),
            self.runs.copy(),
            self.entries.copy(),
        )
        twin.keys, twin.tokens = self.keys.copy(), self.tokens.copy()
        twin.shares = self.shares.copy()
        twin.funds = {fund: numbers.copy() for fund, numbers in self.funds.items()}
        twin.books = {book: entries.copy() for book, entries in self.books.items()}
        twin.office, twin.last_entry = self.office, self.last_entry
        return twin

    def load(self, needs: Needs) -> WorkingSet:
        """Return the rows that a batch needs."""
        runs = [self.runs[run] for run in needs.runs if run in self.runs]
        numbers = needs.allocations.union(each.allocation for each in runs)
        for project, resource, reach in needs.reaches({each.run for each in runs}):
            numbers.update(
                number
                for number in self.funds.get((project, resource), ())
                if reach.has(self.allocations[number])
            )
        if needs.closing:
            numbers.update(
                number for number, each in self.allocations.items() if each.project in needs.closing
            )
        allocations = [
            self.allocations[number] for number in sorted(numbers) if number in self.allocations
        ]
        pairs = needs.caps | {(each.allocation, each.owner) for each in runs}
        for each in allocations:
            pairs |= {
                (each.id, owner) for owner in needs.owners.get((each.project, each.resource), ())
            }
        return WorkingSet(
            allocations=allocations,
            runs=runs,
            users=((*pair, self.users[pair]) for pair in pairs if pair in self.users),
            known=(self.keys[key] for key in needs.keys if key in self.keys),
            told=(
                self.entries[number] for number in told_by(needs, runs) if number in self.entries
            ),
            undoing=self._undoing(needs),
            words=self._words(needs),
            projects=self._projects(needs),
            held_runs=self._held_runs(needs),
            used=self._used(needs),
            members=(self.members[pair] for pair in needs.members if pair in self.members),
            tokens=self._tokens(needs),
            office=self.office if needs.office else None,
            entry_ids=count(self.last_entry + 1),
            allocation_ids=count(max(self.allocations, default=0) + 1) if needs.opens else (),
            project_ids=count(max(self.projects, default=0) + 1) if needs.creates else (),
            token_ids=count(max(self.tokens, default=0) + 1) if needs.issues else (),
        )

    def apply(self, work: WorkingSet) -> None:
        """Apply the changes of a batch."""
        changes = work.changes
        self.add_projects(
            work.projects[number] for number in changes.new_projects | changes.changed_projects
        )
        for pair in changes.changed_members:
            self.members.pop(pair, None)
        self.add_members(
            work.members[pair] for pair in changes.changed_members if pair in work.members
        )
        self.tokens.update(
            (number, work.tokens[number]) for number in changes.new_tokens | changes.changed_tokens
        )
        self.add_allocations(work.allocations[number] for number in changes.touched)
        self.users.update((pair, work.users[pair]) for pair in changes.changed_users)
        self.runs.update((run, work.runs[run]) for run in changes.new_runs | changes.changed_runs)
        self.add_entries(work.entries)
        if work.office is not None:
            self.office = work.office

    def add_projects(self, rows: Iterable[Project]) -> None:
        self.projects.update((each.id, each) for each in rows)

    def add_members(self, rows: Iterable[Member]) -> None:
        self.members.update(((each.project, each.uid), each) for each in rows)

    def add_allocations(self, rows: Iterable[Allocation]) -> None:
        for each in rows:
            if each.id not in self.allocations:
                self.funds.setdefault((each.project, each.resource), []).append(each.id)
            self.allocations[each.id] = each

    def add_entries(self, rows: Iterable[Entry]) -> None:
        for each in rows:
            self.entries[each.id] = each
            self.last_entry = max(self.last_entry, each.id)
            self.books.setdefault(each.book, []).append(each)
            if each.key is not None:
                self.keys[each.actor, each.key] = each

    def add_shares(self, rows: Iterable[ShareRecord]) -> None:
        for each in rows:
            self.shares[share_key(each)] = each

    def _undoing(self, needs: Needs) -> Iterable[Entry]:
        books = {self.entries[number].book for number in needs.undone if number in self.entries}
        return (
            each
            for book in sorted(books)
            for each in self.books[book]
            if undone_by(each) in needs.undone
        )

    def _words(self, needs: Needs) -> list[Entry]:
        books = sorted({book for book, _ in needs.reworded if book in self.books})
        return [
            each for book in books for each in self.books[book] if tells_of(each) in needs.reworded
        ]

    def _projects(self, needs: Needs) -> list[Project]:
        gnames = {each.gname for each in needs.creating}
        gids = {each.gid for each in needs.creating}
        accounts = {each.account for each in needs.creating}
        wanted = needs.projects | {
            self.allocations[each].project for each in needs.enriched if each in self.allocations
        }
        if needs.closing:
            wanted |= {
                number
                for number, each in self.projects.items()
                if each.parent in needs.closing and not each.removed
            }
        if not needs.creating:
            return [self.projects[number] for number in sorted(wanted) if number in self.projects]
        found = [
            each
            for number, each in sorted(self.projects.items())
            if number in wanted
            or each.gname in gnames
            or each.gid in gids
            or each.account in accounts
        ]
        if not needs.lines:
            return found
        return with_all_above(
            found,
            lambda numbers: (
                self.projects[number] for number in numbers if number in self.projects
            ),
        )

    def _held_runs(self, needs: Needs) -> list[tuple[int, Run]]:
        if not needs.closing:
            return []
        return [
            (each.project, each.run)
            for each in self.runs.values()
            if each.project in needs.closing and each.state is RunState.HELD
        ]

    def _used(self, needs: Needs) -> set[int]:
        if not needs.renaming:
            return set()
        return needs.renaming & {
            each.project for rows in (self.allocations, self.runs) for each in rows.values()
        }

    def _tokens(self, needs: Needs) -> list[Token]:
        if not needs.tokens and not needs.digests:
            return []
        return [
            each
            for number, each in sorted(self.tokens.items())
            if number in needs.tokens or each.digest in needs.digests
        ]
