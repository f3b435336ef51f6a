"""What the tests of the REST server share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.permissions import Asking
from tests.rest.server.echo_server import Asked
from tests.rest.world import World, a_world
from tests.support.account import Account


@pytest.fixture
def world() -> Iterator[World]:
    """A fresh world in memory."""
    with a_world() as made:
        yield made


@pytest.fixture(scope="module")
def old_world() -> Iterator[World]:
    """One world for a whole file, whose tests leave it as they find it or do not mind."""
    with a_world() as made:
        yield made


@pytest.fixture(scope="module")
def asking() -> Iterator[Asking]:
    """One world for a whole file, asked in each of the roles of the table."""
    with a_world() as made:
        yield Asking(made)


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest, checkout: Path) -> Iterator[Asked]:
    """A server that tells whom it sees, on each event loop."""
    folder = Account.ourselves().own_folder("fb-pe-", mode=0o755)
    running = Asked(folder, request.param, checkout)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick half runs without schemathesis's plug-in, and should not wait for its import either."""
    return (
        collection_path.name == "test_schemathesis.py"
        and not config.pluginmanager.hasplugin("schemathesis")
    ) or None
