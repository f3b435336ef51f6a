"""A controller that records requests, for the client and the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wlm.client.recording_controller import RecordingController


@pytest.fixture
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingController]:
    """Return a controller in a directory of its own."""
    server = RecordingController(Path(tmp_path_factory.mktemp("cluster")))
    yield server
    server.close()
