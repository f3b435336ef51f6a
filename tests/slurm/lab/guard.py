"""Clusters that are removed also if the process that runs them is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.slurm.lab.cluster import Cluster

CHECKOUT = Path(__file__).parents[3]


@contextmanager
def running_cluster(
    name: str, size: str = "full", changes: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Run a cluster whose name has the number of this process behind it.

    Raises what Cluster.up raises.
    """
    name = f"{name}-{os.getpid()}"
    with cluster_guard(name):
        cluster = Cluster.up(name, size=size, changes=changes)
        try:
            yield cluster
        finally:
            cluster.down()


@contextmanager
def cluster_guard(name: str) -> Iterator[None]:
    """Start a process that removes the cluster if this one is killed."""
    command = [sys.executable, "-m", "tests.slurm.lab", "guard", "--name", name]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, start_new_session=True):
        yield
