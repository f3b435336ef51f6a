"""Batch on PostgreSQL. Columns are sent as arrays, so a batch of any size takes the same
statements.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any

import msgspec
import psycopg
from sqlalchemy import BigInteger, Connection, LargeBinary, Table, Text, exc

from fairbank.bank.allocation import Allocation
from fairbank.bank.lock_set import LockSet
from fairbank.bank.run import RunRecord
from fairbank.bank.transaction_data import NewIds, TransactionData
from fairbank.core.errors import Unavailable
from fairbank.store import schema
from fairbank.store.contract import Contention
from fairbank.store.queries import queries
from fairbank.store.sql.batch import (
    Columns,
    SqlTransaction,
    changed_runs,
    changed_sums,
    changed_users,
    columns,
    new_runs,
)
from fairbank.store.sql.db_errors import first_line
from fairbank.store.sql.rows import Row, allocation_of, entry_row, run_of

_SQL = queries("postgres")

_TRIES = 10  # more than there are connections in the pool
_COPIED_FROM = 300  # entries; below that the round trips cost more than they save
_TYPES = {BigInteger: "int8", Text: "text", LargeBinary: "bytea"}

# Columns of bytes.
_LINK_OF_SUMS, _DIGEST, _LINK = 6, 11, 19

_encode = msgspec.json.Encoder().encode


class PostgresTransaction(SqlTransaction):
    """Batch in one transaction at READ COMMITTED. Row locks, not the snapshot, exclude other
    writers: a SELECT with FOR NO KEY UPDATE that has waited for a lock returns the newest committed
    row. What is read without a lock, such as runs, is read in a later statement, which sees all
    that was committed before.

    BEGIN is sent with the first statement and COMMIT with the last: a batch of reports takes four
    round trips, not six.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._begun = False
        self._unwritten: list[Any] | None = (
            None  # what the statement takes that goes with the commit
        )
        self._open_cursors()
        self._numbers: list[int] = []  # for entries, rising
        self._taken: dict[str, list[int]] = {}

    def _open_cursors(self) -> None:
        self._cursor, self._beside = (
            psycopg.RawCursor(self._driver),
            psycopg.RawCursor(self._driver),
        )

    def load(self, locks: LockSet) -> TransactionData:
        self._write_what_waits()
        if not self._begun and (locks.closing or not locks.runs):
            self._begin(())
        return super().load(locks)

    def commit(self) -> None:
        """Send the pending statements and COMMIT. Raises Unavailable, which says whether the
        outcome is known.
        """
        if self._begun:
            with commit_errors(self._connection), self._driver.pipeline():
                self._write_what_waits()
                self._beside.execute("COMMIT")

    def _begin(self, first: Sequence[Callable[[], None]]) -> None:
        """Send BEGIN with the first statements.

        A pooled connection that died (the database was restarted) fails here, when nothing is lost:
        the next one is tried, finally a new one.
        """
        for left in reversed(range(_TRIES)):
            try:
                with self._driver.pipeline() if first else nullcontext():
                    self._beside.execute("BEGIN")
                    for send in first:
                        send()
            except psycopg.OperationalError:
                if not left or not self._driver.closed:
                    raise
                self._renew()
            else:
                self._begun = True
                return

    def _renew(self) -> None:
        self._connection.invalidate()
        self._driver = self._connection.connection.driver_connection
        self._open_cursors()

    def _find(self, name: str, *wanted: Columns) -> Sequence[Row]:
        self._run(name, wanted)
        return self._cursor.fetchall()

    def _load(self, locks: LockSet) -> tuple[list[Allocation], list[RunRecord]]:
        wanted = columns(locks.runs, 4)
        ending = [run in locks.ending for run in locks.runs]
        drawn_now = 0 if locks.registry or locks.dry_run else locks.entries

        def lock() -> None:
            self._run(
                "lock",
                ([list(locks.allocations)], _filter_columns(locks), wanted, [ending]),
                drawn_now,
            )

        if self._begun:
            lock()
        else:
            # A plain statement must come next: after a pipeline PostgreSQL does not apply
            # idle_in_transaction_session_timeout to us.
            self._begin([lock])
        *rows, (*_, self._numbers) = self._cursor.fetchall()
        allocations = [allocation_of(row[:-1]) for row in rows]
        locked = {allocation.id for allocation in allocations}
        runs = [run_of(row) for row in self._find("runs", wanted)] if locks.runs else []
        for record in runs:
            if record.allocation not in locked:
                raise Contention(
                    f"run {record.reported.run} arrived while its allocation was not locked yet"
                )
        return allocations, runs

    def _new_ids(self, locks: LockSet) -> NewIds:
        if locks.dry_run:
            return NewIds(*map(count, self._find("next_ids")[0]))
        # Ids drawn before the registry was locked are lost. Gaps in the ids are harmless.
        if locks.registry or len(self._numbers) < locks.entries:
            self._numbers = [
                number for (number,) in self._cursor.execute(_SQL["entry_ids"], (locks.entries,))
            ]
        return NewIds(
            self._numbers,
            self._one_by_one("allocation_id"),
            self._one_by_one("project_id"),
            self._one_by_one("token_id"),
        )

    def _one_by_one(self, name: str) -> Iterator[int]:
        """Yield ids that are drawn when they are used, so that a refusal leaves no gap in ids that
        people type. A batch that is applied again uses the same ids.
        """
        numbers = self._taken.setdefault(name, [])
        for place in count():
            if place == len(numbers):
                numbers.append(self._find(name)[0][0])
            yield numbers[place]

    def _write_batch(self, data: TransactionData) -> None:
        if not data.entries:
            return
        sums, users, changed = (
            columns(changed_sums(data), 7),
            columns(changed_users(data), 5),
            columns(changed_runs(data), 20),
        )
        sums[_LINK_OF_SUMS] = hex_texts(sums[_LINK_OF_SUMS])
        new, entries = new_runs(data), [entry_row(entry) for entry in data.entries]
        if len(entries) >= _COPIED_FROM:
            self._copy(schema.run, new)
            self._copy(schema.journal, entries)
            new, entries = [], []
        added = columns(entries, 20)
        added[_DIGEST], added[_LINK] = hex_texts(added[_DIGEST]), hex_texts(added[_LINK])
        self._write_what_waits()
        self._unwritten = _arrays((sums, users, changed, columns(new, 29), added))

    def _write_what_waits(self) -> None:
        if self._unwritten is not None:
            arrays, self._unwritten = self._unwritten, None
            self._cursor.execute(_SQL["write"], arrays, prepare=True, binary=True)

    def _copy(self, table: Table, rows: list[tuple[Any, ...]]) -> None:
        """Insert rows by COPY: more round trips than with the other statements, less work per
        row.
        """
        if rows:
            with self._cursor.copy(f"COPY {table.name} FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types([_TYPES[type(column.type)] for column in table.columns])
                for row in rows:
                    copy.write_row(row)

    def _run(self, name: str, tables: Iterable[Columns], *more: int) -> None:
        self._cursor.execute(
            _SQL[name], [*_arrays(tables), *map(str, more)], prepare=True, binary=True
        )


def _arrays(tables: Iterable[Columns]) -> list[Any]:
    return [array_text(column) for table in tables for column in table]


def _filter_columns(locks: LockSet) -> Columns:
    """Return the columns of the filters: project, resource, first and last time, whether also
    allocations that are not shared, and whether only for an end whose run is unknown.
    """
    filters = (
        (late, *entry)
        for late, wanted in ((False, locks.allocation_filters), (True, locks.without_hold))
        for entry in wanted.items()
    )
    return columns(
        [
            (project, resource, reach.first, reach.last, reach.own, late)
            for late, (project, resource, _), reach in filters
        ],
        6,
    )


def array_text(column: Sequence[Any]) -> Any:
    """Return a column of integers, texts or None as PostgreSQL's array literal.

    A JSON array in other brackets is such a literal, built in a tenth of the driver's time for a
    list: quotes and backslashes are escaped alike, and null is NULL. Only the escapes of control
    characters differ; a text with one takes the driver's path. A column of None is sent empty:
    `unnest` pads it.
    """
    if column and column[0] is None and column.count(None) == len(column):
        return "{}"
    text = _encode(column).decode()
    if "\\" in text and "\\" in text.replace("\\\\", "").replace('\\"', ""):
        return list(column)
    return f"{{{text[1:-1]}}}"


def hex_texts(column: Sequence[bytes | None]) -> list[str | None]:
    """Return bytes in PostgreSQL's hexadecimal form."""
    return [None if value is None else f"\\x{value.hex()}" for value in column]


# --- COMMIT, and its outcome if the connection is lost ---

# The connection is lost, or the server ends it: also in the middle of a commit.
_LOST = ("08", "57P")


@contextmanager
def commit_errors(connection: Connection) -> Iterator[None]:
    """Translate a lost connection during COMMIT into Unavailable.

    Before COMMIT was sent nothing was carried out, and the error says so; afterwards the outcome is
    unknown.
    """
    _demand_session(connection)
    try:
        yield
    except (exc.DBAPIError, psycopg.OperationalError) as error:
        complaint = error.orig if isinstance(error, exc.DBAPIError) else error
        if isinstance(complaint, psycopg.OperationalError) and (
            complaint.sqlstate or "08"
        ).startswith(_LOST):
            raise Unavailable(
                "the database does not answer any more, and whether this was carried out is not"
                f" known: {first_line(complaint)}",
                remedy=(
                    "ask again with the same key: it counts once; without a key look into the"
                    " statement first"
                ),
            ) from error
        raise


def _demand_session(connection: Connection) -> None:
    """Raise Unavailable if the session has ended.

    An idle database sends nothing, so readable data is its farewell or the end of the connection.
    Only then a query is worthwhile.
    """
    driver: Any = connection.connection.driver_connection
    if not driver.closed and not _is_alive(driver):
        return
    try:
        connection.exec_driver_sql("SELECT 1")
    except exc.DBAPIError as error:
        raise Unavailable(
            "the database does not answer any more, and this was not carried out:"
            f" {first_line(error.orig)}",
            remedy="try again",
        ) from error


def _is_alive(driver: psycopg.Connection[Any]) -> bool:
    line = select.poll()
    line.register(driver.fileno(), select.POLLIN)
    return bool(line.poll(0))
