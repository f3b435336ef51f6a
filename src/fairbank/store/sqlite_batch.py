"""A batch on SQLite: wanted keys travel as JSON, rows are written one by one by statements that are prepared once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.book import Book
from fairbank.bank.needs import Needs
from fairbank.bank.run import RunRecord
from fairbank.store.batch import Columns, SqlTransaction, changed_runs, changed_sums, changed_users, columns, new_runs
from fairbank.store.queries import queries
from fairbank.store.rows import Row, allocation_of, entry_row, run_of

_SQL = queries("sqlite")

_encode = msgspec.json.Encoder().encode


class SqliteTransaction(SqlTransaction):
    """A batch in one transaction that began with BEGIN IMMEDIATE: nobody else writes until it ends."""

    def _find(self, name: str, *wanted: Columns) -> Sequence[Row]:
        tables = tuple(_encode(list(zip(*table, strict=True))).decode() for table in wanted)
        rows: list[Row] = self._driver.execute(_SQL[name], tables).fetchall()
        return rows

    def _fresh(self, needs: Needs) -> tuple[Iterable[int], Iterable[int], Iterable[int], Iterable[int]]:
        entry, allocation, project, token = (count((last or 0) + 1) for last in self._find("last_ids")[0])
        return entry, allocation, project, token

    def _load(self, needs: Needs) -> tuple[list[Allocation], list[RunRecord]]:
        # Nothing can change between the two statements, so the runs may come first and say where they belong.
        runs = [run_of(row) for row in self._find("runs", columns(needs.runs, 4))] if needs.runs else []
        numbers = needs.allocations.union(each.allocation for each in runs)
        found = self._find("allocations", [list(numbers)], columns(needs.funds, 2))
        return [allocation_of(row) for row in found], runs

    def _write_batch(self, book: Book) -> None:
        self._each("write_sums", map(_number_last, changed_sums(book)))
        self._each("write_users", changed_users(book))
        self._each("write_changed_runs", map(_number_last, changed_runs(book)))
        self._each("write_new_runs", new_runs(book))
        self._each("write_entries", map(entry_row, book.entries))

    def _each(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._driver.executemany(_SQL[name], rows)


def _number_last(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[1:], row[0])
