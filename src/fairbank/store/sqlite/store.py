"""Store on SQLite: a file, one writer, a few readers.

With a write-ahead log readers never wait for the writer. With the journal mode "truncate" they wait
during each commit, and the writer waits for readers.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, Table, create_engine
from sqlalchemy.exc import DBAPIError

from fairbank.core.errors import InvalidInput, NotFound, Unavailable
from fairbank.core.os_errors import translate_os_error
from fairbank.core.time import Instant
from fairbank.store.contract import Contention, IntegrityFault, ProgressCallback
from fairbank.store.queries import queries
from fairbank.store.sql.db_errors import DISK_FULL, translated_errors
from fairbank.store.sql.store import TABLES, SqlRestore, SqlStore, contention_is_busy
from fairbank.store.sqlite.batch import SqliteTransaction
from fairbank.store.sqlite.driver import VERSION, driver, is_wal_safe
from fairbank.store.sqlite.integrity import index_faults, integrity_errors

_SQL = queries("sqlite")
TIMEOUT_SECONDS = 30
_CACHE_KIB = 64 * 1024
_WAL_PAGES = 4_000
"""Checkpoint size: 16 MiB. A batch over many allocations writes 4 MiB, SQLite's default, by
itself.
"""
_CHECKPOINT_MS = 1_000
"""Wait for readers when the log is emptied on a full disk; writers wait meanwhile."""
PROGRESS_STEPS = 100_000
"""SQLite instructions between two progress calls: some hundredths of a second of a full check."""
JOURNALS = ("wal", "truncate")
_LOCKED = "locked"
"""Part of SQLite's message for a locked file."""


class SqliteStore(SqlStore):
    """Store with one connection that writes, in its own pool, and a few that read."""

    # Takes the one write lock of the database at once, so no row needs a lock, and a second process
    # waits before it has read anything.
    begin_writing = "BEGIN IMMEDIATE"
    begin_reading = "BEGIN"

    def __init__(
        self,
        path: Path,
        *,
        journal: str | None = None,
        readers: int = 12,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._was_full = False
        super().__init__(
            writing_engine(path, journal, timeout_seconds),
            _pool(lambda: _read_only(path, timeout_seconds), readers, timeout_seconds),
        )

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Begin a write transaction. After one that found the disk full, empty the log first.

        SQLite empties its log only after a commit, so a log that has filled the disk would use
        any space that is freed, and then fail again.

        Raises:
            Contention: the disk was full, and emptying the log has freed some of it.
        """
        if self._was_full and self._empty_log() is not None:
            self._was_full = False
        try:
            with super().write_transaction() as connection:
                yield connection
        except Unavailable as full:
            if not full.is_disk_full:
                raise
            self._was_full = True
            if not self._empty_log():
                raise
            raise Contention("the disk was full, and SQLite's log had to be emptied") from full

    def _empty_log(self) -> int | None:
        """Move the write-ahead log into the file, and return the number of pages that it had.

        None if the file could not grow, or if readers still need the log.
        """
        try:
            with self._writer_slot(), self._writer.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {_CHECKPOINT_MS}")
                try:
                    pages = connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").one()[1]
                    busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
                finally:
                    timeout = round(self._timeout_seconds * 1_000)
                    connection.exec_driver_sql(f"PRAGMA busy_timeout = {timeout}")
        except (DBAPIError, Contention):
            return None
        return None if busy else max(0, pages)  # -1 without a log

    def _transaction_over(self, connection: Connection) -> SqliteTransaction:
        return SqliteTransaction(connection)

    def _filling_over(self, connection: Connection) -> SqliteRestore:
        return SqliteRestore(connection)

    def check(self, demand: Callable[[Connection], None]) -> None:
        """Set the journal mode, then check as the base class does.

        Raises InvalidInput if the mode is impossible; Busy.
        """
        with contention_is_busy(), translated_errors(), self._writer.connect():
            super().check(demand)

    def integrity_errors(
        self, *, thoroughly: bool = True, at_work: ProgressCallback | None = None
    ) -> list[IntegrityFault]:
        """Return the errors of `PRAGMA integrity_check`. Raises Corrupt, Unavailable."""
        with self._read_transaction() as connection, _progress_reports(connection, at_work):
            return integrity_errors(connection) if thoroughly else index_faults(connection)

    def use_nonce(self, nonce: bytes, uid: int, now: Instant, expires: Instant) -> bool:
        with self._single_write() as connection:
            connection.exec_driver_sql(_SQL["forget"], (now,))
            return (
                connection.exec_driver_sql(_SQL["spend"], (nonce, uid, expires)).first() is not None
            )


@contextmanager
def _progress_reports(connection: Connection, at_work: ProgressCallback | None) -> Iterator[None]:
    """Call `at_work` while statements of this connection run."""
    if at_work is None:
        yield
        return
    raw: Any = connection.connection.driver_connection
    at_work()
    raw.set_progress_handler(at_work, PROGRESS_STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)


def writing_engine(
    path: Path, journal: str | None, timeout_seconds: float = TIMEOUT_SECONDS
) -> Engine:
    """Return the engine that writes to a database file that exists.

    Raises InvalidInput if the journal mode fails.

    Args:
        path: the database file.
        journal: SQLite's journal mode, wal or truncate; None: the default of `journal_mode`.
        timeout_seconds: how long a transaction waits for a lock, and a thread for the connection.
    """
    chosen = journal_mode(journal, VERSION)
    return _pool(lambda: _read_write(path, chosen, timeout_seconds), 1, timeout_seconds)


def journal_mode(mode: str | None, version: tuple[int, int, int]) -> str:
    """Return the journal mode: the one requested; by default wal, or truncate if wal is unsafe
    here.

    Raises InvalidInput for a mode that is unknown or unsafe.
    """
    if mode is None:
        return "wal" if is_wal_safe(version) else "truncate"
    if mode not in JOURNALS:
        raise InvalidInput(
            f"{mode!r} is not a journal",
            field="store.journal",
            remedy=f"one of {', '.join(JOURNALS)}",
        )
    if mode == "wal" and not is_wal_safe(version):
        raise InvalidInput(
            f"SQLite {'.'.join(map(str, version))} can lose what was committed to its write-ahead"
            " log (the WAL-reset bug)",
            field="store.journal",
            remedy=(
                "pip install pysqlite3, which brings a fixed SQLite, or set store.journal ="
                ' "truncate", which is safe but slower'
            ),
        )
    return mode


def create_file(path: Path) -> None:
    """Create an empty file that only its owner can read, unless it exists. Raises NotFound if its
    directory is missing; Forbidden, FairbankError.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except FileNotFoundError as missing:
        raise NotFound(
            f"there is no directory {path.parent}",
            field="store.url",
            remedy=f"mkdir -p {shlex.quote(str(path.parent))}",
        ) from missing
    except OSError as bad:
        raise translate_os_error(bad, f"cannot make {path}", field="store.url") from bad


def reading_engine(path: Path) -> Engine:
    """Return an engine that only reads `path`."""
    return _pool(lambda: _read_only(path, TIMEOUT_SECONDS), 1, TIMEOUT_SECONDS)


def _pool(creator: Any, size: int, timeout_seconds: float) -> Engine:
    return create_engine(
        "sqlite://",
        module=driver,
        creator=creator,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        pool_timeout=timeout_seconds,
    )


def _read_write(path: Path, journal: str, timeout_seconds: float) -> Any:
    connection = _connect(path, "rw", timeout_seconds)
    try:
        _choose_journal(connection, path, journal, timeout_seconds)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # Without it REPLACE would pass the triggers that forbid deleting.
        connection.execute("PRAGMA recursive_triggers = ON")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _choose_journal(connection: Any, path: Path, journal: str, timeout_seconds: float) -> None:
    """Set the journal mode. A file with a write-ahead log is locked while it is converted."""
    if journal == "truncate":
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        chosen = _set_journal(connection, journal)
    else:
        chosen = _set_journal_with_retry(connection, journal, timeout_seconds)
    if chosen != journal:
        raise InvalidInput(
            f"{path} cannot be given the journal {journal!r}: {chosen}",
            field="store.journal",
            remedy="stop whatever else has the file open, then try again",
        )
    if journal == "truncate":
        connection.execute("PRAGMA locking_mode = NORMAL")
        # SQLite releases the exclusive lock at the next access.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _set_journal_with_retry(connection: Any, journal: str, timeout_seconds: float) -> str:
    """Set the journal mode, waiting for other users of the file until the timeout.

    SQLite waits for others when a transaction begins, but not when the journal mode changes: two
    processes that create a store at once would fail.
    """
    until = time.monotonic() + timeout_seconds
    while _LOCKED in (chosen := _set_journal(connection, journal)) and time.monotonic() < until:
        try:
            connection.execute("BEGIN EXCLUSIVE")  # waits until no other process writes
        except driver.OperationalError as locked:
            return str(locked)
        connection.execute("ROLLBACK")
    return chosen


def _set_journal(connection: Any, journal: str) -> str:
    """Set the journal mode. Return it, or SQLite's message if the file is locked."""
    try:
        (chosen,) = connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()
    except driver.OperationalError as locked:
        if DISK_FULL in str(locked):
            raise
        return str(locked)
    return str(chosen)


def _read_only(path: Path, timeout_seconds: float) -> Any:
    connection = _connect(path, "ro", timeout_seconds)
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB // 4}")
    return connection


def _connect(path: Path, mode: str, timeout_seconds: float) -> Any:
    """Return a connection in autocommit mode. The pools pass it from thread to thread, one at a
    time.
    """
    return driver.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=timeout_seconds,
    )


class SqliteRestore(SqlRestore):
    """Restore by DELETE and INSERT; in SQLite the triggers, too, change with the transaction."""

    def end(self) -> None:
        """Do nothing: SQLite continues its ids from the existing rows."""

    def _empty(self) -> None:
        guards = self._connection.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in guards:
            self._connection.exec_driver_sql(f"DROP TRIGGER {name}")
        for table in reversed(TABLES):
            self._connection.exec_driver_sql(f"DELETE FROM {table.name}")  # noqa: S608 (our table)
        for _, made_by in guards:
            self._connection.exec_driver_sql(made_by)

    def _insert(self, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        if values := list(rows):
            # By name: a store can have more columns, or have them in another order.
            columns = table.columns.keys()
            places = f"({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"
            statement = f"INSERT INTO {table.name} {places}"
            self._connection.exec_driver_sql(statement, values)
