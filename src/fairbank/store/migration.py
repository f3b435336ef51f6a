"""Creation and upgrade of a store.

All migrations run in one transaction: one that is killed has no effect and can be repeated.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine

from fairbank.store.postgres.store import migrating_engine
from fairbank.store.schema import REVISIONS
from fairbank.store.schema_version import check_known_schema, schema_version
from fairbank.store.sql.db_errors import translated_errors
from fairbank.store.sqlite.store import create_file, writing_engine
from fairbank.store.urls import MEMORY, SQLITE, parse_url, path_of

MIGRATIONS = Path(__file__).parent / "migrations"

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
    alembic.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    alembic.set_main_option("path_separator", "os")
    alembic.attributes["connection"] = connection
    command.upgrade(alembic, "head")
