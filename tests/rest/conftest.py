"""Fixtures of the tests of the REST service."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.permissions import RoleRequests
from tests.rest.server.echo_server import EchoServer
from tests.rest.world import World, create_world
from tests.support.account import Account


@pytest.fixture
def world() -> Iterator[World]:
    """Provide a new world in memory."""
    with create_world() as made:
        yield made


@pytest.fixture(scope="module")
def shared_world() -> Iterator[World]:
    """Provide one world for all tests of a file, which must not depend on each other's changes."""
    with create_world() as made:
        yield made


@pytest.fixture(scope="module")
def role_requests() -> Iterator[RoleRequests]:
    """Provide one world for all tests of a file, with requests in each role of the table."""
    with create_world() as made:
        yield RoleRequests(made)


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest, checkout: Path) -> Iterator[EchoServer]:
    """Provide a server that returns the peer it sees, on each event loop."""
    folder = Account.ourselves().own_folder("fb-pe-", mode=0o755)
    running = EchoServer(folder, request.param, checkout)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the schemathesis test without that plug-in, whose import is slow."""
    return (
        collection_path.name == "test_schemathesis.py"
        and not config.pluginmanager.hasplugin("schemathesis")
    ) or None
