"""What every store promises; `tests/contracts` holds all three to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.needs import Needs
from fairbank.bank.project import Member, Project
from fairbank.bank.query import (
    EVERY_BOOK,
    AllocationQuery,
    Books,
    Debit,
    DebitPage,
    DebitQuery,
    EntryQuery,
    GroupPage,
    Page,
    ProjectQuery,
    RefusalQuery,
    RepeatedKey,
    RunQuery,
    Usage,
    UsageBy,
    UsageQuery,
    UserRow,
)
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.bank.working_set import Office, WorkingSet
from fairbank.cluster.job import Run
from fairbank.cluster.share_record import ShareQuery, ShareRecord
from fairbank.core.time import Instant

ProgressCallback = Callable[[], None]
"""Called now and then as long as something lasts of which nobody knows how far it is."""


class Contention(Exception):
    """Another writer was in the way (a deadlock, a serialisation failure, a unique key taken meanwhile): try the batch again."""


class Reader(Protocol):
    """One consistent view of the books. Each method is one statement on the SQL stores."""

    def projects(self, query: ProjectQuery, page: Page) -> list[Project]:
        """By id, as are all pages of rows."""
        ...

    def members(self, project: int, page: Page) -> list[Member]:
        """By uid; `page.after` is one."""
        ...

    def memberships(self, uid: int) -> list[Member]:
        """A user's roles, by project; none in those that were removed."""
        ...

    def allocations(self, query: AllocationQuery, page: Page) -> list[Allocation]:
        """With their sums."""
        ...

    def users(self, allocations: frozenset[int], uid: int | None = None) -> list[UserRow]:
        """Everybody, or one user, who drew on these allocations or has a cap there, by (allocation, uid)."""
        ...

    def allocation_users(self, allocation: int, page: Page) -> list[UserRow]:
        """What each user drew from one allocation, by uid; `page.after` is one."""
        ...

    def debits(self, query: DebitQuery, page: DebitPage) -> list[Debit]:
        """What each owner was charged, by (allocation, owner); nobody who was charged nothing."""
        ...

    def runs(self, query: RunQuery, page: Page) -> list[RunRecord]:
        """The number of a run is that of the entry that opened it."""
        ...

    def run(self, run: Run) -> RunRecord | None:
        """A run by the scheduler's name for it."""
        ...

    def entries(self, query: EntryQuery, page: Page) -> list[Entry]:
        """Journal entries of any book, by id."""
        ...

    def refusals(self, query: RefusalQuery, page: Page) -> list[Entry]:
        """Entries of refused jobs, by id."""
        ...

    def statement(self, book: int, since: Instant, until: Instant, page: Page) -> list[Entry]:
        """Entries of one book in its own order, after `before(since)` up to `before(until)`; `page.after` is a seq.

        So the opening balance and the entries make the closing balance, even where a clock was put back.
        """
        ...

    def entry_before(self, book: int, at: Instant) -> Entry | None:
        """The last entry of a book made before `at`: its sums are the opening balance. Nothing comes before a book's first entry.

        Where a clock was put back there may be several places to cut: a later `at` never cuts earlier, and entries made since
        leave a cut alone (`store.cutting`).
        """
        ...

    def usage(self, query: UsageQuery, by: UsageBy, page: GroupPage) -> list[Usage]:
        """Sums over the runs that ended, charged or not, by group."""
        ...

    def overdue_runs(self, now: Instant, limit: int) -> list[Run]:
        """Runs whose hold should have lapsed by now, the longest overdue first."""
        ...

    def expired_allocations(self, now: Instant, limit: int) -> list[int]:
        """Active allocations past their end, to be ended; what is frozen stays so."""
        ...

    def office(self) -> Office:
        """How far the office's book is."""
        ...

    def tokens(self, uid: int | None, page: Page | None = None) -> list[Token]:
        """A user's tokens, or everybody's, by id; those that expired or were revoked too. Without a page all of them."""
        ...

    def token(self, digest: bytes) -> Token | None:
        """The token of this digest, whether it still counts or not."""
        ...

    def token_by_id(self, number: int) -> Token | None:
        """The token with this number, likewise."""
        ...

    # Whole tables, or what belongs to a stretch of books, in the order of the audit; databases stream them, in constant memory.
    def scan_entries(self, books: Books = EVERY_BOOK) -> Iterator[Entry]:
        """Every entry, by (book, seq)."""
        ...

    def scan_allocations(self, books: Books = EVERY_BOOK) -> Iterator[Allocation]:
        """By id."""
        ...

    def scan_runs(self, books: Books = EVERY_BOOK) -> Iterator[RunRecord]:
        """By (allocation, id)."""
        ...

    def scan_users(self, books: Books = EVERY_BOOK) -> Iterator[UserRow]:
        """By (allocation, uid)."""
        ...

    def scan_projects(self) -> Iterator[Project]:
        """By id."""
        ...

    def scan_members(self) -> Iterator[Member]:
        """By (project, uid)."""
        ...

    def share_records(self, query: ShareQuery) -> list[ShareRecord]:
        """Daily figures of fair share, by cluster, day and association; a page of them in the order of the store."""
        ...

    def scan_share_records(self) -> Iterator[ShareRecord]:
        """All of them, streamed, in the order of the store."""
        ...

    def count_entries(self) -> int:
        """How many entries `scan_entries` gives."""
        ...

    def repeated_keys(self, limit: int) -> list[RepeatedKey]:
        """Keys under which one actor has more than one entry, by actor and key: looked for in the entries themselves, by no index."""
        ...


class Transaction(Protocol):
    """One batch: load and lock what it needs, then write what judging it changed. Both, or nothing."""

    def load(self, needs: Needs) -> WorkingSet:
        """The rows needed, locked: the allocations in the order of their numbers, then the office. May be asked again with the office,
        before anything is written: the working set from before is then void, its locks are not."""
        ...

    def write(self, work: WorkingSet) -> None:
        """Write what judging changed. The store commits when the block ends."""
        ...


class RestoreTarget(Protocol):
    """An empty store being filled from a backup, in one transaction."""

    def revoked_tokens(self) -> Mapping[bytes, Instant]:
        """By their digests, when tokens were revoked in the books that are being replaced."""
        ...

    def projects(self, rows: Sequence[Project]) -> None: ...
    def members(self, rows: Sequence[Member]) -> None: ...
    def allocations(self, rows: Sequence[Allocation]) -> None: ...
    def users(self, rows: Sequence[UserRow]) -> None: ...
    def runs(self, rows: Sequence[RunRecord]) -> None: ...
    def entries(self, rows: Sequence[Entry]) -> None: ...
    def office(self, head: Office) -> None: ...
    def tokens(self, rows: Sequence[Token]) -> None: ...
    def share_records(self, rows: Sequence[ShareRecord]) -> None: ...


class Store(Protocol):
    """Where the bank sleeps. So many threads as `writers` hold a transaction at a time, others wait; any number may read."""

    @property
    def writers(self) -> int: ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commits at the end of the block, rolls back when it raises. Raises Contention, Unreachable."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """A consistent snapshot. Raises Unreachable."""
        ...

    def restoring(self, *, replace: bool) -> AbstractContextManager[RestoreTarget]:
        """Fill the store from a backup; with `replace` whatever is there is dropped in the same transaction.

        Raises Conflict when the store is not empty and `replace` is false.
        """
        ...

    def use_nonce(self, nonce: bytes, uid: int, now: Instant, expires: Instant) -> bool:
        """Remember a nonce until it expires; False when it was spent before, on any server. Durable before it returns."""
        ...

    def add_share_records(self, figures: Sequence[ShareRecord]) -> int:
        """Keep the figures of associations that have none of that day yet; returns how many that were. Raises Busy, Unreachable."""
        ...

    def delete_share_records(self, before: int) -> int:
        """Forget the figures of all days before this one; returns how many there were. Raises Busy, Unreachable."""
        ...

    def integrity_errors(
        self, *, thoroughly: bool = True, at_work: ProgressCallback | None = None
    ) -> list[str]:
        """What the database itself finds wrong with its file, in words; nothing where it is sound, or has no such check of its own.

        Takes as long as the file is long; a check that is not thorough, which compares indexes with their tables by sums only, a fifth of
        that. Raises Corrupt where not even that can be read, Unreachable.
        `at_work` is called at its beginning and several times a second, in the thread that asks.
        """
        ...

    def close(self) -> None: ...
