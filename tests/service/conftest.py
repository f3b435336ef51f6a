"""Fixtures of the tests of the service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairbank.bank.policy import Policy
from tests.service.gated_bank import QueueScene
from tests.service.reporting_agent import ReportingSite, make_site


@pytest.fixture
def site() -> Iterator[ReportingSite]:
    """Make a site whose bank enforces its policy."""
    yield from make_site()


@pytest.fixture
def observing() -> Iterator[ReportingSite]:
    """Make a site whose bank only observes."""
    yield from make_site(Policy(enforce=False))


@pytest.fixture(params=[False, True], ids=["threads", "apart"])
def separate_process(request: pytest.FixtureRequest) -> bool:
    """Return True for writer threads in another process; each test runs in both ways."""
    return bool(request.param)


@pytest.fixture
def scene(separate_process: bool) -> Iterator[QueueScene]:
    """Make a write queue in front of a gated ledger."""
    scene = QueueScene(separate_process=separate_process)
    yield scene
    scene.finish()
