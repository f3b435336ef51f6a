"""What every store promises; `tests/contracts` holds all three to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.book import Book, Office
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.needs import Needs
from fairbank.bank.project import Member, Project
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.cluster.job import Run
from fairbank.values.time import Instant

PAGE_MAX = 1_000


class Contention(Exception):
    """Another writer was in the way (a deadlock, a serialisation failure, a unique key taken meanwhile): try the batch again."""


class Page(msgspec.Struct, frozen=True):
    """At most `limit` rows beyond the row numbered `after`, in rising order, or in falling order when `newest_first`."""

    limit: int = 100
    after: int | None = None
    newest_first: bool = False

    @property
    def size(self) -> int:
        """How many rows it may have: `limit`, kept between none and PAGE_MAX."""
        return max(0, min(self.limit, PAGE_MAX))


class Sight(msgspec.Struct, frozen=True):
    """What the asker may see: everything, or the rows of `projects` and those owned by `uid`."""

    everything: bool = False
    uid: int | None = None
    projects: frozenset[int] = frozenset()


ALL = Sight(everything=True)


class ProjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    sight: Sight = ALL
    ids: frozenset[int] | None = None
    gname: str | None = None
    gid: int | None = None
    account: str | None = None


class AllocationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`active_at` picks by the period alone, so that it also answers for the past, whose allocations have ended since."""

    sight: Sight = ALL
    ids: frozenset[int] | None = None
    projects: frozenset[int] | None = None
    resource: str | None = None
    category: str | None = None
    state: AllocationState | None = None
    active_at: Instant | None = None


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`projects` are those whose allocations carry the runs; `since` <= start < `until`."""

    sight: Sight = ALL
    ids: frozenset[int] | None = None
    projects: frozenset[int] | None = None
    allocation: int | None = None
    owner: int | None = None
    state: RunState | None = None
    cluster: str | None = None
    job_id: int | None = None
    partition: str | None = None
    since: Instant | None = None
    until: Instant | None = None


class EntryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`since` <= at < `until`; `projects` are those of the books' allocations. Only an all-seeing sight sees the office's book,
    but an owner sees entries that name them (their refusals) wherever these are."""

    sight: Sight = ALL
    ids: frozenset[int] | None = None
    book: int | None = None
    projects: frozenset[int] | None = None
    kinds: frozenset[Kind] | None = None
    owner: int | None = None
    since: Instant | None = None
    until: Instant | None = None


class UsageBy(Enum):
    USER = "user"
    DAY = "day"
    MONTH = "month"
    PARTITION = "partition"
    ALLOCATION = "allocation"


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Charged runs whose end lies in `since` <= ended < `until`."""

    sight: Sight = ALL
    projects: frozenset[int] | None = None
    allocation: int | None = None
    resource: str | None = None
    owner: int | None = None
    since: Instant | None = None
    until: Instant | None = None


class Usage(msgspec.Struct, frozen=True):
    """What a group of runs used. `group` is the uid, the day or month (UTC, ISO), the partition, or the allocation.

    `failed` counts the runs that ended otherwise than COMPLETED; `charged` is in SU-minutes, refunds taken off.
    """

    group: str | int
    runs: int
    failed: int
    charged: int
    elapsed_seconds: int


class UserRow(msgspec.Struct, frozen=True):
    """One user's sums in one allocation."""

    allocation: int
    uid: int
    sums: UserSums


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """An opaque token, as far as the bank remembers it: never the secret, only its keyed digest."""

    id: int
    digest: bytes
    uid: int
    label: str
    scopes: tuple[str, ...]
    created: Instant
    expires: Instant
    revoked: Instant | None = None


class Reader(Protocol):
    """One consistent view of the books. Each method is one statement on the SQL stores."""

    def projects(self, query: ProjectQuery, page: Page) -> list[Project]: ...
    def members(self, project: int) -> list[Member]: ...
    def memberships(self, uid: int) -> list[Member]: ...
    def allocations(self, query: AllocationQuery, page: Page) -> list[Allocation]: ...
    def users(self, allocations: frozenset[int]) -> list[UserRow]: ...
    def runs(self, query: RunQuery, page: Page) -> list[RunRecord]: ...
    def run(self, run: Run) -> RunRecord | None: ...
    def entries(self, query: EntryQuery, page: Page) -> list[Entry]: ...
    def statement(self, book: int, since: Instant, until: Instant, page: Page) -> list[Entry]:
        """Entries of one book in its own order, after `before(since)` up to `before(until)`; `page.after` is a seq.

        So the opening balance and the entries make the closing balance, even where a clock was put back.
        """
        ...

    def before(self, book: int, at: Instant) -> Entry | None:
        """The last entry of a book made before `at`: its sums are the opening balance."""
        ...

    def usage(self, query: UsageQuery, by: UsageBy) -> list[Usage]: ...
    def overdue(self, now: Instant, limit: int) -> list[Run]:
        """Runs whose hold should have lapsed by now, the longest overdue first."""
        ...

    def expired(self, now: Instant, limit: int) -> list[int]:
        """Allocations past their end that are not ended yet."""
        ...

    def office(self) -> Office: ...
    def tokens(self, uid: int | None) -> list[Token]: ...
    def token(self, digest: bytes) -> Token | None: ...

    # Whole tables in the order of the audit, streamed in constant memory.
    def scan_entries(self) -> Iterator[Entry]:
        """Every entry, by (book, seq)."""
        ...

    def scan_allocations(self) -> Iterator[Allocation]:
        """By id."""
        ...

    def scan_runs(self) -> Iterator[RunRecord]:
        """By (allocation, id)."""
        ...

    def scan_users(self) -> Iterator[UserRow]:
        """By (allocation, uid)."""
        ...

    def scan_projects(self) -> Iterator[Project]: ...
    def scan_members(self) -> Iterator[Member]: ...
    def count_entries(self) -> int: ...


class Transaction(Protocol):
    """One batch: load and lock what it needs, then write what judging it changed. Both, or nothing."""

    def book(self, needs: Needs) -> Book: ...
    def write(self, book: Book) -> None: ...


class Filling(Protocol):
    """An empty store being filled from a backup, in one transaction."""

    def projects(self, rows: Sequence[Project]) -> None: ...
    def members(self, rows: Sequence[Member]) -> None: ...
    def allocations(self, rows: Sequence[Allocation]) -> None: ...
    def users(self, rows: Sequence[UserRow]) -> None: ...
    def runs(self, rows: Sequence[RunRecord]) -> None: ...
    def entries(self, rows: Sequence[Entry]) -> None: ...
    def office(self, head: Office) -> None: ...
    def tokens(self, rows: Sequence[Token]) -> None: ...


class Store(Protocol):
    """Where the bank sleeps. One thread at a time may hold a transaction; any number may read."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commits at the end of the block, rolls back when it raises. Raises Contention, Unreachable."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """A consistent snapshot. Raises Unreachable."""
        ...

    def filling(self, *, replace: bool) -> AbstractContextManager[Filling]:
        """Fill the store from a backup; with `replace` whatever is there is dropped in the same transaction.

        Raises Conflict when the store is not empty and `replace` is false.
        """
        ...

    def spend(self, nonce: bytes, uid: int, now: Instant, expires: Instant) -> bool:
        """Remember a nonce until it expires; False when it was spent before, on any server. Durable before it returns."""
        ...

    def add_token(self, token: Token) -> int:
        """Keep a token (its `id` is ignored) and return its number."""
        ...

    def revoke_token(self, number: int, now: Instant) -> bool:
        """Whether there was such a token, still valid."""
        ...

    def close(self) -> None: ...
