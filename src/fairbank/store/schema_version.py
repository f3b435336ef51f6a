"""How far a database has been migrated."""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from fairbank.store.schema import REVISION
from fairbank.values.trouble import Conflict, Unknown

SETTINGS_FOLDER = "FOLDER, that of fairbank.toml"
"""What a remedy says to whoever knows where the settings are."""


def schema_version(connection: Connection) -> str | None:
    """The newest migration that the database has seen; None when there are no books in it."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if version is None else str(version)


def schema_is_current(connection: Connection) -> bool:
    """Whether the database is what this Fairbank expects. Cheap: for each start."""
    return schema_version(connection) == REVISION


def demand_not_newer(version: str | None) -> None:
    """Raises Conflict for a database that a newer Fairbank has migrated."""
    if version is not None and version > REVISION:
        raise Conflict(
            f"the books have schema {version}, this Fairbank knows schemas up to {REVISION}",
            field="store.url",
            remedy="use the newer Fairbank that migrated them",
        )


def demand_current(connection: Connection) -> None:
    """Raises Unknown when there are no books, Conflict when they have another schema."""
    version = schema_version(connection)
    if version is None:
        raise no_books("this database")
    demand_not_newer(version)
    if version != REVISION:
        raise Conflict(
            f"the books have schema {version}, this Fairbank needs {REVISION}",
            field="store.url",
            remedy=f"stop the servers, make a backup with the Fairbank that ran them, then: fairbank init {SETTINGS_FOLDER}",
        )


def no_books(where: str) -> Unknown:
    return Unknown(f"there are no books in {where}", field="store.url", remedy="fairbank init")
