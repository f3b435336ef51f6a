"""Check that a database has a store, with the schema of this version.

Apart from `migration`, because alembic costs each process that opens a store 0.1 s at its start.
"""

from __future__ import annotations

from collections.abc import Set

from sqlalchemy import Connection, inspect

from fairbank.core.errors import Conflict, NotFound
from fairbank.store.schema import REVISIONS, metadata

# Not by SQLAlchemy's reflection, whose queries on all columns take longer than the rest of a start.
_COLUMNS = {
    "sqlite": (
        "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c"
        " WHERE t.type = 'table'"
    ),
    "postgresql": (
        "SELECT t.relname, c.attname FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid"
        " WHERE t.relkind IN ('r', 'p') AND t.relnamespace <> 'pg_catalog'::regnamespace"
        " AND pg_table_is_visible(t.oid) AND c.attnum > 0 AND NOT c.attisdropped"
    ),
}
_MAKE_NEW = "move the database away, or name an empty one as store.url; then create a new store"
SETTINGS_DIRECTORY = "DIRECTORY, that of fairbank.toml"
"""Stands in remedies for the directory of the settings where it is not known."""


def schema_version(connection: Connection) -> str | None:
    """Return the newest migration of the database, or None if it has no store."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if version is None else str(version)


def check_known_schema(
    connection: Connection, version: str | None, directory: str = SETTINGS_DIRECTORY
) -> None:
    """Raise Conflict for a store of before the first release, of a newer version, or without a
    column of the newest version that it names.

    Args:
        connection: to the database.
        version: its newest migration.
        directory: the directory of the settings, for the remedy.
    """
    if version is None:
        return
    rows = connection.exec_driver_sql(_COLUMNS[connection.dialect.name])
    columns = {(str(table), str(column)) for table, column in rows}
    # Before the first release all journals had the column `book`, in schemas 0001 to 0008.
    if ("journal", "book") in columns:
        raise Conflict(
            "the store was written by an older version, from before the first release, which cannot"
            " be upgraded",
            field="store.url",
            remedy=f"{_MAKE_NEW}: fairbank init {directory}",
        )
    if version not in REVISIONS:
        raise Conflict(
            f"the ledger has schema {version[:40]!r}, which this Fairbank does not know: it knows"
            f" schemas up to {REVISIONS[-1]}",
            field="store.url",
            remedy="use the Fairbank that migrated it, or a newer one",
        )
    if version == REVISIONS[-1] and (missing := _missing(columns)):
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise Conflict(
            f"the store has not all tables and columns of its schema {version}: {missing[0]} is"
            f" missing{more}; a development version created it, or it was changed later",
            field="store.url",
            remedy=(
                f"{_MAKE_NEW}: fairbank init {directory}; and fill it from a backup, if the"
                " Fairbank that wrote the store has made one: fairbank restore FILE"
            ),
        )


def _missing(columns: Set[tuple[str, str]]) -> list[str]:
    """Return the tables and columns that the database lacks, as phrases."""
    tables = {table for table, _ in columns}
    return [
        f"column {table.name}.{column.name}" if table.name in tables else f"table {table.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if (table.name, column.name) not in columns
        and (table.name in tables or column is table.columns[0])
    ]


def check_current_schema(connection: Connection, directory: str = SETTINGS_DIRECTORY) -> None:
    """Raise NotFound if there is no store, Conflict if it has another schema. The remedies name the
    directory of the settings.
    """
    version = schema_version(connection)
    if version is None:
        raise no_store_error("this database")
    check_known_schema(connection, version, directory)
    if version != REVISIONS[-1]:
        raise Conflict(
            f"the ledger has schema {version}, this Fairbank needs {REVISIONS[-1]}",
            field="store.url",
            remedy=(
                "stop the servers, make a backup with the Fairbank that ran it, then: fairbank"
                f" init {directory}"
            ),
        )


def no_store_error(where: str) -> NotFound:
    return NotFound(f"there is no bank in {where}", field="store.url", remedy="fairbank init")
