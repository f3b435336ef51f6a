"""A bank is made: its settings, its secret, its empty books."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import quote

from fairbank.compose.settings import usual_folder
from fairbank.rest.sign_in.keyfile import make_private, read_secret
from fairbank.service.settings import example, read_settings
from fairbank.store.migrating import migrate
from fairbank.store.urls import shown_url
from fairbank.values.trouble import Conflict, Forbidden


def init(directory: str | None, store: str | None) -> list[str]:
    """Make settings, secret and an empty store in a folder; an older store is migrated. Returns what was done."""
    folder = Path(directory) if directory else usual_folder()
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as bad:
        raise Forbidden(f"cannot make the folder {folder}: {bad.strerror}", field="FOLDER", remedy="name another") from bad
    settings = folder / "fairbank.toml"
    if settings.exists():
        known = read_settings(settings)
        if store is not None and store != known.store.url:
            raise Conflict(f"{settings} names another store: {shown_url(known.store.url)}", field="--store", remedy="name another FOLDER")
        if not migrate(known.store.url, journal=known.store.journal):
            remedy = f"run it with: fairbank serve --config {shlex.quote(str(settings))}"
            raise Conflict(f"there is a bank in {folder} already, and its schema is current", field="FOLDER", remedy=remedy)
        return [f"migrated {shown_url(known.store.url)}"]
    url = store or f"sqlite:///{quote(str(folder.resolve()))}/books.sqlite"
    text = example(folder.resolve(), url)
    migrate(url)
    read_secret(folder / "secret", create=True)
    make_private(settings, text)  # a database's URL may hold a password
    return [f"made {each}" for each in (settings, folder / "secret", shown_url(url))]
