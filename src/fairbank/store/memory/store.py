"""Store in memory, the twin of the SQL stores, for tests, replays and simulations."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fairbank.bank.lock_set import LockSet
from fairbank.bank.transaction_data import RegistryHead, TransactionData
from fairbank.cluster.share import ShareRecord, share_key
from fairbank.core.errors import Conflict
from fairbank.core.time import Instant
from fairbank.store.contract import (
    IntegrityFault,
    ProgressCallback,
    Reader,
    RestoreTarget,
    Transaction,
)
from fairbank.store.memory.reader import MemoryReader
from fairbank.store.memory.tables import MemoryTables


class MemoryStore:
    """Store with one lock for writers. Readers see tables that are no longer changed."""

    writers = 1

    def __init__(self) -> None:
        self._tables = MemoryTables()
        self._turn = threading.Lock()
        self._looking = threading.Lock()
        self._nonces: dict[bytes, int] = {}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._turn:
            transaction = MemoryTransaction(self._tables)
            yield transaction
            if transaction.written is not None:
                with self._changing() as tables:
                    tables.apply(transaction.written)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        with self._looking:
            tables = self._tables
            tables.readers += 1
        try:
            yield MemoryReader(tables)
        finally:
            with self._looking:
                tables.readers -= 1

    @contextmanager
    def restoring(self, *, replace: bool) -> Iterator[RestoreTarget]:
        with self._turn:
            there = self._tables
            if not replace and (there.projects or there.entries or there.tokens or there.shares):
                raise Conflict(
                    "the store is not empty", remedy="restore into a new database, or add --replace"
                )
            filling = MemoryRestore(
                {
                    token.digest: token.revoked
                    for token in there.tokens.values()
                    if token.revoked is not None
                }
            )
            yield filling
            with self._looking:
                self._tables = filling.tables

    def use_nonce(self, nonce: bytes, uid: int, now: Instant, expires: Instant) -> bool:
        with self._turn:
            self._nonces = {
                used_nonce: until for used_nonce, until in self._nonces.items() if until > now
            }
            if nonce in self._nonces:
                return False
            self._nonces[nonce] = expires
            return True

    def add_share_records(self, figures: Sequence[ShareRecord]) -> int:
        with self._turn, self._changing() as tables:
            there = {share_key(figure) for figure in figures} & tables.shares.keys()
            new = [figure for figure in figures if share_key(figure) not in there]
            tables.insert(ShareRecord, new)
            return len(new)

    def delete_share_records(self, before: int) -> int:
        with self._turn, self._changing() as tables:
            old = [place for place, record in tables.shares.items() if record.day < before]
            for place in old:
                del tables.shares[place]
            return len(old)

    def fold_usage(self) -> int:
        """Return 0: usage is counted each time."""
        return 0

    def integrity_errors(
        self, *, thoroughly: bool = True, at_work: ProgressCallback | None = None
    ) -> list[IntegrityFault]:
        """Return nothing: there is no file."""
        return []

    def close(self) -> None:
        """Delete everything."""
        self._tables = MemoryTables()

    @contextmanager
    def _changing(self) -> Iterator[MemoryTables]:
        """Yield tables without readers, and keep new readers out."""
        with self._looking:
            if self._tables.readers:
                self._tables = self._tables.copy()
            yield self._tables


class MemoryTransaction:
    """Batch over the tables, applied when its block ends."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self.written: TransactionData | None = None

    def load(self, locks: LockSet) -> TransactionData:
        return self._tables.load(locks)

    def write(self, data: TransactionData) -> None:
        self.written = data


class MemoryRestore:
    """New tables that replace the old ones at the end."""

    def __init__(self, revoked: Mapping[bytes, Instant]) -> None:
        self.tables = MemoryTables()
        self._revoked = revoked

    def revoked_tokens(self) -> Mapping[bytes, Instant]:
        return self._revoked

    def insert(self, kind: type, rows: Sequence[Any]) -> None:
        self.tables.insert(kind, rows)

    def registry(self, head: RegistryHead) -> None:
        self.tables.registry = head
