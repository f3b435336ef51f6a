"""Embedded workload manager that runs scenarios, without a bank."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from tests.support.server import FAIRBANK
from tests.wlm.cluster.running_cluster import RunningCluster
from tests.wlm.scenarios.scenario import Site
from tests.wlm.scenarios.transcript import FIRST_JOB

SETTINGS = f"""
[cluster]
cluster_name = "lab"
slurmctld_host = "lab"
return_to_service = 2
first_job_id = {FIRST_JOB}

[jobs]
kill_wait = 2

[[nodes]]
node_name = "n[1-8]"
cpus = 64
sockets = 2
cores_per_socket = 32
real_memory = 64000

[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
default_time = "30"
max_time = "7-0"
def_mem_per_cpu = 1000

[[partitions]]
partition_name = "short"
nodes = "ALL"
default_time = "5"
max_time = "10"
max_nodes = 2
def_mem_per_cpu = 10

[scheduling]
licenses = "lic:4"
scheduler_parameters = "batch_sched_delay=0,bf_interval=5,bf_continue,default_queue_depth=1000"
"""
_FIELDS = ["job_id", "array_job", "task", "state", "flag", "reason"]


@contextmanager
def fairbank_site(home: Path, more: str = "", parallel: int = 4) -> Iterator[Site]:
    """Start a cluster with its commands, and end it.

    Args:
        home: directory for it.
        more: text to add to SETTINGS.
        parallel: number of scenarios at a time.
    """
    cluster = RunningCluster(home)
    settings = home / "settings.toml"
    settings.write_text(SETTINGS + more)
    controller = Controller(cluster.directory)
    try:
        started = cluster.run("cluster", "up", "--no-bank", "--config", str(settings))
        assert started.returncode == 0, started

        def states() -> str:
            wanted = {"tasks": True}
            answer = requests.rows(controller, "jobs", _FIELDS, matching=wanted)
            return "".join(
                f"{job if task is None else f'{array}_{task}'}|{flag or state}|{reason}\n"
                for job, array, task, state, flag, reason in answer.rows or ()
            )

        environment = {**cluster.environment, "LC_ALL": "C.UTF-8", "USER": "x", "SHELL": "/bin/sh"}
        environment["PATH"] += f":{Path(FAIRBANK).parent}"
        yield Site(home / "work", environment, states, parallel)
    finally:
        controller.close()
        cluster.close()
