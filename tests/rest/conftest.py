"""What the tests of the REST server share."""

from __future__ import annotations

from collections.abc import Iterator

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
