"""Creation and upgrade of a store.

All migrations run in one transaction: one that is killed has no effect and can be repeated.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, inspect

from fairbank.core.errors import Conflict, NotFound
from fairbank.store.postgres.store import migrating_engine
from fairbank.store.schema import REVISIONS
from fairbank.store.sql.db_errors import translated_errors
from fairbank.store.sqlite.store import create_file, writing_engine
from fairbank.store.urls import MEMORY, SQLITE, parse_url, path_of

_MIGRATIONS = Path(__file__).parent / "migrations"

# Lock of a migration: a second server waits for the first. Any number that never changes is fine.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(7283746)"


def migrate(url: str, *, journal: str | None = None) -> bool:
    """Create the store at `url` or upgrade it. Return False if there was nothing to do.

    Raises:
        InvalidInput: the URL is invalid.
        NotFound: a directory is missing.
        Conflict: this version does not know the schema, or the database is not UTF-8.
        Unavailable: the database does not answer.
    """
    where = parse_url(url)
    if where.drivername == MEMORY:
        return False
    if where.drivername == SQLITE:
        create_file(path_of(where))
        return _migrate(writing_engine(path_of(where), journal), ["BEGIN IMMEDIATE"])
    return _migrate(migrating_engine(where), ["BEGIN", _ONE_AT_A_TIME])


def _migrate(engine: Engine, begin: list[str]) -> bool:
    try:
        with translated_errors(), engine.connect() as connection:
            for statement in begin:
                connection.exec_driver_sql(statement)
            version = schema_version(connection)
            check_known_schema(connection, version)
            if version == REVISIONS[-1]:
                return False
            run_migrations(connection)
            connection.commit()
            return True
    finally:
        engine.dispose()


def run_migrations(connection: Connection) -> None:
    """Apply all migrations that the database lacks, inside the transaction of the connection."""
    alembic = Config()
    alembic.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    alembic.set_main_option("path_separator", "os")
    alembic.attributes["connection"] = connection
    command.upgrade(alembic, "head")


SETTINGS_DIRECTORY = "FOLDER, that of fairbank.toml"
"""Placeholder in remedies for the directory of the settings."""


def schema_version(connection: Connection) -> str | None:
    """Return the newest migration of the database, or None if it has no store."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if version is None else str(version)


def check_known_schema(connection: Connection, version: str | None) -> None:
    """Raise Conflict for a store of before the first release, or of a newer version."""
    if version is None:
        return
    # Before the first release all journals had the column `book`, in schemas 0001 to 0008.
    if _has_column(connection, "journal", "book"):
        raise Conflict(
            "the store was written by an older version, from before the first release, which cannot"
            " be upgraded",
            field="store.url",
            remedy=(
                "move the database away, or name an empty one as store.url; then create a new"
                f" store: fairbank init {SETTINGS_DIRECTORY}"
            ),
        )
    if version not in REVISIONS:
        raise Conflict(
            f"the ledger has schema {version[:40]!r}, which this Fairbank does not know: it knows"
            f" schemas up to {REVISIONS[-1]}",
            field="store.url",
            remedy="use the Fairbank that migrated it, or a newer one",
        )


def check_current_schema(connection: Connection) -> None:
    """Raise NotFound if there is no store, Conflict if it has another schema."""
    version = schema_version(connection)
    if version is None:
        raise no_store_error("this database")
    check_known_schema(connection, version)
    if version != REVISIONS[-1]:
        raise Conflict(
            f"the ledger has schema {version}, this Fairbank needs {REVISIONS[-1]}",
            field="store.url",
            remedy=(
                "stop the servers, make a backup with the Fairbank that ran it, then: fairbank"
                f" init {SETTINGS_DIRECTORY}"
            ),
        )


def _has_column(connection: Connection, table: str, column: str) -> bool:
    tables = inspect(connection)
    return tables.has_table(table) and column in {
        each["name"] for each in tables.get_columns(table)
    }


def no_store_error(where: str) -> NotFound:
    return NotFound(f"there is no bank in {where}", field="store.url", remedy="fairbank init")
