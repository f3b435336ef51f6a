"""Audit: read all journals again and compare every row with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.audit import (
    TRANSFER_KINDS,
    Finding,
    Fold,
    Head,
    RecordedTransfer,
    cut_off,
    is_whole,
)
from fairbank.bank.entry import REGISTRY, Entry
from fairbank.bank.project import Member, Project
from fairbank.bank.query import (
    ALL_JOURNALS,
    AllocationQuery,
    EntryQuery,
    JournalRange,
    Page,
    RunQuery,
    UserRow,
)
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.core.errors import Corrupt
from fairbank.core.ids import ID_MAX
from fairbank.core.progress import Progress
from fairbank.core.time import Instant
from fairbank.core.units import show_minutes
from fairbank.store.contract import Reader, Store

_STEP = 10_000
_REPEATED_MAX = 1_000


class AuditResult(msgspec.Struct, frozen=True):
    """Numbers of rows that were read, and the findings.

    `halves` are the transfers of which only one half was read; the other one is in a journal of
    another range, or missing.
    """

    entries: int
    journals: int
    runs: int
    findings: tuple[Finding, ...]
    halves: Mapping[RecordedTransfer, int] = {}


class Audit:
    """Audit of one store. It reads one snapshot, so the bank can go on working."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def journal_heads(self) -> list[Head]:
        """Return the last entry number and hash of every journal, the registry's first.

        Kept elsewhere, they reveal even a journal that was rewritten from its beginning.
        """
        with self._store.reading() as reader:
            registry = reader.registry()
            return [
                Head(REGISTRY, registry.seq, registry.link),
                *(
                    Head(allocation.id, allocation.seq, allocation.link)
                    for allocation in reader.scan(Allocation)
                ),
            ]

    def state(self, page: Page) -> tuple[int, Head, list[Head]]:
        """Return the number of entries, and the last links of the registry and of a page of
        allocations.
        """
        with self._store.reading() as reader:
            registry = reader.registry()
            heads = [
                Head(allocation.id, allocation.seq, allocation.link)
                for allocation in reader.allocations(AllocationQuery(), page)
            ]
            return reader.count_entries(), Head(REGISTRY, registry.seq, registry.link), heads

    def verify(
        self,
        heads: Mapping[int, Head] = MappingProxyType({}),
        progress: Progress | None = None,
        journals: JournalRange = ALL_JOURNALS,
    ) -> AuditResult:
        """Read every entry and compare every row.

        Args:
            heads: last entries saved earlier, by journal.
            progress: called now and then.
            journals: range of journals to read.
        """
        whole = self.check_store() if journals == ALL_JOURNALS else ()
        with self._store.reading() as reader:
            verdict = _JournalWalk(reader, heads, progress, journals).verdict()
        missing = self.check_transfers(verdict.halves) if journals == ALL_JOURNALS else ()
        return msgspec.structs.replace(verdict, findings=(*whole, *verdict.findings, *missing))

    def check_transfers(self, halves: Iterable[RecordedTransfer]) -> tuple[Finding, ...]:
        """Return the transfers of which only one half exists.

        They are read again, since the halves of a new transfer may have been read in two snapshots.
        """
        with self._store.reading() as reader:
            return tuple(
                Finding(None, f"only one half of the transfer of {transfer} is in the journals")
                for transfer in sorted(halves, key=str)
                if not _is_whole(reader, transfer)
            )

    def check_store(self) -> tuple[Finding, ...]:
        """Return the findings about the store as a whole: bad indexes, idempotency keys used twice,
        and sums of usage that are not those of the charges.

        They come first: an index that lacks rows hides them from every reader.
        """
        return tuple(_store_findings(self._store))


def _is_whole(reader: Reader, transfer: RecordedTransfer) -> bool:
    try:
        until = Instant(transfer.at + 1)
        query = EntryQuery(kinds=TRANSFER_KINDS, since=transfer.at, until=until)
        return is_whole(transfer, reader.entries(query, Page(_REPEATED_MAX)))
    except (Corrupt, KeyError, TypeError, ValueError, OverflowError):
        return False  # an entry cannot be read, which is another finding


def _store_findings(store: Store) -> Iterator[Finding]:
    try:
        faults = store.integrity_errors(thoroughly=False)
        yield from (Finding(None, fault.message) for fault in faults)
        with store.reading() as reader:
            repeated = reader.repeated_keys(_REPEATED_MAX)
            wrong = reader.wrong_usage(_REPEATED_MAX)
    except Corrupt as corrupt:
        yield Finding(None, corrupt.message)
        return
    for duplicate in repeated:
        yield Finding(
            None,
            f"user {duplicate.actor} has entries {duplicate.first} and {duplicate.last} under one"
            f" key, {duplicate.key!r}, which may be used once",
        )
    for sums in wrong:
        yield Finding(
            sums.allocation,
            f"its sums of usage have charges of {show_minutes(sums.summed)}, due {sums.charged}",
        )


class _JournalWalk:
    """One pass over entries, allocations, runs and users side by side. Each row is read once.

    Invariant: the streams `_allocations`, `_runs` and `_users` stand at the first row of the
    current journal that is not compared yet; `_entries`, `_journals` and `_run_count` count what is
    read.
    """

    def __init__(
        self,
        reader: Reader,
        heads: Mapping[int, Head],
        progress: Progress | None,
        journals: JournalRange,
    ) -> None:
        self._reader, self._heads, self._progress, self._stretch = reader, heads, progress, journals
        self._findings: list[Finding] = []
        self._entries = self._journals = self._run_count = 0
        self._transfers: Counter[RecordedTransfer] = Counter()
        self._of = reader.count_entries() if progress else 0

    def verdict(self) -> AuditResult:
        try:
            self._read()
        except Corrupt as corrupt:
            self._findings.append(
                Finding(None, f"a row cannot be read, so the audit ends here: {corrupt.message}")
            )
        if self._progress:
            self._progress(self._entries, self._of)
        halves = {transfer: count for transfer, count in self._transfers.items() if count}
        findings = tuple(self._findings)
        return AuditResult(self._entries, self._journals, self._run_count, findings, halves)

    def _read(self) -> None:
        self._allocations = _Rows(self._reader.scan(Allocation, self._stretch), attrgetter("id"))
        self._runs = _Rows(
            self._reader.scan(RunRecord, self._stretch), attrgetter("allocation"), attrgetter("id")
        )
        self._users = _Rows(self._reader.scan(UserRow, self._stretch), attrgetter("allocation"))
        met: set[int] = set()
        for journal, entries in groupby(
            self._reader.scan(Entry, self._stretch), key=attrgetter("allocation")
        ):
            self._compare(journal, entries)
            met.add(journal)
        self._journals = len(met)
        # Compare the registry's rows even if all its entries are gone.
        if REGISTRY in self._stretch and REGISTRY not in met:
            self._compare(REGISTRY, iter(()))
        self._rows_of(Fold(ID_MAX))
        for journal in sorted(self._heads.keys() - met):
            # A head of 0 was saved before the journal had entries.
            if journal in self._stretch and self._heads[journal].seq:
                self._findings.append(
                    Finding(journal, "the whole journal is missing: its head was saved earlier")
                )

    def _compare(self, journal: int, entries: Iterator[Entry]) -> None:
        fold = Fold(journal, self._heads.get(journal), partial(self._run, journal))
        for entry in entries:
            if entry.run == entry.id:
                self._runs_of(fold, entry.id)
            fold.add(entry)
            self._entries += 1
            if self._progress and self._entries % _STEP == 0:
                self._progress(self._entries, self._of)
        fold.finish()
        if journal == REGISTRY:
            self._registry(fold)
        else:
            self._rows_of(fold)
        fold.check_left_over()
        self._findings += fold.findings
        self._transfers.update(fold.transfers)

    def _rows_of(self, fold: Fold) -> None:
        """Compare the rows of the journal, and report rows of journals without entries before
        it.
        """
        own: Allocation | None = None
        for row in self._allocations.of(fold.journal):
            if row.id == fold.journal:
                own = row
            else:
                self._findings.append(Finding(row.id, "its row was added: no entry opens it"))
        if fold.journal != ID_MAX:
            fold.check_allocation(own)
        self._runs_of(fold)
        for user in self._users.of(fold.journal):
            if user.allocation == fold.journal:
                fold.check_user(user.uid, user.sums)
            else:
                self._findings.append(
                    Finding(
                        user.allocation,
                        f"the sums of user {user.uid} were added: there is no such allocation",
                    )
                )

    def _runs_of(self, fold: Fold, last: int = ID_MAX) -> None:
        """Compare the runs of the journal up to the one numbered `last`."""
        for run in self._runs.of(fold.journal, last):
            self._run_count += 1
            if run.allocation == fold.journal:
                fold.check_run(run)
            else:
                self._findings.append(
                    Finding(
                        run.allocation,
                        f"the row of run {run.reported.run} was added: there is no such allocation",
                    )
                )

    def _run(self, allocation: int, number: int) -> RunRecord | None:
        return next(
            iter(
                self._reader.runs(
                    RunQuery(ids=frozenset((number,)), allocation=allocation), Page(1)
                )
            ),
            None,
        )

    def _registry(self, fold: Fold) -> None:
        for project in self._reader.scan(Project):
            fold.registry.check_project(project)
        for member in self._reader.scan(Member):
            fold.registry.check_member(member)
        for token in self._reader.scan(Token):
            fold.registry.check_token(token)
        head = self._reader.registry()
        if (head.seq, head.link) != (fold.seq, fold.link):
            message = f"its head says entry number {head.seq}, the journal ends at {fold.seq}"
            self._findings.append(Finding(REGISTRY, cut_off(head.seq, fold.seq) or message))


T = TypeVar("T")


class _Rows(Generic[T]):
    """Stream of rows sorted by journal, and within a journal by number."""

    def __init__(
        self,
        rows: Iterator[T],
        journal_of: Callable[[T], int],
        number_of: Callable[[T], int] | None = None,
    ) -> None:
        self._rows, self._journal_of, self._number_of = rows, journal_of, number_of or (lambda _: 0)
        self._next = next(rows, None)

    def of(self, journal: int, last: int = ID_MAX) -> Iterator[T]:
        """Yield the rows of a journal up to number `last`, after those of skipped journals. Raises
        Corrupt.
        """
        while self._next is not None and self._place(self._next) <= (journal, last):
            yield self._next
            self._next = next(self._rows, None)

    def _place(self, row: T) -> tuple[int, int]:
        journal = self._journal_of(row)
        if not isinstance(journal, int):  # SQLite stores any type in any column
            raise Corrupt(
                f"{journal!r} is the number of no journal",
                remedy="fairbank restore, from a backup of before",
            )
        return journal, self._number_of(row)
