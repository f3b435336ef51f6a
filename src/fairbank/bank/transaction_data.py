"""Rows that a batch of requests reads and changes; the store loads, locks and writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec

from fairbank.bank.allocation import NO_LINK, Allocation
from fairbank.bank.entry import (
    EFFECTS,
    REGISTRY,
    Entry,
    Kind,
    facts_of,
    link_of,
    subject_of,
    undone_entry,
)
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.requests import SubmittedRequest, digest
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.cluster.job import Run
from fairbank.core.errors import Corrupt

Key = TypeVar("Key")
Row = TypeVar("Row")


class RegistryHead(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Place and link of the last entry of the registry, the journal of what has no allocation."""

    seq: int = 0
    link: bytes = NO_LINK


class RegistryNotLoaded(Exception):
    """The batch writes in the registry, which was not loaded: load it and apply the batch again."""


class LoadedEntries(NamedTuple):
    """Earlier entries that the rules of a batch read."""

    by_key: Iterable[Entry] = ()
    """First entries of requests whose idempotency keys the batch repeats."""
    of_runs: Iterable[Entry] = ()
    """Entries that set the rows of runs, for repeated reports, and entries to be undone."""
    undoing: Iterable[Entry] = ()
    """Entries that have undone an entry which the batch undoes."""
    of_terms: Iterable[Entry] = ()
    """All entries about the terms, cap or role that an undo of the batch changes."""
    moving: Iterable[tuple[int, Kind]] = ()
    """Kinds of entries that moved credit in allocations of which the batch needs to know it."""


class RegistryRows(NamedTuple):
    """Rows of projects, members and tokens that the rules of a batch read."""

    head: RegistryHead | None = None
    """None if no request of the batch is known to write in the registry."""
    projects: Iterable[Project] = ()
    members: Iterable[Member] = ()
    tokens: Iterable[Token] = ()
    held_runs: Iterable[tuple[int, Run]] = ()
    """Runs with an open hold, by project; only of projects that the batch removes."""
    used: Iterable[int] = ()
    """Projects that ever had an allocation or a run; only of those that change gid or account."""


class NewIds(NamedTuple):
    """Numbers for the rows that a batch may add."""

    entries: Iterable[int] = ()
    allocations: Iterable[int] = ()
    projects: Iterable[int] = ()
    tokens: Iterable[int] = ()


NO_ENTRIES, NO_REGISTRY_ROWS, NO_IDS = LoadedEntries(), RegistryRows(), NewIds()


class Changes:
    """Keys of the rows that are new, or that differ from the loaded ones.

    `amended` has the allocations as each change of terms left them, in that order: two periods of a
    project and resource overlap at no step.
    """

    def __init__(self) -> None:
        self.touched: set[int] = set()
        self.opened: set[int] = set()
        self.amended: list[Allocation] = []
        self.new_runs: set[Run] = set()
        self.changed_runs: set[Run] = set()
        self.changed_users: set[tuple[int, int]] = set()
        self.new_projects: set[int] = set()
        self.changed_projects: set[int] = set()
        self.changed_members: set[tuple[int, int]] = set()
        self.new_tokens: set[int] = set()
        self.changed_tokens: set[int] = set()


ZERO_SUMS = UserSums()

_replace = msgspec.structs.replace


class TransactionData:
    """Rows of a transaction by their keys, with the changes of the batch up to now applied.

    Its methods change rows and record each change for the store.

    Invariants: `entries` are the new entries in their order, and each of them is chained to the
    entry before it of its allocation or of the registry. The sums of an allocation are those of its
    last entry. `changes` names every row that differs from the loaded one. `_allocation_ids` has
    all loaded and new allocations by project and resource.
    """

    def __init__(
        self,
        allocations: Iterable[Allocation] = (),
        runs: Iterable[RunRecord] = (),
        users: Iterable[tuple[int, int, UserSums]] = (),
        loaded: LoadedEntries = NO_ENTRIES,
        registry: RegistryRows = NO_REGISTRY_ROWS,
        ids: NewIds = NO_IDS,
    ) -> None:
        self.entries: list[Entry] = []
        self.changes = Changes()
        self.allocations = {allocation.id: allocation for allocation in allocations}
        self.runs: dict[Run, RunRecord] = {record.reported.run: record for record in runs}
        self.users = {(allocation, uid): sums for allocation, uid, sums in users}
        self.keyed_entries = {
            (entry.actor, entry.key): entry for entry in loaded.by_key if entry.key is not None
        }
        self.run_entries = {entry.id: entry for entry in loaded.of_runs}
        self.undoing_entries = {undone_entry(entry): entry for entry in loaded.undoing}
        self._term_entries = {entry.id: entry for entry in loaded.of_terms}
        self._moving = tuple(loaded.moving)
        self.registry = registry.head
        self.projects = {project.id: project for project in registry.projects}
        self.members = {(member.project, member.uid): member for member in registry.members}
        self.tokens = {token.id: token for token in registry.tokens}
        self._held_runs, self._used = tuple(registry.held_runs), frozenset(registry.used)
        self.entry_ids, self.allocation_ids = iter(ids.entries), iter(ids.allocations)
        self.project_ids, self.token_ids = iter(ids.projects), iter(ids.tokens)
        self._allocation_ids: dict[tuple[int, str], list[int]] = {}
        for allocation in self.allocations.values():
            self._list_allocation(allocation)

    def _list_allocation(self, allocation: Allocation) -> None:
        place = allocation.terms.project, allocation.terms.resource
        self._allocation_ids.setdefault(place, []).append(allocation.id)

    def allocations_of(self, project: int, resource: str) -> list[Allocation]:
        """Return the project's own allocations of the resource, of any period and state."""
        numbers = self._allocation_ids.get((project, resource), ())
        return [self.allocations[number] for number in numbers]

    def candidates(self, chain: tuple[int, ...], resource: str, at: int) -> list[Allocation]:
        """Return the allocations that may pay for a run: the project's own, then shared of parents.

        Args:
            chain: project of the run, then its parents.
            resource: resource that the partition bills.
            at: start of the run.
        """
        return [
            allocation
            for project in chain
            for allocation in self.allocations_of(project, resource)
            if allocation.may_pay(chain[0], at)
        ]

    def projects_of(self, numbers: Iterable[int]) -> list[Project]:
        return [self.projects[number] for number in numbers if number in self.projects]

    def entry(self, number: int) -> Entry:
        """Return an entry that the row of a run names. Raises Corrupt if it does not exist."""
        entry = self.run_entries.get(number)
        if entry is None:
            raise Corrupt(
                f"entry {number}, which the row of a run names, is missing",
                remedy="fairbank audit verify",
            )
        return entry

    def entries_like(self, entry: Entry) -> list[Entry]:
        """Return all entries about the terms, cap or role that an entry changed, in their order.

        They are loaded only for an entry that the batch undoes.
        """
        about_same = [
            other
            for other in (*self._term_entries.values(), *self.entries)
            if subject_of(other) == subject_of(entry)
        ]
        if entry.kind is Kind.MEMBER:  # a user has a role in each project
            project = facts_of(entry)["project"]
            about_same = [other for other in about_same if facts_of(other)["project"] == project]
        return sorted(about_same, key=lambda entry: entry.seq)

    def kinds_moved(self, allocation: int) -> set[Kind]:
        """Return the kinds of entries that ever moved credit in an allocation.

        They are loaded only if the batch changes its category or resource, or removes it.
        """
        new = {entry.kind for entry in self.entries if entry.allocation == allocation}
        return {kind for of, kind in self._moving if of == allocation} | (new & EFFECTS.keys())

    def sums_of(self, allocation: int, uid: int) -> UserSums:
        """Return what a user was charged and holds, and the cap; zero for a user without a row."""
        return self.users.get((allocation, uid), ZERO_SUMS)

    def held_run_of(self, project: int) -> Run | None:
        """Return a run of the project with an open hold, in any allocation.

        Such runs are loaded only for a project that the batch removes.
        """
        loaded = (run for of, run in self._held_runs if of == project and run not in self.runs)
        changed = (
            run
            for run, record in self.runs.items()
            if record.reported.project == project and record.state is RunState.HELD
        )
        return next(loaded, None) or next(changed, None)

    def is_used(self, project: int) -> bool:
        """Return whether the project ever had an allocation or a run.

        This is loaded only for a project whose gid or account the batch changes.
        """
        return (
            project in self._used
            or any(allocation.terms.project == project for allocation in self.allocations.values())
            or any(record.reported.project == project for record in self.runs.values())
        )

    def post(
        self,
        submitted: SubmittedRequest,
        kind: Kind,
        amount: int,
        allocation: Allocation | None,
        *,
        run: int | None = None,
        owner: int | None = None,
        details: str | None = None,
        number: int | None = None,
    ) -> Entry:
        """Add an entry, chained to the one before it.

        The first entry of a request has the request's key and its digest.

        Args:
            submitted: request that the entry results from.
            amount: units that the entry moves, in SU-minutes.
            allocation: with its new sums, but with `seq` and `link` of the entry before; None adds
                the entry to the registry.
            run: row id of the run.
            owner: owner of the run, or the user concerned.
            details: JSON object.
            number: id of the entry, if it was taken from `next_entry_id` before.

        Raises:
            RegistryNotLoaded: the head of the registry was not loaded.
        """
        request = submitted.request
        first = request.key is None or (submitted.actor, request.key) not in self.keyed_entries
        key = request.key if first else None
        is_identified = first and (key is not None or submitted.report_digest is not None)
        allocation_id, seq, before, sums = self._head_of(allocation)
        # By position: msgspec takes ten times as long to sort twenty keyword arguments.
        unlinked = Entry(
            self.next_entry_id() if number is None else number,
            allocation_id,
            seq,
            submitted.at,
            kind,
            amount,
            run,
            owner,
            submitted.actor,
            submitted.acting_as,
            key,
            digest(submitted) if is_identified else None,
            *sums,
            request.comment,
            details,
            before,
        )
        entry = _replace(unlinked, link=link_of(unlinked, before))
        self._record(entry, allocation)
        return entry

    def _record(self, entry: Entry, allocation: Allocation | None) -> None:
        """Add an entry and make it the last one of its journal."""
        self.entries.append(entry)
        self.run_entries[entry.id] = entry
        if entry.key is not None:
            self.keyed_entries[entry.actor, entry.key] = entry
        if allocation is None:
            self.registry = RegistryHead(entry.seq, entry.link)
            return
        after = _replace(allocation, seq=entry.seq, link=entry.link)
        if entry.kind is Kind.TERMS:
            self.changes.amended.append(after)
            before = self.allocations[after.id]
            if before.terms.resource != after.terms.resource:
                self._allocation_ids[before.terms.project, before.terms.resource].remove(after.id)
                self._list_allocation(after)
        self.allocations[after.id] = after
        self.changes.touched.add(after.id)

    def _head_of(
        self, allocation: Allocation | None
    ) -> tuple[int, int, bytes, tuple[int, int, int, int, int]]:
        """Return allocation, place, link before and sums of an entry. Raises RegistryNotLoaded."""
        if allocation is None:
            if self.registry is None:
                raise RegistryNotLoaded
            return REGISTRY, self.registry.seq + 1, self.registry.link, (0, 0, 0, 0, 0)
        sums = (
            allocation.deposited,
            allocation.charged,
            allocation.held,
            allocation.terms.credit_limit,
            allocation.overrun,
        )
        return allocation.id, allocation.seq + 1, allocation.link, sums

    def undo(self, undone: int, entry: Entry) -> Entry:
        """Record that a new entry undoes an earlier one, so that the batch undoes it only once."""
        self.undoing_entries[undone] = entry
        return entry

    def next_entry_id(self) -> int:
        """Return the next entry id; taken before the entry is made if its run needs the id too."""
        return next(self.entry_ids)

    def open(self, allocation: Allocation) -> None:
        """Add a new allocation, so that later requests of the batch see it."""
        self.allocations[allocation.id] = allocation
        self._list_allocation(allocation)
        self.changes.opened.add(allocation.id)

    def put_run(self, record: RunRecord) -> None:
        """Add a run or replace it."""
        run, changes = record.reported.run, self.changes
        _put(self.runs, run, record, changes.new_runs, changes.changed_runs)

    def put_user(self, allocation: int, uid: int, sums: UserSums) -> None:
        """Set the sums and the cap of a user in an allocation.

        Args:
            allocation: id of the allocation.
            uid: number of the user.
            sums: new charges, holds and cap, which replace the known ones.
        """
        self.users[allocation, uid] = sums
        self.changes.changed_users.add((allocation, uid))

    def put_project(self, project: Project) -> None:
        """Add a project or replace it."""
        new, changed = self.changes.new_projects, self.changes.changed_projects
        _put(self.projects, project.id, project, new, changed)

    def put_member(self, project: int, uid: int, role: Role | None) -> None:
        """Set the role of a member.

        Args:
            project: id of the project.
            uid: number of the user.
            role: new role; None removes the member.
        """
        if role is None:
            self.members.pop((project, uid), None)
        else:
            self.members[project, uid] = Member(project, uid, role)
        self.changes.changed_members.add((project, uid))

    def put_token(self, token: Token) -> None:
        """Add a token or replace it."""
        new, changed = self.changes.new_tokens, self.changes.changed_tokens
        _put(self.tokens, token.id, token, new, changed)


def _put(rows: dict[Key, Row], key: Key, row: Row, new: set[Key], changed: set[Key]) -> None:
    """Set a row and record whether it is new or changed; a new row stays new."""
    if key not in rows:
        new.add(key)
    elif key not in new:
        changed.add(key)
    rows[key] = row
