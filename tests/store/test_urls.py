"""URLs of databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from fairbank.store.urls import MEMORY, POSTGRESQL, SQLITE, parse_url, path_of, redacted_url


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("memory:", MEMORY),
        ("sqlite:///fairbank.sqlite", SQLITE),
        ("sqlite:////var/lib/fairbank/fairbank.sqlite", SQLITE),
        ("postgresql://bank@db.example.org/books", POSTGRESQL),
        ("postgres://bank@db.example.org/books", POSTGRESQL),
        ("postgresql+psycopg://bank@/books?host=/run/postgresql", POSTGRESQL),
    ],
)
def test_valid_urls_are_parsed(text: str, driver: str) -> None:
    assert parse_url(text).drivername == driver


def test_file_url_gives_the_path() -> None:
    assert path_of(parse_url("sqlite:////var/lib/fairbank.sqlite")) == Path(
        "/var/lib/fairbank.sqlite"
    )
    assert path_of(parse_url("sqlite:///fairbank.sqlite")) == Path("fairbank.sqlite")


WRONG = [
    "",
    "fairbank.sqlite",
    "sqlite://",
    "sqlite:///",
    "sqlite:///x?mode=ro",
    "mysql://u@h/d",
    "postgresql",
    "sqlite+aiosqlite:///x",
    "://",
    "\n",
]


@pytest.mark.parametrize("text", WRONG)
def test_invalid_urls_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_url(text)
    assert raised.value.field == "store.url"
    assert "postgresql://" in str(raised.value.remedy)


@pytest.mark.parametrize(
    "text",
    ["mysql://bank:secret@db.example.org/books", "mysql://db.example.org/books?password=secret"],
)
def test_password_is_not_in_error_message(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_url(text)
    assert "secret" not in str(raised.value)


def test_memory_is_opened_empty() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("memory:", "memory:"),
        ("sqlite:////var/lib/a b.sqlite", "sqlite:////var/lib/a b.sqlite"),
        ("postgresql:///books", "postgresql:///books"),
        ("postgresql://bank:s%40cret@db/books", "postgresql://bank:***@db/books"),
        ("postgres://bank@db/books?password=secret", "postgres://bank@db/books?password=***"),
        (
            "postgresql://bank:s@db:5433/books?sslpassword=secret",
            "postgresql://bank:***@db:5433/books?sslpassword=***",
        ),
    ],
)
def test_password_is_not_shown(text: str, shown: str) -> None:
    assert redacted_url(text) == shown
