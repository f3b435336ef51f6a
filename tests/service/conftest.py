"""Fixtures of the tests of the service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairbank.bank.policy import Policy
from tests.service.gated_bank import QueueScene
from tests.service.reporting_agent import Centre, made


@pytest.fixture
def centre() -> Iterator[Centre]:
    """Make a site whose bank enforces its policy."""
    yield from made()


@pytest.fixture
def observing() -> Iterator[Centre]:
    """Make a site whose bank only observes."""
    yield from made(Policy(enforce=False))


@pytest.fixture(params=[False, True], ids=["threads", "apart"])
def apart(request: pytest.FixtureRequest) -> bool:
    """Return True for writer threads in another process; each test runs in both ways."""
    return bool(request.param)


@pytest.fixture
def scene(apart: bool) -> Iterator[QueueScene]:
    """Make a write queue in front of a gated ledger."""
    scene = QueueScene(apart=apart)
    yield scene
    scene.finish()
