"""Comparison of tables, triggers, views, indexes and constraints with those of the migrations.

The expected definitions are created each time, in SQLite's memory or in a schema on PostgreSQL that
is rolled back: databases rewrite definitions in their own words, which differ between versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path

import msgspec
from sqlalchemy import Connection, create_engine

from fairbank.store.migration import run_migrations
from fairbank.store.postgres.store import migrating_engine
from fairbank.store.sql.db_errors import translated_errors
from fairbank.store.sqlite.driver import driver
from fairbank.store.sqlite.store import reading_engine
from fairbank.store.urls import MEMORY, SQLITE, parse_url, path_of

SchemaDefinitions = Mapping[tuple[str, str], str]
"""Definitions by kind and name."""


class SchemaFault(Enum):
    """Kind of difference."""

    MISSING = "missing"
    ALTERED = "altered"
    FOREIGN = "not Fairbank's"


class SchemaDifference(msgspec.Struct, frozen=True):
    """Object that differs: `kind` is table, column, trigger, rule, view, index, constraint or
    function. SQLite has columns and constraints in the definition of the table.
    """

    kind: str
    name: str
    fault: SchemaFault


def schema_differences(url: str) -> list[SchemaDifference]:
    """Return the differences, by kind and name.

    Additional triggers, rules and columns of Fairbank's tables count; additional tables, views,
    indexes, constraints and functions do not.

    Raises Forbidden and Unavailable; FairbankError if the user cannot create a schema.
    """
    where = parse_url(url)
    if where.drivername == MEMORY:
        return []
    wanted, actual = _sqlite(path_of(where)) if where.drivername == SQLITE else _postgres(url)
    return list(_compared(wanted, actual))


def _compared(wanted: SchemaDefinitions, actual: SchemaDefinitions) -> Iterator[SchemaDifference]:
    own_columns = {("column", name) for kind, name in wanted if kind == "table"}
    for kind, name in sorted({*wanted, *actual}):
        if (kind, name) not in actual:
            yield SchemaDifference(kind, name, SchemaFault.MISSING)
        elif (kind, name) not in wanted:
            if kind in ("trigger", "rule") or (kind, name.partition(".")[0]) in own_columns:
                yield SchemaDifference(kind, name, SchemaFault.FOREIGN)
        elif wanted[kind, name] != actual[kind, name]:
            yield SchemaDifference(kind, name, SchemaFault.ALTERED)


_SQLITE = (
    "SELECT type, name, sql FROM sqlite_master"
    " WHERE type IN ('table', 'trigger', 'view', 'index') AND sql IS NOT NULL"
)


def _sqlite(path: Path) -> tuple[SchemaDefinitions, SchemaDefinitions]:
    made, there = create_engine("sqlite://", module=driver), reading_engine(path)
    try:
        with translated_errors(), made.connect() as new, there.connect() as old:
            run_migrations(new)
            return _read(new, _SQLITE), _read(old, _SQLITE)
    finally:
        made.dispose()
        there.dispose()


# A guard that is disabled is no guard, so whether it is enabled belongs to its definition.
_POSTGRESQL = """
SELECT 'trigger', t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
UNION ALL SELECT 'rule', r.rulename, pg_get_ruledef(r.oid)
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
WHERE c.relnamespace = current_schema()::regnamespace AND r.rulename <> '_RETURN'
UNION ALL SELECT 'table', relname, relpersistence::text || ' ' || relrowsecurity::text
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
UNION ALL SELECT 'column', c.relname || '.' || a.attname,
  concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
            pg_get_expr(d.adbin, d.adrelid))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0
  AND NOT a.attisdropped
UNION ALL SELECT 'view', relname, pg_get_viewdef(oid) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'v'
UNION ALL SELECT 'index', c.relname, pg_get_indexdef(c.oid) || ' ' || i.indisvalid::text
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace
UNION ALL SELECT 'constraint', k.conname, pg_get_constraintdef(k.oid) || ' ' || k.convalidated::text
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE c.relnamespace = current_schema()::regnamespace AND k.contype IN ('c', 'f', 'p', 'u', 'x')
UNION ALL SELECT 'function', proname, prosrc FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace
"""
_SCRATCH = "fairbank_doctor"


def _postgres(url: str) -> tuple[SchemaDefinitions, SchemaDefinitions]:
    engine = migrating_engine(parse_url(url))
    try:
        with translated_errors(), engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                return _both(connection)
            finally:
                connection.exec_driver_sql("ROLLBACK")
    finally:
        engine.dispose()


def _both(connection: Connection) -> tuple[SchemaDefinitions, SchemaDefinitions]:
    """Return the actual and the expected definitions.

    Each is read as the only schema on the search path: the new one must not resolve to the bank's
    tables.
    """
    own = str(connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one())
    connection.exec_driver_sql(f"SET LOCAL search_path TO {own}")
    actual = _read(connection, _POSTGRESQL, own)
    connection.exec_driver_sql(f"CREATE SCHEMA {_SCRATCH}")
    connection.exec_driver_sql(f"SET LOCAL search_path TO {_SCRATCH}")
    run_migrations(connection)
    return _read(connection, _POSTGRESQL, _SCRATCH), actual


def _read(connection: Connection, query: str, schema: str = "") -> SchemaDefinitions:
    """Return the definitions without schema name and line breaks."""
    rows = connection.exec_driver_sql(query).fetchall()
    return {
        (kind, name): " ".join((text.replace(f"{schema}.", "") if schema else text).split())
        for kind, name, text in rows
    }
