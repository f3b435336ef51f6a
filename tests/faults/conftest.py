"""Fixtures of the fault campaigns: seeds that are printed and may be set, figures shown at the end,
PostgreSQL for long and short runs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.backups import taken_in_a_storm
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, banking
from tests.support.wire import run

Tell = Callable[[str], None]

_FIGURES = pytest.StashKey[dict[str, list[str]]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Say a figure: among the output of the test when it fails, and in the summary of all tests."""
    kept = request.config.stash.setdefault(_FIGURES, {})

    def say(line: str) -> None:
        print(line)
        kept.setdefault(request.node.name, []).append(line)

    return say


@pytest.fixture
def at_length() -> None:
    """Skips what the short form leaves out."""
    if os.environ.get("FAIRBANK_SHORT"):
        pytest.skip("left out of the short form")


@pytest.fixture
def seed(tell: Tell) -> int:
    """A seed of its own for each campaign, or the one that FAULTS_SEED names."""
    number = int(os.environ.get("FAULTS_SEED") or random.SystemRandom().randrange(1_000_000))
    tell(f"seed {number} (FAULTS_SEED={number} makes the same choices again)")
    return number


@pytest.fixture(params=["postgres18", "postgres15"])
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """Each PostgreSQL in turn; in short only the newer one."""
    if request.param == "postgres15" and os.environ.get("FAIRBANK_SHORT"):
        pytest.skip("PostgreSQL 15: left out of the short form")
    server: PostgresServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[str]:
    """The URL of a fresh database on PostgreSQL 18."""
    with postgres18.fresh_database() as name:
        yield postgres18.url(name)


@pytest.fixture
def fresh(postgres18: PostgresServer) -> Iterator[Callable[[], str]]:
    """Makes fresh databases, dropped in the end."""
    with ExitStack() as made:
        yield lambda: postgres18.url(made.enter_context(postgres18.fresh_database()))


@pytest.fixture(params=["sqlite", "postgresql"])
def serving(request: pytest.FixtureRequest) -> Iterator[FairbankServer]:
    """A running bank, on either store."""
    with banking(
        request.getfixturevalue("database") if request.param == "postgresql" else None
    ) as server:
        yield server


@pytest.fixture(scope="session")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup taken while clients were at work: two projects, a few thousand entries."""
    with banking() as server:
        (taken,), _ = run(
            taken_in_a_storm(server, 1, 1, tmp_path_factory.mktemp("backup"), thousands=1)
        )
    return taken.path


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """All figures, whatever became of the tests."""
    if figures := config.stash.get(_FIGURES, {}):
        terminalreporter.section("figures of the fault campaigns")
        for name, lines in figures.items():
            terminalreporter.line(name)
            for line in lines:
                terminalreporter.line(f"    {line}")
