"""Direct access to the tables of a ledger, for edits that the product refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from fairbank.store.sqlite.driver import driver as sqlite

Row = dict[str, Any]


class LedgerTables:
    """Database at an SQLAlchemy URL. Statements take named values: `:name`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")

    @property
    def conninfo(self) -> str:
        """Return the connection string for psycopg."""
        return self.url.replace("+psycopg", "", 1)

    def rows(self, statement: str, **values: Any) -> list[Row]:
        with self._connected() as execute:
            return execute(statement, values)

    def change(self, statement: str, **values: Any) -> None:
        """Execute a statement with triggers and constraints disabled."""
        with self._connected() as execute:
            if self.is_sqlite:
                execute("PRAGMA ignore_check_constraints = ON", {})
                execute("PRAGMA synchronous = OFF", {})  # durability does not matter here
                triggers = execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'", {})
                for trigger in triggers:
                    execute(f"DROP TRIGGER {trigger['name']}", {})
                execute(statement, values)
                for trigger in triggers:
                    execute(trigger["sql"], {})
            else:
                execute("SET session_replication_role = replica", {})
                execute(statement, values)

    def deadlocks(self) -> int:
        """Return the number of deadlocks that PostgreSQL counted in this database."""
        (row,) = self.rows(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        return int(row["deadlocks"])

    @contextmanager
    def _connected(self) -> Iterator[Callable[[str, Row], list[Row]]]:
        with self._sqlite() if self.is_sqlite else self._postgres() as execute:
            yield execute

    @contextmanager
    def _sqlite(self) -> Iterator[Callable[[str, Row], list[Row]]]:
        connection = sqlite.connect(
            str(Path(self.url.removeprefix("sqlite:///"))), timeout=30, isolation_level=None
        )

        def execute(statement: str, values: Row) -> list[Row]:
            cursor = connection.execute(statement, values)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        try:
            yield execute
        finally:
            connection.close()

    @contextmanager
    def _postgres(self) -> Iterator[Callable[[str, Row], list[Row]]]:
        with psycopg.connect(self.conninfo, autocommit=True, row_factory=dict_row) as connection:

            def execute(statement: str, values: Row) -> list[Row]:
                cursor = connection.execute(_with_psycopg_parameters(statement, values), values)
                return cursor.fetchall() if cursor.description else []

            yield execute


def _with_psycopg_parameters(statement: str, values: Row) -> str:
    """Return the statement with psycopg's parameters."""
    statement = statement.replace("%", "%%")
    for name in values:
        statement = statement.replace(f":{name}", f"%({name})s")
    return statement
