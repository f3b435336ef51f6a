"""Check that a database has a store, with the schema of this version.

Apart from `migration`, because alembic costs each process that opens a store 0.1 s at its start.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from fairbank.core.errors import Conflict, NotFound
from fairbank.store.schema import REVISIONS

# Not by SQLAlchemy's reflection, whose queries on all columns take longer than the rest of a start.
_HAS_BOOK = {
    "sqlite": "SELECT EXISTS (SELECT 1 FROM pragma_table_info('journal') WHERE name = 'book')",
    "postgresql": (
        "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('journal')"
        " AND attname = 'book' AND NOT attisdropped)"
    ),
}
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
    """Raise Conflict for a store of before the first release, or of a newer version.

    Args:
        connection: to the database.
        version: its newest migration.
        directory: the directory of the settings, for the remedy.
    """
    if version is None:
        return
    # Before the first release all journals had the column `book`, in schemas 0001 to 0008.
    if connection.exec_driver_sql(_HAS_BOOK[connection.dialect.name]).scalar():
        raise Conflict(
            "the store was written by an older version, from before the first release, which cannot"
            " be upgraded",
            field="store.url",
            remedy=(
                "move the database away, or name an empty one as store.url; then create a new"
                f" store: fairbank init {directory}"
            ),
        )
    if version not in REVISIONS:
        raise Conflict(
            f"the ledger has schema {version[:40]!r}, which this Fairbank does not know: it knows"
            f" schemas up to {REVISIONS[-1]}",
            field="store.url",
            remedy="use the Fairbank that migrated it, or a newer one",
        )


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
