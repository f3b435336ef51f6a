"""What the tests of the REST server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.world import World, a_world


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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick half runs without schemathesis's plug-in, and should not wait for its import either."""
    return (collection_path.name == "test_schemathesis.py" and not config.pluginmanager.hasplugin("schemathesis")) or None
