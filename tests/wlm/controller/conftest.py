"""Clusters of the tests; their jobs and daemons are ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wlm.controller.small_cluster import SmallCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SmallCluster]:
    one = SmallCluster(tmp_path)
    one.start()
    yield one
    one.close()
