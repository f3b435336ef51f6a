"""URL of a store: `memory:`, `sqlite:///path`, `postgresql://user@host/database`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from fairbank.core.errors import InvalidInput

_HIDDEN = "***"
MEMORY, SQLITE, POSTGRESQL = "memory", "sqlite", "postgresql+psycopg"

_SPELLINGS = {
    "sqlite": SQLITE,
    "postgresql": POSTGRESQL,
    "postgres": POSTGRESQL,
    POSTGRESQL: POSTGRESQL,
}


def parse_url(text: str) -> URL:
    """Parse the URL of a store and select the driver. Raises InvalidInput."""
    if text == "memory:":
        return URL.create(MEMORY)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = URL.create("")
    if url.drivername not in _SPELLINGS or (
        url.drivername == SQLITE and (not url.database or url.query)
    ):
        raise InvalidInput(
            f"{_without_password(text)!r} is not a database",
            field="store.url",
            remedy=(
                "write sqlite:///var/lib/fairbank/fairbank.sqlite, postgresql://user@host/name or"
                " memory:"
            ),
        )
    return url.set(drivername=_SPELLINGS[url.drivername])


def redacted_url(text: str) -> str:
    """Return the URL without its password."""
    url = parse_url(text)
    hidden = {key: _HIDDEN for key in url.query if "password" in key.lower()}
    if url.password is None and not hidden:
        return text
    spelt = text.partition("://")[0]
    shown = url.set(
        drivername=spelt, password=None if url.password is None else _HIDDEN
    ).update_query_dict(hidden)
    return shown.render_as_string(hide_password=False).replace(quote(_HIDDEN, safe=""), _HIDDEN)


def path_of(url: URL) -> Path:
    """Return the file of an SQLite URL."""
    return Path(url.database or "")


def _without_password(text: str) -> str:
    head, at, tail = text[:200].partition("?")[0].rpartition("@")
    return f"{head.partition(':')[0]}://...@{tail}" if at else head + tail
