"""Creation of a store from its URL."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from fairbank.core.errors import Forbidden, InvalidInput, NotFound
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from fairbank.store.postgres.store import PostgresStore
from fairbank.store.schema_version import SETTINGS_DIRECTORY, check_current_schema, no_store_error
from fairbank.store.sql.store import SqlStore
from fairbank.store.sqlite.store import SqliteStore
from fairbank.store.urls import MEMORY, SQLITE, parse_url, path_of


def open_store(
    url: str, *, journal: str | None = None, settings_directory: str = SETTINGS_DIRECTORY
) -> Store:
    """Open the store at `memory:`, `sqlite:///path` or `postgresql://...`.

    Args:
        url: the URL of the store.
        journal: SQLite's journal mode, wal or truncate; None: wal if it is safe here.
        settings_directory: directory of the settings, for remedies.

    Raises:
        InvalidInput: the URL or the journal mode is invalid.
        NotFound: there is no store yet.
        Conflict: the store has another schema, or the database is not UTF-8.
        Forbidden: the file belongs to another user.
        Unavailable: the database does not answer.
    """
    where = parse_url(url)
    if where.drivername == MEMORY:
        return MemoryStore()
    store = _sqlite(path_of(where), journal) if where.drivername == SQLITE else PostgresStore(where)
    try:
        store.check(lambda connection: check_current_schema(connection, settings_directory))
    except BaseException:
        store.close()
        raise
    return store


def _sqlite(path: Path, journal: str | None) -> SqlStore:
    try:
        if not path.parent.is_dir():
            raise NotFound(
                f"there is no directory {path.parent}",
                field="store.url",
                remedy=f"mkdir -p {shlex.quote(str(path.parent))}, then fairbank init",
            )
        if not path.exists():
            raise no_store_error(str(path))
        if not path.is_file():
            raise InvalidInput(
                f"{path} is not a file", field="store.url", remedy="name the file of the store"
            )
    except PermissionError as locked:
        raise _not_ours(path) from locked
    if not os.access(path, os.R_OK, effective_ids=True):
        raise _not_ours(path)
    return SqliteStore(path, journal=journal)


def _not_ours(path: Path) -> Forbidden:
    return Forbidden(
        f"you may not read {path}",
        field="store.url",
        remedy="run this as the user whose bank it is",
    )
