"""Clusters of the tests; their jobs and daemons are ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wlm.controller.small_cluster import SmallCluster


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallCluster]:
    one = SmallCluster(tmp_path_factory.mktemp("cluster"))
    one.start()
    yield one
    one.close()


@pytest.fixture
def cluster(shared_cluster: SmallCluster, tmp_path: Path) -> SmallCluster:
    """Cluster that the tests of a module share. Each has a directory for its jobs."""
    shared_cluster.work = tmp_path
    return shared_cluster


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[SmallCluster]:
    """Cluster of a test that changes its settings."""
    one = SmallCluster(tmp_path)
    one.start()
    yield one
    one.close()
