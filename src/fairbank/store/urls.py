"""Where the books are, as a URL: `memory:`, `sqlite:///path`, `postgresql://user@host/database`."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from fairbank.values.trouble import Malformed

MEMORY, SQLITE, POSTGRESQL = "memory", "sqlite", "postgresql+psycopg"

_SPELLINGS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "postgres": POSTGRESQL, POSTGRESQL: POSTGRESQL}


def read_url(text: str) -> URL:
    """`text` under the driver's name that we use. Raises Malformed."""
    if text == "memory:":
        return URL.create(MEMORY)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = URL.create("")
    if url.drivername not in _SPELLINGS or (url.drivername == SQLITE and (not url.database or url.query)):
        raise Malformed(
            f"{_without_password(text)!r} is not a database",
            field="store.url",
            remedy="write sqlite:///var/lib/fairbank/books.sqlite, postgresql://user@host/name or memory:",
        )
    return url.set(drivername=_SPELLINGS[url.drivername])


def path_of(url: URL) -> Path:
    """The file of an SQLite URL."""
    return Path(url.database or "")


def _without_password(text: str) -> str:
    head, at, tail = text[:200].rpartition("@")
    return f"{head.partition(':')[0]}://...@{tail}" if at else head + tail
