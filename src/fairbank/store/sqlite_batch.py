"""A batch on SQLite: wanted keys travel as JSON, rows are written one by one by statements that are prepared once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import msgspec

from fairbank.bank.book import Book
from fairbank.bank.needs import Needs
from fairbank.store.batch import Columns, SqlTransaction, changed_run_row, sums_row
from fairbank.store.queries import queries
from fairbank.store.rows import Row, entry_row, run_row

_SQL = queries("sqlite")

_encode = msgspec.json.Encoder().encode


class SqliteTransaction(SqlTransaction):
    """A batch in one transaction that began with BEGIN IMMEDIATE: nobody else writes until it ends."""

    def _find(self, name: str, *wanted: Columns) -> Sequence[Row]:
        tables = tuple(_encode(list(zip(*table, strict=True))).decode() for table in wanted)
        rows: list[Row] = self._driver.execute(_SQL[name], tables).fetchall()
        return rows

    def _fresh(self, needs: Needs) -> tuple[Iterable[int], Iterable[int], Iterable[int]]:
        entry, allocation, project = (count((last or 0) + 1) for last in self._find("last_ids")[0])
        return entry, allocation, project

    def _write_batch(self, book: Book) -> None:
        self._each("write_sums", (_number_last(sums_row(book.allocations[number])) for number in book.touched - book.opened))
        users = ((*pair, user.charged, user.held, user.cap) for pair in book.changed_users for user in (book.users[pair],))
        self._each("write_users", users)
        self._each("write_changed_runs", (_number_last(changed_run_row(book.runs[run])) for run in book.changed_runs))
        self._each("write_new_runs", (run_row(book.runs[run]) for run in book.new_runs))
        self._each("write_entries", map(entry_row, book.entries))

    def _each(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._driver.executemany(_SQL[name], rows)


def _number_last(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[1:], row[0])
