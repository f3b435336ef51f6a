"""A batch on PostgreSQL: whole columns travel as arrays, so that a batch of any size takes the same few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count
from typing import Any

import msgspec
import psycopg
from sqlalchemy import BigInteger, Connection, LargeBinary, Table, Text

from fairbank.bank.allocation import Allocation
from fairbank.bank.needs import Needs
from fairbank.bank.run import RunRecord
from fairbank.bank.working_set import WorkingSet
from fairbank.store import schema
from fairbank.store.contract import Contention
from fairbank.store.postgres.commit import commit_errors
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
from fairbank.store.sql.rows import Row, allocation_of, entry_row, run_of

_SQL = queries("postgres")

_TRIES = 10  # more than there are connections in the pool
_COPIED_FROM = 300  # entries; below that the round trips cost more than they save
_TYPES = {BigInteger: "int8", Text: "text", LargeBinary: "bytea"}

# Columns of bytes.
_LINK_OF_SUMS, _DIGEST, _LINK = 6, 11, 19

_encode = msgspec.json.Encoder().encode


class PostgresTransaction(SqlTransaction):
    """A batch in one transaction at READ COMMITTED: the row locks, not the snapshot, are what keeps others out.

    BEGIN travels with the first statement and COMMIT with the last: a batch of reports waits for the database four times, not six.
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

    def load(self, needs: Needs) -> WorkingSet:
        self._write_what_waits()
        if not self._begun and (needs.closing or not needs.runs):
            self._begin(())
        return super().load(needs)

    def commit(self) -> None:
        """What is still to be written, and COMMIT. Raises Unreachable, which says whether it is known that nothing was carried out."""
        if self._begun:
            with commit_errors(self._connection), self._driver.pipeline():
                self._write_what_waits()
                self._beside.execute("COMMIT")

    def _begin(self, first: Sequence[Callable[[], None]]) -> None:
        """BEGIN, and with it what sends the first statements.

        A connection that died in the pool (the database was restarted) shows itself here, when nothing is lost yet: then the next one
        is tried, and at last a new one.
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

    def _load(self, needs: Needs) -> tuple[list[Allocation], list[RunRecord]]:
        wanted = columns(needs.runs, 4)
        ending = [run in needs.ending for run in needs.runs]
        drawn_now = 0 if needs.office or needs.foretold else needs.entries

        def lock() -> None:
            self._run(
                "lock",
                ([list(needs.allocations)], _funds_wanted(needs), wanted, [ending]),
                drawn_now,
            )

        if self._begun:
            lock()
        else:  # a statement by itself must come next: after a pipeline the database does not count how long we keep it waiting
            self._begin([lock])
        *rows, (*_, self._numbers) = self._cursor.fetchall()
        allocations = [allocation_of(row[:-1]) for row in rows]
        locked = {each.id for each in allocations}
        runs = [run_of(row) for row in self._find("runs", wanted)] if needs.runs else []
        for each in runs:
            if each.allocation not in locked:
                raise Contention(f"run {each.run} arrived while its allocation was not locked yet")
        return allocations, runs

    def _fresh(
        self, needs: Needs
    ) -> tuple[Iterable[int], Iterable[int], Iterable[int], Iterable[int]]:
        if needs.foretold:
            entry, allocation, project, token = self._find("next_ids")[0]
            return count(entry), count(allocation), count(project), count(token)
        if (
            needs.office or len(self._numbers) < needs.entries
        ):  # those drawn before the office was locked are lost: gaps are harmless
            self._numbers = [
                number for (number,) in self._cursor.execute(_SQL["entry_ids"], (needs.entries,))
            ]
        return (
            iter(self._numbers),
            self._one_by_one("allocation_id"),
            self._one_by_one("project_id"),
            self._one_by_one("token_id"),
        )

    def _one_by_one(self, name: str) -> Iterator[int]:
        """Numbers that are taken when they are used, so that what is refused leaves no gap among numbers that people type. A batch
        that is judged again uses the same again.
        """
        taken = self._taken.setdefault(name, [])
        for place in count():
            if place == len(taken):
                taken.append(self._find(name)[0][0])
            yield taken[place]

    def _write_batch(self, work: WorkingSet) -> None:
        if not work.entries:
            return
        sums, users, changed = (
            columns(changed_sums(work), 7),
            columns(changed_users(work), 5),
            columns(changed_runs(work), 19),
        )
        sums[_LINK_OF_SUMS] = _hexadecimal(sums[_LINK_OF_SUMS])
        new, entries = new_runs(work), [entry_row(entry) for entry in work.entries]
        if len(entries) >= _COPIED_FROM:
            self._copy(schema.run, new)
            self._copy(schema.journal, entries)
            new, entries = [], []
        added = columns(entries, 20)
        added[_DIGEST], added[_LINK] = _hexadecimal(added[_DIGEST]), _hexadecimal(added[_LINK])
        self._write_what_waits()
        self._unwritten = _arrays((sums, users, changed, columns(new, 28), added))

    def _write_what_waits(self) -> None:
        if self._unwritten is not None:
            arrays, self._unwritten = self._unwritten, None
            self._cursor.execute(_SQL["write"], arrays, prepare=True, binary=True)

    def _copy(self, table: Table, rows: list[tuple[Any, ...]]) -> None:
        """Add rows by COPY: more round trips than in the statement with the others, less work for each row."""
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
    return [_array(column) for table in tables for column in table]


def _funds_wanted(needs: Needs) -> Columns:
    """Project, resource, and what of their allocations: first and last instant, whether also those that are not shared, and whether only
    if a run that ends is not in the books.
    """
    found = (
        (late, *each)
        for late, funds in ((False, needs.funds), (True, needs.late))
        for each in funds.items()
    )
    return columns(
        [
            (project, resource, reach.first, reach.last, reach.own, late)
            for late, (project, resource, _), reach in found
        ],
        6,
    )


def _array(column: Sequence[Any]) -> Any:
    """A column of numbers, texts or None as PostgreSQL reads arrays.

    A JSON array between other brackets is that, and made in a tenth of the time that the driver takes for a list: quotes
    and backslashes are escaped alike, and null is NULL. Only the escapes for control characters differ; a text with one
    goes the long way. Where there is nothing but None nothing need travel: `unnest` fills up what is shorter than its neighbours.
    """
    if column and column[0] is None and column.count(None) == len(column):
        return "{}"
    text = _encode(column).decode()
    if "\\" in text and "\\" in text.replace("\\\\", "").replace('\\"', ""):
        return list(column)
    return f"{{{text[1:-1]}}}"


def _hexadecimal(column: Sequence[bytes | None]) -> list[str | None]:
    """Bytes as PostgreSQL reads them."""
    return [None if each is None else f"\\x{each.hex()}" for each in column]
