"""The three stores, each in turn: every test of this folder holds all of them to the contract."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.bank.project import Role
from fairbank.bank.requests import SetMember
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from fairbank.store.migration import migrate
from tests.contracts.places import Place
from tests.contracts.site import ALICE, allocation, charge, granted, grown, hold, project
from tests.support.postgres import PostgresServer

ON_POSTGRES = ["postgres18", "postgres15"]
IN_SQL = ["sqlite", *ON_POSTGRES]
EVERYWHERE = ["memory", *IN_SQL]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with empty books, to be copied."""
    path = tmp_path_factory.mktemp("template") / "books.sqlite"
    migrate(f"sqlite:///{path}")
    return path


def _template(server: PostgresServer) -> Iterator[str]:
    with server.fresh_database() as name:
        migrate(server.url(name))
        yield name


@pytest.fixture(scope="session")
def template18(postgres18: PostgresServer) -> Iterator[str]:
    """A database with empty books, to be copied."""
    yield from _template(postgres18)


@pytest.fixture(scope="session")
def template15(postgres15: PostgresServer) -> Iterator[str]:
    """A database with empty books, to be copied."""
    yield from _template(postgres15)


def places(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """One place of a kind, for a fixture of any scope to yield."""
    if kind == "memory":
        with Place("memory:", MemoryStore()) as place:
            yield place
    elif kind == "sqlite":
        path = folder / "books.sqlite"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        with Place(f"sqlite:///{path}") as place:
            yield place
    else:
        server: PostgresServer = request.getfixturevalue(kind)
        template: str = request.getfixturevalue(kind.replace("postgres", "template"))
        with server.fresh_database(template) as name, Place(server.url(name)) as place:
            yield place


@pytest.fixture(params=EVERYWHERE)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Empty books in each kind of store."""
    yield from places(request.param, request, tmp_path)


@pytest.fixture(params=IN_SQL)
def sql_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Empty books in each kind of database, where several servers may meet."""
    yield from places(request.param, request, tmp_path)


@pytest.fixture(params=ON_POSTGRES)
def postgres_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Empty books on each PostgreSQL."""
    yield from places(request.param, request, tmp_path)


@pytest.fixture
def store(place: Place) -> Store:
    """A store with empty books."""
    return place.open()


@pytest.fixture(scope="module", params=EVERYWHERE)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """The centre that has grown, in each kind of store. Only to be read."""
    for place in places(request.param, request, tmp_path_factory.mktemp("queries")):
        yield grown(place.open())


@pytest.fixture
def over(store: Store) -> Store:
    """Two projects; the allocation of the first is over, and a run of it was charged."""
    granted(
        store,
        project("physics", 5001),
        project("chemistry", 5002),
        SetMember(project=1, uid=ALICE, role=Role.PI),
    )
    granted(store, allocation(1, end=2_000), hold(1, 60))
    granted(store, charge(1, 30))
    return store
