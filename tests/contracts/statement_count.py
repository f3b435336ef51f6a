"""Count of the SQL statements that reach a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, event

Statements = list[str]


@contextmanager
def count_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[Statements]:
    """Count the statements executed in the block, by any path to the driver, without BEGIN and
    COMMIT. SQLite connections must be opened inside. One statement executed for many rows counts
    once.
    """
    statements: Statements = []
    through_driver = psycopg.RawCursor.execute

    def execute(cursor: psycopg.RawCursor[Any], query: Any, *more: Any, **options: Any) -> Any:
        statements.append(str(query))
        return through_driver(cursor, query, *more, **options)

    def through_sqlalchemy(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if connection.dialect.name == "postgresql":
            statements.append(statement)

    def connected(connection: Any, _record: Any) -> None:
        if hasattr(connection, "set_trace_callback"):
            connection.set_trace_callback(statements.append)

    monkeypatch.setattr(psycopg.RawCursor, "execute", execute)
    event.listen(Engine, "before_cursor_execute", through_sqlalchemy)
    event.listen(Engine, "connect", connected)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", through_sqlalchemy)
        event.remove(Engine, "connect", connected)
        monkeypatch.undo()


def statements_taken(statements: Statements) -> int:
    """Return the number of statements, and set it to 0."""
    apart = [" ".join(statement.split())[:30] for statement in statements]
    count = sum(
        not kind.startswith(("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA", "--"))
        for kind, _ in groupby(apart)
    )
    statements.clear()
    return count
