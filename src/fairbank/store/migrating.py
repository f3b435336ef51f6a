"""Making the books, and bringing older ones up to date.

All migrations run in one transaction: a migration that is killed has changed nothing, and may be started again.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine

from fairbank.store.postgres import migrating_engine
from fairbank.store.schema_version import demand_known, schema_is_current, schema_version
from fairbank.store.sqlite import create_file, writing_engine
from fairbank.store.troubles import as_troubles
from fairbank.store.urls import MEMORY, SQLITE, path_of, read_url

_MIGRATIONS = Path(__file__).parent / "migrations"

# Two servers that migrate at once do so one after the other. Any number will do, as long as it stays the same.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(7283746)"


def migrate(url: str, *, journal: str | None = None) -> bool:
    """Make the books at `url`, or bring them up to date; False when there was nothing to do.

    Raises Malformed, Unknown when a folder is missing, Conflict when this Fairbank does not know the schema of the books or the
    database is not UTF-8, Unreachable.
    """
    where = read_url(url)
    if where.drivername == MEMORY:
        return False
    if where.drivername == SQLITE:
        create_file(path_of(where))
        return _migrate(writing_engine(path_of(where), journal), ["BEGIN IMMEDIATE"])
    return _migrate(migrating_engine(where), ["BEGIN", _ONE_AT_A_TIME])


def _migrate(engine: Engine, begin: list[str]) -> bool:
    try:
        with as_troubles(), engine.connect() as connection:
            for statement in begin:
                connection.exec_driver_sql(statement)
            if schema_is_current(connection):
                return False
            demand_known(schema_version(connection))
            run_migrations(connection)
            connection.commit()
            return True
    finally:
        engine.dispose()


def run_migrations(connection: Connection) -> None:
    """All that the database has not seen yet, inside the transaction that the connection is in."""
    alembic = Config()
    alembic.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    alembic.set_main_option("path_separator", "os")
    alembic.attributes["connection"] = connection
    command.upgrade(alembic, "head")
