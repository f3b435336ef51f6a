"""Parts shared by the SQL stores: transactions, reading and restoring."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, bindparam, delete, func, select, update
from sqlalchemy.exc import DBAPIError

from fairbank.bank.transaction_data import RegistryHead
from fairbank.cluster.share import ShareRecord, share_key
from fairbank.core.errors import Busy, Conflict, Unavailable
from fairbank.core.time import Instant
from fairbank.store import schema
from fairbank.store.contract import (
    Contention,
    IntegrityFault,
    ProgressCallback,
    Reader,
    RestoreTarget,
    Transaction,
)
from fairbank.store.schema import share_figure
from fairbank.store.sql.batch import SqlTransaction
from fairbank.store.sql.db_errors import translated_errors
from fairbank.store.sql.reader import SqlReader
from fairbank.store.sql.rows import KINDS, share_record_row
from fairbank.store.sql.usage_sums import delete_sums, fold

_TURN_SECONDS = 60

TABLES = tuple(kind.table for kind in KINDS.values())


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
        with self.write_transaction() as connection:
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
        if not figures:
            return 0
        columns = share_figure.columns.keys()
        # Sorted, so that two servers lock the keys in one order.
        rows = [share_record_row(figure) for figure in sorted(figures, key=share_key)]
        with self._single_write() as connection:
            # Without SQLAlchemy, which takes six times as long for 100,000 rows: on SQLite the bank
            # waits for this transaction.
            place = "%s" if connection.dialect.name == "postgresql" else "?"
            values = f"({', '.join(columns)}) VALUES ({', '.join([place] * len(columns))})"
            insert = f"INSERT INTO share_figure {values} ON CONFLICT DO NOTHING"
            return connection.exec_driver_sql(insert, rows).rowcount

    def delete_share_records(self, before: int) -> int:
        gone, cluster, f = 0, "", share_figure.c
        with self._single_write() as connection:
            # Cluster by cluster, the order of the primary key.
            clusters = select(func.min(f.cluster)).where(f.cluster > bindparam("after"))
            while (name := connection.execute(clusters, {"after": cluster}).scalar()) is not None:
                cluster = name
                old = delete(share_figure).where(f.cluster == cluster, f.day < before)
                gone += connection.execute(old).rowcount
        return gone

    def fold_usage(self) -> int:
        with self._single_write() as connection:
            if connection.dialect.name == "postgresql":
                # Journal, runs and positions of one snapshot: other servers write meanwhile.
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            return fold(connection)

    def check(self, demand: Callable[[Connection], None]) -> None:
        """Call `demand` with a connection before anything else and raise what it raises. Waits for
        no writer.
        """
        with self._read_transaction() as connection:
            demand(connection)

    def integrity_errors(
        self, *, thoroughly: bool = True, at_work: ProgressCallback | None = None
    ) -> list[IntegrityFault]:
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
    def write_transaction(self) -> Iterator[Connection]:
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
        with contention_is_busy(), self.write_transaction() as connection:
            yield connection


class SqlRestore(ABC):
    """Restore over one connection, inside the transaction that its store began.

    The triggers of the journal forbid changes and deletions, also during a restore with `replace`:
    it drops them and creates them again inside its transaction, so no other session sees the
    journal without them.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._revoked: dict[bytes, Instant] = {}

    @abstractmethod
    def _empty(self) -> None:
        """Delete the rows of TABLES, past their triggers."""

    @abstractmethod
    def _insert(self, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert whole rows."""

    def begin(self, *, replace: bool) -> None:
        """Raise Conflict if the store is not empty and must not be replaced."""
        if replace:
            t = schema.token.c
            revoked = self._connection.execute(
                select(t.digest, t.revoked_at).where(t.revoked_at.is_not(None))
            )
            # SQLite stores any type in any column.
            self._revoked = {digest: Instant(at) for digest, at in revoked if isinstance(at, int)}
            delete_sums(self._connection)
            self._empty()
            self.registry(RegistryHead())
        for table in TABLES:
            if self._connection.execute(select(table).limit(1)).first() is not None:
                raise Conflict(
                    f"the store is not empty: there is a {table.name}",
                    remedy="restore into a new database, or add --replace",
                )

    @abstractmethod
    def end(self) -> None:
        """Set the next ids after everything is inserted."""

    def revoked_tokens(self) -> Mapping[bytes, Instant]:
        return self._revoked

    def insert(self, kind: type, rows: Sequence[Any]) -> None:
        self._insert(KINDS[kind].table, map(KINDS[kind].row_of, rows))

    def registry(self, head: RegistryHead) -> None:
        self._connection.execute(update(schema.registry).values(seq=head.seq, link=head.link))


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
