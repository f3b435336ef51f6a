"""What the tests of the service share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairbank.bank.policy import Policy
from tests.service.gated import Scene
from tests.service.reporting import Centre, made


@pytest.fixture
def centre() -> Iterator[Centre]:
    """A bank that refuses what it must."""
    yield from made()


@pytest.fixture
def observing() -> Iterator[Centre]:
    """A bank that only observes."""
    yield from made(Policy(enforce=False))


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A counter in front of a gated bank."""
    scene = Scene()
    yield scene
    scene.finish()
