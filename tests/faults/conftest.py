"""What the fault campaigns share: seeds that are told and may be set, figures shown at the end, PostgreSQL for long and short."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator

import pytest

from tests.support.postgres import PostgresServer

Tell = Callable[[str], None]

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Say a figure: among the output of the test when it fails, and in the summary of all tests."""
    kept = request.config.stash.setdefault(_FIGURES, [])
    kept.append(f"{request.node.name}:")

    def say(line: str) -> None:
        print(line)
        kept.append(f"    {line}")

    return say


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
        pytest.skip("PostgreSQL 15: the short form is content with 18")
    server: PostgresServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[str]:
    """The URL of a fresh database on PostgreSQL 18."""
    with postgres18.fresh_database() as name:
        yield postgres18.url(name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """All figures, whatever became of the tests."""
    if figures := config.stash.get(_FIGURES, []):
        terminalreporter.section("figures of the fault campaigns")
        for line in figures:
            terminalreporter.line(line)
