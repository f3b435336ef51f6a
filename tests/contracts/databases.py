"""Locations of the databases of a test. A test may open any number of stores there; all are closed
at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Engine, create_engine, text

from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from fairbank.store.sqlite.driver import driver
from tests.support.postgres import PostgresServer

# Number and transactions of all that a migration or a test defines: a change of a definition
# writes a row of a catalogue anew.
_DEFINITIONS = """
    SELECT count(*), sum(xmin::text::bigint) FROM (
        SELECT xmin FROM pg_class WHERE oid >= 16384
        UNION ALL SELECT xmin FROM pg_attribute WHERE attrelid >= 16384
        UNION ALL SELECT xmin FROM pg_constraint WHERE oid >= 16384
        UNION ALL SELECT xmin FROM pg_index WHERE indexrelid >= 16384
        UNION ALL SELECT xmin FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT xmin FROM pg_rewrite WHERE oid >= 16384
        UNION ALL SELECT xmin FROM pg_trigger WHERE oid >= 16384
        UNION ALL SELECT xmin FROM pg_db_role_setting
    ) AS definitions
"""
_END_SESSIONS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_RESTART_SEQUENCES = "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'"


class Place:
    """URL of a migrated ledger. In memory there is only one store, which every call returns."""

    def __init__(self, url: str, only: Store | None = None) -> None:
        self.url = url
        self._only = only
        self._opened: list[Store] = []
        self._engines: list[Engine] = []

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for store in self._opened:
            store.close()
        for engine in self._engines:
            engine.dispose()

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgresql")

    def open(self) -> Store:
        """Open another server's store on the same ledger."""
        store = self._only or open_store(self.url)
        self._opened.append(store)
        return store

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement directly, as an administrator would, and commit it."""
        with self._administrator().begin() as connection:
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []

    def names(self, query: str) -> list[str]:
        """Return the names of a query's columns."""
        with self._administrator().connect() as connection:
            return list(connection.execute(text(query)).keys())

    def _administrator(self) -> Engine:
        if not self._engines:
            self._engines.append(
                create_engine(self.url)
                if self.is_postgres
                else create_engine(self.url, module=driver)
            )
        return self._engines[0]


class ReusedDatabases:
    """Databases with an empty ledger that one test after another uses: deleting rows takes a tenth
    of the time of a new database. One whose tables a test has altered is not used again.
    """

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self._template = template
        self._made = ExitStack()
        self._spare: list[str] = []
        with psycopg.connect(server.conninfo(template)) as connection:
            self._definitions = connection.execute(_DEFINITIONS).fetchone()
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname='public'")
            self._rows = {
                table: connection.execute(sql.SQL("TABLE {}").format(sql.Identifier(table)))
                .fetchall()
                for (table,) in tables.fetchall()
            }  # fmt: skip

    @contextmanager
    def database(self) -> Iterator[str]:
        """Yield the name of a database with an empty ledger."""
        if self._spare:
            name = self._spare.pop()
        else:
            name = self._made.enter_context(self._server.fresh_database(self._template))
        yield name
        if self._empty(name):
            self._spare.append(name)

    def close(self) -> None:
        self._made.close()

    def _empty(self, name: str) -> bool:
        """Bring a database back to the rows of the template. Return False if it differs from it."""
        self._server.start()
        with psycopg.connect(self._server.conninfo(name)) as connection:
            connection.execute(_END_SESSIONS)
            if connection.execute(_DEFINITIONS).fetchone() != self._definitions:
                return False
            # Without triggers and foreign keys, which refuse it.
            connection.execute("SET session_replication_role = replica")
            for table, rows in self._rows.items():
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
                for row in rows:
                    connection.execute(
                        sql.SQL("INSERT INTO {} VALUES ({})").format(
                            sql.Identifier(table), sql.SQL(",").join(map(sql.Literal, row))
                        )
                    )
            connection.execute(_RESTART_SEQUENCES)
        return True
