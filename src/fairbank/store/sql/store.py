"""Parts shared by the SQL stores: transactions and reading."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from fairbank.cluster.share_record import ShareRecord
from fairbank.core.errors import Busy, Unavailable
from fairbank.core.time import Instant
from fairbank.store.contract import Contention, ProgressCallback, Reader, RestoreTarget, Transaction
from fairbank.store.sql.batch import SqlTransaction
from fairbank.store.sql.db_errors import translated_errors
from fairbank.store.sql.reader import SqlReader
from fairbank.store.sql.restore import SqlRestore
from fairbank.store.sql.share_records import delete_before, insert_records

_TURN_SECONDS = 60


class SqlStore(ABC):
    """Store over two connection pools, `writer` and `reader`, in the driver's autocommit mode: the
    store sends BEGIN itself.
    """

    begin_writing: str
    begin_reading: str
    writers = 1

    def __init__(self, writer: Engine, reader: Engine) -> None:
        self._writer, self._reader = writer, reader
        self._turns = threading.BoundedSemaphore(self.writers)

    @abstractmethod
    def _transaction_over(self, connection: Connection) -> SqlTransaction: ...

    @abstractmethod
    def _filling_over(self, connection: Connection) -> SqlRestore: ...

    @abstractmethod
    def use_nonce(self, nonce: bytes, uid: int, now: Instant, expires: Instant) -> bool:
        """Store a nonce until it expires. Return False if it was used before."""

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._write_transaction() as connection:
            yield self._transaction_over(connection)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        with self._read_transaction() as connection, closing(SqlReader(connection)) as reader:
            yield reader

    @contextmanager
    def restoring(self, *, replace: bool) -> Iterator[RestoreTarget]:
        with self._single_write() as connection:
            filling = self._filling_over(connection)
            filling.begin(replace=replace)
            yield filling
            filling.end()

    def add_share_records(self, figures: Sequence[ShareRecord]) -> int:
        with self._single_write() as connection:
            return insert_records(connection, figures)

    def delete_share_records(self, before: int) -> int:
        with self._single_write() as connection:
            return delete_before(connection, before)

    def check(self, demand: Callable[[Connection], None]) -> None:
        """Call `demand` with a connection before anything else and raise what it raises. Waits for
        no writer.
        """
        with self._read_transaction() as connection:
            demand(connection)

    def integrity_errors(
        self, *, thoroughly: bool = True, at_work: ProgressCallback | None = None
    ) -> list[str]:
        """Return nothing: a database server checks its own files."""
        return []

    def close(self) -> None:
        """Close all connections. A closed store opens new ones when it is used again."""
        self._reader.dispose()
        # Last: the last connection moves SQLite's log into its file, and readers may not write.
        self._writer.dispose()

    @contextmanager
    def _read_transaction(self) -> Iterator[Connection]:
        """Begin a read transaction. Raises Unavailable, also if a reader waits too long."""
        try:
            with (
                translated_errors(),
                transaction_on(self._reader, self.begin_reading) as connection,
            ):
                yield connection
        except Contention as busy:
            raise Unavailable(f"the database is busy: {busy}", remedy="try again") from busy

    @contextmanager
    def _write_transaction(self) -> Iterator[Connection]:
        """Begin a write transaction; `writers` of them at a time."""
        with (
            self._writer_slot(),
            translated_errors(),
            transaction_on(self._writer, self.begin_writing) as connection,
        ):
            yield connection
            self._commit(connection)

    def _commit(self, connection: Connection) -> None:
        connection.commit()

    @contextmanager
    def _writer_slot(self) -> Iterator[None]:
        """Take one of the `writers`. Raises Contention if none becomes free."""
        if not self._turns.acquire(timeout=_TURN_SECONDS):
            raise Contention("other threads have been writing for a minute")
        try:
            yield
        finally:
            self._turns.release()

    @contextmanager
    def _single_write(self) -> Iterator[Connection]:
        """Begin a write transaction for a caller that does not retry. Raises Busy on contention."""
        with contention_is_busy(), self._write_transaction() as connection:
            yield connection


@contextmanager
def contention_is_busy() -> Iterator[None]:
    """Translate Contention into Busy, for callers that do not retry."""
    try:
        yield
    except Contention as others:
        raise Busy(f"other writers are in the way: {others}") from others


@contextmanager
def transaction_on(engine: Engine, begin: str) -> Iterator[Connection]:
    """Yield a connection inside a transaction, rolled back unless it is committed.

    A pooled connection that died (the database was restarted) fails at BEGIN, when nothing is lost:
    the pool is emptied and a new connection tried.
    """
    for again in (False, True):
        with engine.connect() as connection:
            try:
                connection.exec_driver_sql(begin)
            except DBAPIError as error:
                if again or not error.connection_invalidated:
                    raise
            else:
                yield connection
                return
