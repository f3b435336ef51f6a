"""Fixtures with each of the three stores: every test of this directory checks all of them against
the contract.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fairbank.bank.project import Role
from fairbank.bank.requests import SetMember
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from fairbank.store.migration import migrate
from tests.contracts.databases import Place, ReusedDatabases
from tests.contracts.small_site import (
    ALICE,
    allocation,
    charge,
    fill_with_runs,
    granted,
    hold,
    project,
)
from tests.support.postgres import ON_POSTGRES, PostgresServer

IN_SQL = ["sqlite", *ON_POSTGRES]
EVERYWHERE = ["memory", *IN_SQL]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an SQLite file with an empty ledger, to be copied."""
    path = tmp_path_factory.mktemp("template") / "fairbank.sqlite"
    migrate(f"sqlite:///{path}")
    return path


def _template(server: PostgresServer) -> Iterator[str]:
    with server.fresh_database() as name:
        migrate(server.url(name))
        yield name


@pytest.fixture(scope="session")
def template18(postgres18: PostgresServer) -> Iterator[str]:
    """Return a database with an empty ledger on PostgreSQL 18, to be copied."""
    yield from _template(postgres18)


@pytest.fixture(scope="session")
def template15(postgres15: PostgresServer) -> Iterator[str]:
    """Return a database with an empty ledger on PostgreSQL 15, to be copied."""
    yield from _template(postgres15)


@pytest.fixture(scope="session")
def reused18(postgres18: PostgresServer, template18: str) -> Iterator[ReusedDatabases]:
    """Return databases with an empty ledger on PostgreSQL 18, for one test after another."""
    with closing(ReusedDatabases(postgres18, template18)) as databases:
        yield databases


@pytest.fixture(scope="session")
def reused15(postgres15: PostgresServer, template15: str) -> Iterator[ReusedDatabases]:
    """Return databases with an empty ledger on PostgreSQL 15, for one test after another."""
    with closing(ReusedDatabases(postgres15, template15)) as databases:
        yield databases


def places(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """Yield one place of a kind, for a fixture of any scope."""
    if kind == "memory":
        with Place("memory:", MemoryStore()) as place:
            yield place
    elif kind == "sqlite":
        path = folder / "fairbank.sqlite"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        with Place(f"sqlite:///{path}") as place:
            yield place
    else:
        server: PostgresServer = request.getfixturevalue(kind)
        databases: ReusedDatabases = request.getfixturevalue(kind.replace("postgres", "reused"))
        with databases.database() as name, Place(server.url(name)) as place:
            yield place


@pytest.fixture(params=EVERYWHERE)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Yield an empty ledger in each kind of store."""
    yield from places(request.param, request, tmp_path)


@pytest.fixture(params=IN_SQL)
def sql_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Yield an empty ledger in each kind of database that several servers can share."""
    yield from places(request.param, request, tmp_path)


@pytest.fixture(params=ON_POSTGRES)
def postgres_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Yield an empty ledger on each PostgreSQL."""
    yield from places(request.param, request, tmp_path)


@pytest.fixture
def store(place: Place) -> Store:
    """Yield a store with an empty ledger."""
    return place.open()


@pytest.fixture(scope="module", params=EVERYWHERE)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Yield the grown centre in each kind of store, for reading only."""
    for place in places(request.param, request, tmp_path_factory.mktemp("queries")):
        yield fill_with_runs(place.open())


@pytest.fixture
def over(store: Store) -> Store:
    """Yield two projects; the allocation of the first has ended, and one of its runs was
    charged.
    """
    granted(
        store,
        project("physics", 5001),
        project("chemistry", 5002),
        SetMember(project=1, uid=ALICE, role=Role.PI),
    )
    granted(store, allocation(1, end=2_000), hold(1, 60))
    granted(store, charge(1, 30))
    return store
