"""Contract of every store. The stores do not repeat it; `tests/contracts` checks all three."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeVar

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.lock_set import LockSet
from fairbank.bank.project import Member, Project
from fairbank.bank.query import (
    ALL_JOURNALS,
    AllocationQuery,
    Debit,
    DebitPage,
    DebitQuery,
    EntryQuery,
    GroupPage,
    JournalRange,
    OpenHolds,
    Page,
    ProjectQuery,
    RefusalQuery,
    RepeatedKey,
    RunQuery,
    Usage,
    UsageQuery,
    UserRow,
    WrongUsage,
)
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import RegistryHead, TransactionData
from fairbank.cluster.job import Run
from fairbank.cluster.share import ShareQuery, ShareRecord
from fairbank.core.time import Instant
from fairbank.core.usage_groups import UsageBy

T = TypeVar("T")

ProgressCallback = Callable[[], None]
"""Called now and then during an operation of unknown duration."""


class IntegrityFault(NamedTuple):
    """Error that the database finds in its file. One `in_index` leaves the table itself whole."""

    message: str
    in_index: bool


class Contention(Exception):
    """Another writer interfered: a deadlock, a serialisation failure, a unique key taken meanwhile.
    Retry the batch.
    """


class Reader(Protocol):
    """Consistent view of the ledger. On the SQL stores each method is one statement."""

    def projects(self, query: ProjectQuery, page: Page) -> list[Project]:
        """Return projects by id, the order of all pages."""
        ...

    def members(self, project: int, page: Page) -> list[Member]:
        """Return the members of a project by uid; `page.after` is a uid."""
        ...

    def memberships(self, uid: int) -> list[Member]:
        """Return the roles of a user by project, without removed projects."""
        ...

    def allocations(self, query: AllocationQuery, page: Page) -> list[Allocation]:
        """Return allocations with their sums."""
        ...

    def users(self, allocations: frozenset[int], uid: int | None = None) -> list[UserRow]:
        """Return the users, or one user, who used these allocations or have a cap there, by
        (allocation, uid).
        """
        ...

    def allocation_users(self, allocation: int, page: Page) -> list[UserRow]:
        """Return the use of one allocation by each user, by uid; `page.after` is a uid."""
        ...

    def debits(self, query: DebitQuery, page: DebitPage) -> list[Debit]:
        """Return the charges of each owner, by (allocation, owner); owners without charges are left
        out.
        """
        ...

    def runs(self, query: RunQuery, page: Page) -> list[RunRecord]:
        """Return runs. The id of a run is that of the entry that opened it."""
        ...

    def entries(self, query: EntryQuery, page: Page) -> list[Entry]:
        """Return entries of any journal, by id."""
        ...

    def refusals(self, query: RefusalQuery, page: Page) -> list[Entry]:
        """Return the entries of refused jobs, by id."""
        ...

    def statement(
        self,
        allocation: int,
        since: Instant,
        until: Instant,
        page: Page,
        kinds: frozenset[Kind] | None = None,
    ) -> list[Entry]:
        """Return the entries of a journal in its order, for one page of a statement.

        The opening balance plus the entries gives the closing balance, even if a clock was set
        back.

        Args:
            allocation: the number of the journal's allocation.
            since: the entries begin after `entry_before(since)`, or with the first of the journal.
            until: the last entry is at most `entry_before(until)`.
            page: the rows of the page; `page.after` is a seq.
            kinds: only entries of these kinds; None: of all.
        """
        ...

    def term_entries(self, allocations: frozenset[int]) -> list[Entry]:
        """Return the entries that set terms of these allocations, by (allocation, seq)."""
        ...

    def undoing_entries(
        self, allocations: frozenset[int], runs: frozenset[int], after: int
    ) -> list[Entry]:
        """Return what undid entries of these journals, and the refunds of runs, by id.

        Args:
            allocations: the numbers of the journals' allocations.
            runs: ids of runs whose refunds and repeated charges are among them, if the journals
                have them.
            after: id of the entry after which they come.
        """
        ...

    def entry_before(self, allocation: int, at: Instant) -> Entry | None:
        """Return the last entry of a journal made before `at`; its sums are the opening balance.

        If a clock was set back there can be several positions. A later `at` never gives an earlier
        entry, and entries made since do not change the result (`store.time_index`).
        """
        ...

    def usage(self, query: UsageQuery, by: UsageBy, page: GroupPage) -> list[Usage]:
        """Return sums over the runs that ended, charged or not, by group and unit (`Usage.key`).

        Args:
            query: filters of the runs, the time zone of days, and the clusters with the same
                prices.
            by: how the runs are grouped.
            page: the groups of the page. Days, weeks and months are cut to the page, too.
        """
        ...

    def open_holds(self, allocations: frozenset[int]) -> dict[tuple[int, int], OpenHolds]:
        """Return the open holds above 0 on these allocations by (allocation, owner)."""
        ...

    def overdue_runs(self, now: Instant, limit: int) -> list[Run]:
        """Return the runs whose hold should have lapsed by now, the longest overdue first."""
        ...

    def expired_allocations(self, now: Instant, limit: int) -> list[int]:
        """Return the active allocations past their end. Frozen allocations stay frozen."""
        ...

    def registry(self) -> RegistryHead:
        """Return the position of the registry's journal."""
        ...

    def tokens(self, uid: int | None, page: Page) -> list[Token]:
        """Return the tokens of a user, or of all, by id, including expired and revoked ones."""
        ...

    def token(self, digest: bytes) -> Token | None:
        """Return the token with this digest, valid or not."""
        ...

    def token_by_id(self, number: int) -> Token | None:
        """Return the token with this id, valid or not."""
        ...

    def scan(self, kind: type[T], journals: JournalRange = ALL_JOURNALS) -> Iterator[T]:
        """Yield all rows of a kind, or those of a range of journals, in the order of the audit.

        Databases stream them in constant memory.

        Args:
            kind: Entry (by `allocation`, `seq`), Allocation (by id), RunRecord (by allocation, id)
                or UserRow (by allocation, uid); Project and Token (by id), Member (by project, uid)
                or ShareRecord (in the order of the store).
            journals: those of the first four; the other kinds belong to none.
        """
        ...

    def share_records(self, query: ShareQuery) -> list[ShareRecord]:
        """Return a page of daily fair-share records, by cluster, day and association."""
        ...

    def count_entries(self) -> int:
        """Return the number of entries in all journals."""
        ...

    def repeated_keys(self, limit: int) -> list[RepeatedKey]:
        """Return keys under which an actor has more than one entry. The entries are read, not an
        index.
        """
        ...

    def wrong_usage(self, limit: int) -> list[WrongUsage]:
        """Return allocations whose sums of usage are up to date, but are not their charges."""
        ...


class Transaction(Protocol):
    """One batch: load and lock what it needs, then write what the rules changed, all or nothing."""

    def load(self, locks: LockSet) -> TransactionData:
        """Return the rows needed, locked: the allocations by id, then the registry.

        May be called again with the registry before anything is written; the first result is then
        void, its locks are not.
        """
        ...

    def write(self, data: TransactionData) -> None:
        """Write the changes. The store commits when the block ends."""
        ...


class RestoreTarget(Protocol):
    """Empty store that is filled from a backup in one transaction."""

    def revoked_tokens(self) -> Mapping[bytes, Instant]:
        """Return the digests of the tokens that the replaced store had revoked, with the times."""
        ...

    def insert(self, kind: type[T], rows: Sequence[T]) -> None:
        """Insert rows of one of the kinds that `Reader.scan` yields."""
        ...

    def registry(self, head: RegistryHead) -> None:
        """Set the position of the registry's journal."""
        ...


class Store(Protocol):
    """Storage of the bank. At most `writers` threads hold a transaction at a time; any number can
    read.
    """

    @property
    def writers(self) -> int: ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that commits at the end of the block. Raises Contention,
        Unavailable.
        """
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Begin a consistent snapshot. Raises Unavailable."""
        ...

    def restoring(self, *, replace: bool) -> AbstractContextManager[RestoreTarget]:
        """Fill the store from a backup; `replace` deletes its content in the same transaction.

        Raises:
            Conflict: the store is not empty and `replace` is false.
        """
        ...

    def use_nonce(self, nonce: bytes, uid: int, now: Instant, expires: Instant) -> bool:
        """Store a nonce until it expires. Return False if any server has seen it. Durable before it
        returns.

        Args:
            nonce: the bytes of the nonce.
            uid: the user who sent it. It is only stored: a nonce counts once for all users.
            now: nonces that expired up to this time may be deleted, and used again.
            expires: the time from which this nonce may be deleted.
        """
        ...

    def add_share_records(self, figures: Sequence[ShareRecord]) -> int:
        """Store the records of associations that have none of that day; return their number. Raises
        Busy, Unavailable.
        """
        ...

    def delete_share_records(self, before: int) -> int:
        """Delete the records of all days before this one; return their number. Raises Busy,
        Unavailable.
        """
        ...

    def fold_usage(self) -> int:
        """Add the runs that were closed or refunded since the last call to the sums that `usage`
        reads. It returns the same without; with few new entries it is fast.

        Returns the number of entries; 0 if there was nothing left to do. Raises Busy, Unavailable.
        """
        ...

    def integrity_errors(
        self, *, thoroughly: bool = True, at_work: ProgressCallback | None = None
    ) -> list[IntegrityFault]:
        """Return the errors that the database finds in its file; empty if there are none or no such
        check.

        The duration is proportional to the size of the file; without `thoroughly` indexes are
        compared with their tables only by sums, in a fifth of the time.

        Args:
            thoroughly: whether to look up each row in each index.
            at_work: called at the beginning and several times a second, in the calling thread.

        Raises:
            Corrupt: not even the check can be run.
            Unavailable: the database does not answer.
        """
        ...

    def close(self) -> None: ...
