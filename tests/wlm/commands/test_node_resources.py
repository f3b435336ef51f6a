"""Resources of real nodes: what is lost is noticed, and what is there more is used."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.conditions import wait_until
from tests.wlm.commands.test_real_cluster import printed
from tests.wlm.controller.small_cluster import SETTINGS, SmallCluster
from tests.wlm.controller.test_processes import reconfigure

CPUS = len(os.sched_getaffinity(0))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SmallCluster]:
    """Cluster whose nodes have 2 CPUs and 1,000 MiB as long as this host has all of its CPUs."""
    one = SmallCluster(tmp_path)
    file = tmp_path / "node.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"host_cpus": CPUS}))
    one.start()
    yield one
    one.close()


@pytest.mark.skipif(CPUS < 2, reason="no CPU can be taken away")
def test_lost_cpus_are_noticed_and_their_return_too(cluster: SmallCluster) -> None:
    pid = cluster.node.pid
    before = os.sched_getaffinity(pid)
    os.sched_setaffinity(pid, {min(before)})
    real = max(2 // CPUS, 1)
    down = ["DOWN", f"Low CPUs (configured 2, real {real})"]
    wait_until(lambda: cluster.nodes() == {"n1": down, "n2": down}, "the loss")
    assert down[1] in printed(cluster, "sinfo", "-R", "-h", "-o", "%E")
    os.sched_setaffinity(pid, before)
    wait_until(lambda: cluster.nodes()["n1"] == ["UP", ""], "the return")


def test_too_little_for_a_new_configuration_is_noticed_at_once(cluster: SmallCluster) -> None:
    settings = SETTINGS.replace("real_memory = 1000", "real_memory = 3000")
    reconfigure(cluster, settings, "reconfigured: ")
    down = ["DOWN", "Low RealMemory (configured 3000, real 1000)"]
    wait_until(lambda: cluster.nodes()["n2"] == down, "the node to be down")
    reconfigure(cluster, SETTINGS, "reconfigured: ")
    wait_until(lambda: cluster.nodes()["n2"] == ["UP", ""], "the node to return")


def test_job_that_only_the_actual_memory_fits_runs(cluster: SmallCluster) -> None:
    less = SETTINGS.replace("real_memory = 1000", "real_memory = 500")
    job = ("sbatch", "--wait", "--mem=900", "--wrap", "true")
    reconfigure(cluster, less, "reconfigured: ")
    printed(cluster, *job, code=1)
    actual = f'[scheduling]\nnode_resources = "actual"\n{less}'
    reconfigure(cluster, actual, "reconfigured: node_resources")
    printed(cluster, *job)
    assert "RealMemory=1000" in printed(cluster, "scontrol", "show", "node", "n1")
    # The controller starts again although the job had more than is configured.
    cluster.kill_controller()
    cluster.start_controller()
    printed(cluster, *job)
