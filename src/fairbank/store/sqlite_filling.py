"""Filling SQLite from a backup, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Table

from fairbank.store.filling import TABLES, SqlFilling


class SqliteFilling(SqlFilling):
    """Deletes and inserts; in SQLite the guards, too, come and go with the transaction."""

    def end(self) -> None:
        """SQLite counts on from what is there."""

    def _empty(self) -> None:
        guards = self._connection.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in guards:
            self._connection.exec_driver_sql(f"DROP TRIGGER {name}")
        for table in reversed(TABLES):
            self._connection.exec_driver_sql(f"DELETE FROM {table.name}")  # noqa: S608 (our own table's name)
        for _, made_by in guards:
            self._connection.exec_driver_sql(made_by)

    def _insert(self, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        if found := list(rows):
            places = ", ".join("?" for _ in table.columns)
            self._connection.exec_driver_sql(f"INSERT INTO {table.name} VALUES ({places})", found)  # noqa: S608 (as above)
