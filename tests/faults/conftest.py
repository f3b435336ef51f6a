"""Fixtures of the fault campaigns: printed seeds, and databases for long and short campaigns."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.load_backups import back_up_under_load
from tests.support.figures import LogFigure
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, run_bank
from tests.support.wire import run


@pytest.fixture
def long_form() -> None:
    """Skip the test in the short form of the campaigns."""
    if os.environ.get("FAIRBANK_SHORT"):
        pytest.skip("left out of the short form")


@pytest.fixture
def seed(log_figure: LogFigure) -> int:
    """Return a random seed, or that of FAULTS_SEED."""
    number = int(os.environ.get("FAULTS_SEED") or random.SystemRandom().randrange(1_000_000))
    log_figure(f"seed {number} (FAULTS_SEED={number} makes the same choices again)")
    return number


@pytest.fixture(params=["postgres18", "postgres15"])
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """Provide each version of PostgreSQL; in the short form only the newer one."""
    if request.param == "postgres15" and os.environ.get("FAIRBANK_SHORT"):
        pytest.skip("PostgreSQL 15: left out of the short form")
    server: PostgresServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[str]:
    """Provide the URL of a new database on PostgreSQL 18."""
    with postgres18.fresh_database() as name:
        yield postgres18.url(name)


@pytest.fixture
def new_database(postgres18: PostgresServer) -> Iterator[Callable[[], str]]:
    """Provide a function that creates databases, which are dropped after the test."""
    with ExitStack() as made:
        yield lambda: postgres18.url(made.enter_context(postgres18.fresh_database()))


@pytest.fixture(params=["sqlite", "postgresql"])
def running_bank(request: pytest.FixtureRequest) -> Iterator[FairbankServer]:
    """Provide a running bank on each store."""
    with run_bank(
        request.getfixturevalue("database") if request.param == "postgresql" else None
    ) as server:
        yield server


@pytest.fixture(scope="session")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a backup taken while clients worked: two projects, a few thousand entries."""
    with run_bank() as server:
        (record,), _ = run(
            back_up_under_load(server, 1, 1, tmp_path_factory.mktemp("backup"), thousands=1)
        )
    return record.path
