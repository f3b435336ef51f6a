"""Launchers of MPI, unchanged, start their processes by srun on virtual nodes of a cluster of one
host.

These tests need no Slurm, but the packages that `make test-slurm` installs.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.lab.packages import LAUNCHERS, missing
from tests.support.conditions import wait_until
from tests.wlm.cluster.running_cluster import RunningCluster

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

ENVIRONMENT = {
    # Open MPI refuses to run as root without both.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # They talk over the loopback interface: Open MPI 4, Open MPI 5 and MPICH.
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "PRTE_MCA_prte_if_include": "lo",
    "HYDRA_IFACE": "lo",
}
DAEMONS = {"mpirun.openmpi": ("orted", "prted"), "mpirun.mpich": ("hydra_pmi_proxy",)}
"""Programs that a launcher starts by srun, one on each node."""
ALONE = "env -u SLURM_NODEID"
"""Start of a launcher without the variable of the script, which MPICH 4.2 would give to tasks."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    running = RunningCluster(tmp_path_factory.mktemp("mpi"))
    running.environment |= ENVIRONMENT
    try:
        started = running.run("cluster", "up", "--nodes", "4", "--cpus", "8", "--memory", "1G")
        assert started.returncode == 0, started
        yield running
    finally:
        running.close()


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest) -> str:
    """Return the name of a launcher."""
    package: str = request.param
    if package in missing(LAUNCHERS):
        pytest.skip(f"{package} not installed; `make test-slurm` installs it, on Debian, as root")
    if package == "openmpi-bin" and len(socket.if_nameindex()) < 2:
        pytest.skip("Open MPI needs a network interface besides the loopback")
    # By its path, Open MPI would search the directory for srun, too, and find Slurm's there.
    return Path(LAUNCHERS[package]).name


def submit(cluster: RunningCluster, line: str, *options: str) -> str:
    """Submit a job of 8 tasks on 4 nodes with a line of a shell, and return its number."""
    shape = ("--nodes=4", "--ntasks=8", "--output=mpi.out")
    return cluster.slurm("sbatch", "--parsable", *shape, *options, f"--wrap={line}").strip()


def run_job(cluster: RunningCluster, line: str) -> tuple[str, list[str]]:
    """Return the number of a job that has ended, and the lines that it wrote."""
    job = submit(cluster, line, "--wait")
    return job, (cluster.home / "mpi.out").read_text().splitlines()


def test_launcher_starts_each_task_on_the_nodes_of_its_job(
    cluster: RunningCluster, launcher: str
) -> None:
    job, lines = run_job(cluster, f"{launcher} hostname")
    assert lines == [os.uname().nodename] * 8
    rows = cluster.slurm("sacct", "-nPo", "jobid,nnodes,ntasks,state,jobname", "-j", f"{job}.0")
    *step, program = rows.strip().split("|")
    assert step == [f"{job}.0", "4", "4", "COMPLETED"]
    assert program in DAEMONS[launcher]
    _, lines = run_job(cluster, f"{ALONE} {launcher} sh -c 'echo $SLURM_NODEID'")
    assert sorted(lines) == sorted("00112233")


def test_launcher_starts_fewer_tasks(cluster: RunningCluster, launcher: str) -> None:
    _, lines = run_job(cluster, f"{ALONE} {launcher} -n 3 sh -c 'echo $SLURM_NODEID'")
    assert sorted(lines) == ["0", "0", "1"]


def test_launcher_exits_as_a_task_that_fails(cluster: RunningCluster, launcher: str) -> None:
    _, lines = run_job(cluster, f"{launcher} sh -c 'exit 3'; echo code $?")
    assert lines[-1] == "code 3"


def test_tasks_of_a_launcher_end_with_their_cancelled_job(
    cluster: RunningCluster, launcher: str
) -> None:
    started = cluster.home / launcher
    daemons = cluster.processes()
    job = submit(cluster, f"{launcher} sh -c 'echo >>{started}; exec sleep 86400'")
    wait_until(lambda: started.exists() and started.stat().st_size == 8, "all tasks")
    cluster.slurm("scancel", job)
    # A launcher that passes SIGTERM on too early is killed only after KillWait, 30 s.
    wait_until(lambda: cluster.processes() <= daemons, "all processes to end", seconds=90)
