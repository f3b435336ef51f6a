"""Which rows judging a batch changed, for the store to write."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from fairbank.bank.allocation import NO_LINK, Allocation
from fairbank.bank.entry import REGISTRY, Entry, Kind, facts_of, link_of, tells_of, undone_by
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.requests import SubmittedRequest, digest
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.cluster.job import Run
from fairbank.core.errors import Corrupt


class RegistryHead(msgspec.Struct, frozen=True):
    """The head of book 0."""

    seq: int = 0
    link: bytes = NO_LINK


class RegistryNotLoaded(Exception):
    """The batch wants to write in the registry, which was not loaded: load it and judge again."""


class Changes:
    """Which rows are new, or other than they were loaded, by their keys.

    `amended` has the allocations as each change of terms left them, in that order: at no step do two periods overlap.
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
        registry: RegistryHead | None = None,
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
        self.registry = registry
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


_TERMS = Kind.TERMS  # looked up once: `_add` is called for each entry
_replace = msgspec.structs.replace


class TransactionData(Rows):
    """Rows that judging changes, each change noted for the store."""

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
        """Add an entry to the book of `allocation` as it is to be after the entry (None: to the registry's), and chain it.

        The caller has put the new sums into `allocation`; its `seq` and `link` still are those of the entry before.
        The first entry of a request carries the request's key and its fingerprint. Raises RegistryNotLoaded.
        """
        request = submitted.request
        first = request.key is None or (submitted.actor, request.key) not in self.known
        key = request.key if first else None
        book, seq, before, sums = self._head_of(allocation)
        unlinked = Entry(  # by position: to sort out twenty names takes msgspec ten times as long
            self.next_entry_id() if number is None else number,
            book,
            seq,
            submitted.at,
            kind,
            amount,
            run,
            owner,
            submitted.actor,
            submitted.acting_as,
            key,
            digest(submitted)
            if first and (key is not None or submitted.said is not None)
            else None,
            *sums,
            request.comment,
            details,
            before,
        )
        return self._add(_replace(unlinked, link=link_of(unlinked, before)), allocation)

    def _head_of(
        self, allocation: Allocation | None
    ) -> tuple[int, int, bytes, tuple[int, int, int, int, int]]:
        """Of the entry to be: its book, its place there, the link before it, and the sums after it. Raises RegistryNotLoaded."""
        if allocation is not None:
            each = allocation
            return (
                each.id,
                each.seq + 1,
                each.link,
                (each.deposited, each.charged, each.held, each.credit_limit, each.overrun),
            )
        if self.registry is None:
            raise RegistryNotLoaded
        return REGISTRY, self.registry.seq + 1, self.registry.link, (0, 0, 0, 0, 0)

    def _add(self, entry: Entry, allocation: Allocation | None) -> Entry:
        self.entries.append(entry)
        self.told[entry.id] = entry
        if entry.key is not None:
            self.known[entry.actor, entry.key] = entry
        if allocation is None:
            self.registry = RegistryHead(entry.seq, entry.link)
        else:
            after = self.allocations[entry.book] = _replace(
                allocation, seq=entry.seq, link=entry.link
            )
            self.changes.touched.add(entry.book)
            if entry.kind is _TERMS:
                self.changes.amended.append(after)
        return entry

    def undo(self, undone: int, entry: Entry) -> Entry:
        """Note that `entry`, posted just now, takes the entry `undone` back: it is done once, also within a batch."""
        self.undoing[undone] = entry
        return entry

    def next_entry_id(self) -> int:
        """A fresh entry number; drawn beforehand where the entry's run must carry it too."""
        return next(self.entry_ids)

    def open(self, allocation: Allocation) -> None:
        """Take a new allocation into the set, so that later requests of the batch see it."""
        self.allocations[allocation.id] = allocation
        self._by_fund.setdefault((allocation.project, allocation.resource), []).append(
            allocation.id
        )
        self.changes.opened.add(allocation.id)

    def put_run(self, record: RunRecord) -> None:
        """Add a run or replace it."""
        run = record.run
        if run not in self.runs:
            self.changes.new_runs.add(run)
        elif run not in self.changes.new_runs:
            self.changes.changed_runs.add(run)
        self.runs[run] = record

    def put_user(self, allocation: int, uid: int, sums: UserSums) -> None:
        """Set what a user drew, and the cap."""
        self.users[allocation, uid] = sums
        self.changes.changed_users.add((allocation, uid))

    def put_project(self, project: Project) -> None:
        """Add a project or replace it."""
        if project.id not in self.projects:
            self.changes.new_projects.add(project.id)
        elif project.id not in self.changes.new_projects:
            self.changes.changed_projects.add(project.id)
        self.projects[project.id] = project

    def put_member(self, project: int, uid: int, role: Role | None) -> None:
        """Set a member's role; None removes the member."""
        if role is None:
            self.members.pop((project, uid), None)
        else:
            self.members[project, uid] = Member(project, uid, role)
        self.changes.changed_members.add((project, uid))

    def add_token(self, token: Token) -> None:
        self.tokens[token.id] = token
        self.changes.new_tokens.add(token.id)

    def put_token(self, token: Token) -> None:
        """Replace a token."""
        self.tokens[token.id] = token
        if token.id not in self.changes.new_tokens:
            self.changes.changed_tokens.add(token.id)
