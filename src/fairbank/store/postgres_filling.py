"""Filling PostgreSQL from a backup, by COPY."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import psycopg
from sqlalchemy import Table

from fairbank.store.filling import TABLES, SqlFilling

_GUARDED = ("allocation", "run", "journal")

# Every batch begins by locking rows of one of these two, in this order. So this waits for the batches under way and
# keeps the next ones out, without ever holding what one of them waits for; readers go on.
_ALONE = "LOCK TABLE allocation, office IN EXCLUSIVE MODE"

# The statement limits of a batch are not meant for a restore.
_LIMITS = "SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"

# What is numbered next comes after what is there; entries also after all that were there: who follows them goes on from there.
_NUMBERING = """
SELECT setval('project_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM project), false),
       setval('allocation_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM allocation), false),
       setval('token_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM token), false),
       setval('entry_id_seq', greatest(nextval('entry_id_seq'), (SELECT coalesce(max(id), 0) + 1 FROM journal)), false)
"""


class PostgresFilling(SqlFilling):
    """DELETE and COPY, both undone when the transaction is.

    TRUNCATE would be quicker, but it waits for readers and they for it, and whoever reads a snapshot from before it would
    find the books empty.
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
            self._connection.exec_driver_sql(f"DELETE FROM {table.name}")  # noqa: S608 (our own table's name)
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
