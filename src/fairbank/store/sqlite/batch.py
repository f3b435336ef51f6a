"""Batch on SQLite. Keys are passed as JSON; prepared statements write the rows, many per insert."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain, count, islice
from operator import attrgetter
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.lock_set import LockSet
from fairbank.bank.run import RunRecord
from fairbank.bank.transaction_data import NewIds, TransactionData
from fairbank.cluster.job import Run
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

_SQL = queries("sqlite")

_WHAT = attrgetter("first", "last", "own")
_encode = msgspec.json.Encoder().encode

_ROWS_PER_INSERT = 50
"""New rows per statement. The fixed cost of a statement, such as evaluating the partial indexes of
the journal, is about that of storing a row.
"""


class SqliteTransaction(SqlTransaction):
    """Batch in a transaction begun by BEGIN IMMEDIATE: no other process writes until it ends."""

    def _find(self, name: str, *wanted: Columns) -> Sequence[Row]:
        return self._rows(name, *(list(zip(*table, strict=True)) for table in wanted))

    def _rows(self, name: str, *wanted: Collection[Any]) -> Sequence[Row]:
        rows: list[Row] = self._driver.execute(
            _SQL[name], [_encode(part).decode() for part in wanted]
        ).fetchall()
        return rows

    def _new_ids(self, locks: LockSet) -> NewIds:
        return NewIds(*(count((last or 0) + 1) for last in self._find("last_ids")[0]))

    def _load(self, locks: LockSet) -> tuple[list[Allocation], list[RunRecord]]:
        # Nothing can change between the two statements, so the runs may be read first: they name
        # their allocations.
        runs = self._runs(locks.runs) if locks.runs else []
        numbers = locks.allocations.union(run.allocation for run in runs)
        filters = [
            (project, resource, *_WHAT(reach))
            for project, resource, reach in locks.filters({record.reported.run for record in runs})
        ]
        rows = self._rows("allocations", [(number,) for number in numbers], filters)
        return [allocation_of(row) for row in rows], runs

    def _runs(self, wanted: set[Run]) -> list[RunRecord]:
        records = map(run_of, self._rows("runs", {run.job_id for run in wanted}))
        return [record for record in records if record.reported.run in wanted]

    def _write_batch(self, data: TransactionData) -> None:
        self._each("write_sums", _number_last(columns(changed_sums(data), 7)))
        self._each("write_users", columns(changed_users(data), 5))
        self._each("write_changed_runs", _number_last(columns(changed_runs(data), 20)))
        self._add_all("write_new_runs", columns(new_runs(data), 29))
        self._add_all("write_entries", columns([entry_row(entry) for entry in data.entries], 20))

    def _each(self, name: str, table: Columns) -> None:
        """Execute the named statement once for each row of `table`."""
        if table[0]:
            values, rows = _bound(table)
            self._driver.executemany(_statement(name, values), rows)

    def _add_all(self, name: str, table: Columns) -> None:
        """Insert the rows of `table` by the named statement, many per statement, the rest one by
        one.
        """
        if table[0]:
            values, rows = _bound(table)
            for _ in range(len(table[0]) // _ROWS_PER_INSERT):
                self._driver.execute(
                    _statement(name, values, _ROWS_PER_INSERT),
                    list(chain.from_iterable(islice(rows, _ROWS_PER_INSERT))),
                )
            self._driver.executemany(_statement(name, values), rows)


def _number_last(table: Columns) -> Columns:
    return [*table[1:], table[0]]


def _bound(table: Columns) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """Return the SQL for each column, and the parameters of each row.

    Passing a value to the driver costs about as much as storing it; None and bytes cost ten times
    that because the driver looks for an adapter. So a column of only None or 0 is written into the
    statement, and bytes are passed as bytearray, which the driver knows. The key is never 0, so
    every row has a parameter.
    """
    values = tuple(_value_for(column) for column in table)
    handed = [
        _known_to_driver(column)
        for column, value in zip(table, values, strict=True)
        if value == "?"
    ]
    return values, zip(*handed, strict=True)


def _value_for(column: Sequence[Any]) -> str:
    """Return the SQL for a column."""
    first = column[0]
    if (first is None or first == 0) and column.count(first) == len(column):
        return "NULL" if first is None else "0"
    return "?"


def _known_to_driver(column: Sequence[Any]) -> Sequence[Any]:
    return (
        [None if value is None else bytearray(value) for value in column]
        if isinstance(column[0], bytes)
        else column
    )


@lru_cache(maxsize=1_000)
def _statement(name: str, values: tuple[str, ...], rows: int = 1) -> str:
    """Return the named statement with these values in place of its parameters; an insert gets
    several rows.
    """
    before, *after = _SQL[name].split("?")
    statement = before + "".join(
        f"{value}{text}" for value, text in zip(values, after, strict=True)
    )
    head, keyword, row = statement.partition("VALUES ")
    return head + keyword + ", ".join([row] * rows)
