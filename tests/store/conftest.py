"""Ledgers in single kinds of databases, for features that only they have."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.conftest import (
    IN_SQL,
    migrated_file,
    postgres_place,
    reused15,
    reused18,
    sql_place,
    template15,
    template18,
)
from tests.contracts.databases import Place
from tests.support.postgres import PostgresServer

__all__ = [
    "migrated_file",
    "postgres_place",
    "reused15",
    "reused18",
    "sql_place",
    "template15",
    "template18",
]


@pytest.fixture
def file(migrated_file: Path, tmp_path: Path) -> Path:
    """Yield an SQLite file with an empty ledger."""
    return Path(shutil.copy(migrated_file, tmp_path / "fairbank.sqlite"))


@pytest.fixture
def file_place(file: Path) -> Iterator[Place]:
    """Return the SQLite file as a place."""
    with Place(f"sqlite:///{file}") as place:
        yield place


@pytest.fixture(params=IN_SQL)
def bare_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of each kind of database without a schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'bare.sqlite'}"
    else:
        server: PostgresServer = request.getfixturevalue(request.param)
        with server.fresh_database() as name:
            yield server.url(name)
