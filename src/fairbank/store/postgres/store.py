"""Store on PostgreSQL 15 or newer, for many users or several servers on one database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from sqlalchemy import URL, Connection, Engine, Table, create_engine, event

from fairbank.core.errors import Conflict
from fairbank.core.time import Instant
from fairbank.store.contract import Transaction
from fairbank.store.postgres.batch import PostgresTransaction, commit_errors
from fairbank.store.queries import queries
from fairbank.store.sql.db_errors import translated_errors
from fairbank.store.sql.store import (
    TABLES,
    SqlRestore,
    SqlStore,
    contention_is_busy,
    transaction_on,
)

_SQL = queries("postgres")
TIMEOUT_SECONDS = 30
_ENCODING = "UTF8"

# How a connection is made, unless the URL says otherwise: a server that vanished is noticed.
_CONNECTING = {
    "connect_timeout": "10",
    "application_name": "fairbank",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
}

_WRITING = {
    # Every statement of a batch selects rows by key. Generic plans without sequential scans keep it
    # so even while the statistics of a young, fast-growing table are stale.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
# PostgreSQL prefers to scan a whole table with several processes to reading a part of it through
# an index: usage of a million charges took twice the time and three times the processor time.
_READING = {"jit": "off", "max_parallel_workers_per_gather": "0"}


class PostgresStore(SqlStore):
    """Store with two connections for batches, a few for nonces, and a pool for readers."""

    # One batch is applied while the database writes the other. More than two find no processor,
    # because Python's threads share one.
    writers = 2

    begin_writing = "BEGIN"
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(
        self, url: URL, *, readers: int = 12, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        # No transaction of a batch lasts for ever: neither a lock, nor a statement, nor a pause of
        # ours. Readers have no limits (SqlReader): they may read whole tables, and block no writer.
        timeout, more = (f"{round(timeout_seconds * 1000 * times)}ms" for times in (1, 2))
        limits = {
            "lock_timeout": timeout,
            "statement_timeout": more,
            "idle_in_transaction_session_timeout": more,
        }
        super().__init__(
            _engine(url, _WRITING | limits, self.writers + 3, timeout_seconds),
            _engine(
                url,
                _READING | {"lock_timeout": timeout, "statement_timeout": more},
                readers,
                timeout_seconds,
            ),
        )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._writer_slot(), translated_errors(), self._writer.connect() as connection:
            transaction = self._transaction_over(connection)  # it begins with what it loads first
            yield transaction
            transaction.commit()

    def _transaction_over(self, connection: Connection) -> PostgresTransaction:
        return PostgresTransaction(connection)

    def _filling_over(self, connection: Connection) -> PostgresRestore:
        return PostgresRestore(connection)

    def _commit(self, connection: Connection) -> None:
        with commit_errors(connection):
            connection.commit()

    def use_nonce(self, nonce: bytes, uid: int, now: Instant, expires: Instant) -> bool:
        """Store a nonce until it expires. Return False if it was used before. Does not wait for
        batches. Raises Busy, Unavailable.
        """
        with (
            contention_is_busy(),
            translated_errors(),
            transaction_on(self._writer, self.begin_writing) as connection,
        ):
            driver: Any = connection.connection.driver_connection
            fresh = (
                psycopg.RawCursor(driver)
                .execute(_SQL["spend"], (nonce, uid, expires, now))
                .fetchone()
                is not None
            )
            connection.commit()
        return fresh


def migrating_engine(url: URL) -> Engine:
    """Return an engine without time limits. Its connections raise Conflict unless the database is
    UTF-8.
    """
    return _engine(url, {"lock_timeout": f"{TIMEOUT_SECONDS}s"}, 1, TIMEOUT_SECONDS)


def _engine(url: URL, settings: dict[str, str], size: int, timeout_seconds: float) -> Engine:
    engine = create_engine(
        url.update_query_dict(
            {key: value for key, value in _CONNECTING.items() if key not in url.query}
        ),
        isolation_level="AUTOCOMMIT",
        pool_size=size,
        max_overflow=0,
        pool_timeout=timeout_seconds,
    )
    durable = (
        "SELECT set_config('synchronous_commit', 'on', false) WHERE"
        " current_setting('synchronous_commit') = 'off'"
    )
    configure = "SELECT " + ", ".join(
        f"set_config('{name}', '{value}', false)" for name, value in settings.items()
    )

    # Before the dialect's own first query, which expects text that can be read.
    @event.listens_for(engine, "connect", insert=True)
    def _demand_utf8(connection: psycopg.Connection[Any], _record: object) -> None:
        encoding = connection.info.parameter_status("server_encoding") or _ENCODING
        if encoding != _ENCODING:
            connection.close()
            raise _other_encoding(encoding)

    @event.listens_for(engine, "connect")
    def _configure(connection: psycopg.Connection[Any], _record: object) -> None:
        connection.execute(configure)
        connection.execute(durable)

    return engine


def _other_encoding(encoding: str) -> Conflict:
    """Return the error for a database that is not UTF-8. LATIN1 cannot store most names and
    comments, and SQL_ASCII returns bytes.
    """
    return Conflict(
        f"the database's encoding is {encoding}, and the ledger is kept in {_ENCODING}",
        field="store.url",
        remedy=(
            f"create the database with ENCODING '{_ENCODING}' (createdb -E {_ENCODING} -T template0"
            " NAME)"
        ),
    )


_GUARDED = ("allocation", "run", "journal")

# Every batch begins by locking rows of these two tables, in this order. So a restore waits for the
# batches in progress and keeps new ones out, without a deadlock; readers go on.
_ALONE = "LOCK TABLE allocation, registry IN EXCLUSIVE MODE"

# The statement limits of a batch are not meant for a restore.
_LIMITS = (
    "SELECT set_config('statement_timeout', '0', true),"
    " set_config('idle_in_transaction_session_timeout', '0', true)"
)

# The next numbers follow those of the backup. Entry numbers also follow all that were ever used
# here: a reader that follows the journal goes on from its last number.
_NUMBERING = """
SELECT setval('project_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM project), false),
       setval('allocation_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM allocation), false),
       setval('token_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM token), false),
       setval('entry_id_seq',
              greatest(nextval('entry_id_seq'), (SELECT coalesce(max(id), 0) + 1 FROM journal)),
              false)
"""


class PostgresRestore(SqlRestore):
    """Restore by DELETE and COPY, both undone with the transaction.

    TRUNCATE would be faster, but it blocks readers, and a reader with an older snapshot would find
    the tables empty.
    """

    def begin(self, *, replace: bool) -> None:
        self._connection.exec_driver_sql(_LIMITS)
        self._connection.exec_driver_sql(_ALONE)
        super().begin(replace=replace)

    def end(self) -> None:
        self._connection.exec_driver_sql(_NUMBERING)

    def _empty(self) -> None:
        for name in _GUARDED:
            self._connection.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        for table in reversed(TABLES):
            self._connection.exec_driver_sql(f"DELETE FROM {table.name}")  # noqa: S608 (our table)
        for name in _GUARDED:
            self._connection.exec_driver_sql(f"ALTER TABLE {name} ENABLE TRIGGER USER")

    def _insert(self, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        names = ", ".join(column.name for column in table.columns)
        connection = cast("psycopg.Connection[Any]", self._connection.connection.driver_connection)
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)
