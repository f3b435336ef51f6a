"""Where a bank's settings are, and the books that they name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from fairbank.core.errors import Conflict
from fairbank.service.settings import BankSettings, read_settings
from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from fairbank.store.migration import SETTINGS_DIRECTORY

SITE_SETTINGS = "/etc/fairbank/fairbank.toml"


def usual_folder() -> Path:
    """Where a bank of one's own is kept."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fairbank"


def usual_settings() -> Path:
    """The settings named in the environment, else of one's own bank where there is one, else the site's."""
    named = os.environ.get("FAIRBANK_CONFIG")
    own = usual_folder() / "fairbank.toml"
    return Path(named) if named else own if own.exists() else Path(SITE_SETTINGS)


def settings_of(config: str | None) -> BankSettings:
    """Those of a file; None: of the usual one."""
    return read_settings(Path(config) if config else usual_settings())


def open_books(config: str | None) -> Store:
    """The books. Those of another schema are told with the very command that migrates them."""
    where = settings_of(config).store
    try:
        return open_store(where.url, journal=where.journal)
    except Conflict as other:
        folder = quote(str((Path(config) if config else usual_settings()).absolute().parent))
        other.remedy = other.remedy and other.remedy.replace(SETTINGS_DIRECTORY, folder)
        raise


@contextmanager
def books_of(config: str | None) -> Iterator[Store]:
    """The books, closed afterwards."""
    store = open_books(config)
    try:
        yield store
    finally:
        store.close()
