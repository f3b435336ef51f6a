"""How far a database has been migrated."""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from fairbank.store.schema import REVISIONS
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
    return schema_version(connection) == REVISIONS[-1]


def demand_known(version: str | None) -> None:
    """Raises Conflict for a database that another Fairbank has migrated, most likely a newer one."""
    if version is not None and version not in REVISIONS:
        raise Conflict(
            f"the books have schema {version[:40]!r}, which this Fairbank does not know: it knows schemas up to {REVISIONS[-1]}",
            field="store.url",
            remedy="use the Fairbank that migrated them, or a newer one",
        )


def demand_current(connection: Connection) -> None:
    """Raises Unknown when there are no books, Conflict when they have another schema."""
    version = schema_version(connection)
    if version is None:
        raise no_books("this database")
    demand_known(version)
    if version != REVISIONS[-1]:
        raise Conflict(
            f"the books have schema {version}, this Fairbank needs {REVISIONS[-1]}",
            field="store.url",
            remedy=f"stop the servers, make a backup with the Fairbank that ran them, then: fairbank init {SETTINGS_FOLDER}",
        )


def no_books(where: str) -> Unknown:
    return Unknown(f"there are no books in {where}", field="store.url", remedy="fairbank init")
