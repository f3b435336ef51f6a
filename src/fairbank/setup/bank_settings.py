"""Settings of a bank, the store that they name, and the clock of its commands and its server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from fairbank.client_file import state_directory, user_directory
from fairbank.core.time import Instant
from fairbank.rest.server.unix_socket import is_listening
from fairbank.service.settings import BankSettings, read_settings
from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from fairbank.store.urls import redacted_url

SITE_SETTINGS = "/etc/fairbank/fairbank.toml"


class SystemClock:
    """Clock of the system, in whole seconds."""

    def now(self) -> Instant:
        return Instant(int(time.time()))


def default_directory() -> Path:
    """Return the directory of a user's own bank.

    Raises InvalidInput if the user has no home directory.
    """
    return Path(state_directory(os.environ)) / "fairbank"


def default_settings() -> Path:
    """Return the settings named in the environment, else the user's own, else the site's."""
    if named := os.environ.get("FAIRBANK_CONFIG"):
        return Path(named)
    state = user_directory(os.environ, "XDG_STATE_HOME", "~/.local/state")
    own = Path(state, "fairbank", "fairbank.toml")
    return own if state and own.exists() else Path(SITE_SETTINGS)


def settings_file(config: str | None) -> Path:
    """Return the file that is named, else the default file."""
    return Path(config) if config else default_settings()


def settings_of(config: str | None) -> BankSettings:
    """Return the settings of a file; None for the default file."""
    return read_settings(settings_file(config))


def bank_places(config: str | None, settings: BankSettings) -> dict[str, str]:
    """Return the file of the settings and the URL of the store without its password, to be shown.

    Args:
        config: file of the settings; None for the default file.
        settings: its content.
    """
    file = settings_file(config).absolute()
    return {"settings": str(file), "store": redacted_url(settings.store.url)}


def is_served(settings: BankSettings) -> bool:
    """Return whether a server with these settings runs on this host."""
    return is_listening(Path(settings.server.socket))


def open_bank_store(config: str | None, settings: BankSettings) -> Store:
    """Open the store. A store of another schema is refused with the command that migrates it.

    Args:
        config: file of the settings, for the command; None for the default file.
        settings: its content. A caller reads it once, since the file may be a pipe.
    """
    where, directory = settings.store, settings_file(config).absolute().parent
    return open_store(where.url, journal=where.journal, settings_directory=quote(str(directory)))


@contextmanager
def opened_store(config: str | None, settings: BankSettings | None = None) -> Iterator[Store]:
    """Open the store of a settings file, which is read if `settings` is None. Close it afterwards.

    None as `config` stands for the default file.
    """
    store = open_bank_store(config, settings or settings_of(config))
    try:
        yield store
    finally:
        store.close()
