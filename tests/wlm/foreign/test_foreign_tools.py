"""simple-slurm, reportseff, submitit and dask-jobqueue work, unchanged, with Slurm's commands here.

`make test` makes their environment from requirements-foreign.lock.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wlm.cluster.running_cluster import RunningCluster

PAGE = Path(__file__).parents[3] / "docs/howto/many-tasks-in-one-job.md"
PLACE = Path(sys.prefix) / "foreign" / "bin"
"""Commands of the tools."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PLACE.exists(), reason="made by make test: .venv/.foreign"),
]
QUEUE = """
import json
from simple_slurm import Slurm

slurm = Slurm(cpus_per_task=1, time="0:05:00", job_name="reader", output="%j.out")
job = slurm.sbatch("echo job $SLURM_JOB_ID")
later = Slurm(dependency={"afterok": job}, begin="now+1hour", job_name="waits").sbatch("true")
slurm.squeue.update_squeue()
waiting = slurm.squeue.jobs[later]
slurm.scancel.cancel_job(later)
print(json.dumps([job, later, waiting]))
"""
FUNCTIONS = """
import json
import submitit

executor = submitit.AutoExecutor(folder="functions", cluster="slurm")
executor.update_parameters(timeout_min=2, mem_gb=0.1)
one = executor.submit(pow, 2, 10)
several = executor.map_array(pow, [2, 3, 4], [5, 5, 5])
print(json.dumps([one.result(), [job.result() for job in several]]))
"""
WORKERS = """
import json
from dask_jobqueue import SLURMCluster
from distributed import Client

if __name__ == "__main__":
    with SLURMCluster(
        cores=1, processes=1, memory="200MB", walltime="00:05:00", interface="lo",
        scheduler_options={"dashboard": False},
    ) as cluster, Client(cluster) as client:
        cluster.scale(2)
        client.wait_for_workers(2, timeout=60)
        squares = client.gather(client.map(lambda number: number**2, range(10)))
        print(json.dumps([len(client.scheduler_info()["workers"]), sum(squares)]))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    running = RunningCluster(tmp_path_factory.mktemp("foreign"))
    running.environment["USER"] = "root" if os.geteuid() == 0 else str(os.geteuid())
    try:
        started = running.run("cluster", "up", "--nodes", "2", "--cpus", "4", "--memory", "1G")
        assert started.returncode == 0, started
        yield running
    finally:
        running.close()


def run(cluster: RunningCluster, *words: str) -> str:
    """Run a program of the tools' environment, which must succeed, and return its output."""
    result = subprocess.run(
        [str(PLACE / words[0]), *words[1:]],
        env=cluster.environment,
        cwd=cluster.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result
    return result.stdout


def last_line(cluster: RunningCluster, script: str) -> object:
    """Run a script with the tools, and return the JSON in its last line."""
    return json.loads(run(cluster, "python", "-c", script).splitlines()[-1])


def test_simple_slurm_submits_reads_the_queue_and_cancels(cluster: RunningCluster) -> None:
    answer = last_line(cluster, QUEUE)
    assert isinstance(answer, list)
    job, later, waiting = answer
    assert (waiting["NAME"], waiting["ST"]) == ("waits", "PD")
    cluster.slurm("sbatch", "--wait", f"--dependency=afterany:{job}", "--wrap=true")
    assert (cluster.home / f"{job}.out").read_text() == f"job {job}\n"
    states = cluster.slurm("sacct", "-nXPo", "state", "-j", f"{job},{later}").splitlines()
    assert states == ["COMPLETED", f"CANCELLED by {os.geteuid()}"]


def test_reportseff_reads_the_accounting(cluster: RunningCluster) -> None:
    output = cluster.slurm("sbatch", "--wait", "--wrap=sleep 1", "--time=1")
    job = output.split()[-1]
    for selection in ([job], ["--user", cluster.environment["USER"]]):
        rows = [line.split() for line in run(cluster, "reportseff", *selection).splitlines()]
        assert rows[0] == ["JobID", "State", "Elapsed", "TimeEff", "CPUEff", "MemEff"]
        assert [row[1] for row in rows if row[:1] == [job]] == ["COMPLETED"]


def test_submitit_submits_and_collects_functions(cluster: RunningCluster) -> None:
    assert last_line(cluster, FUNCTIONS) == [1_024, [32, 243, 1_024]]


@pytest.mark.campaign
def test_dask_starts_two_workers_and_computes(cluster: RunningCluster) -> None:
    script = cluster.home / "workers.py"
    script.write_text(WORKERS)
    assert json.loads(run(cluster, "python", str(script)).splitlines()[-1]) == [2, 285]


@pytest.mark.campaign
def test_dask_runs_in_a_step_as_its_page_says(cluster: RunningCluster) -> None:
    (script,) = re.findall(r"(?s)```python\n(.*?)```", PAGE.read_text())
    (cluster.home / "squares").write_text(script)
    line, *_ = re.findall(r"(?m)^\$ (salloc .*) python squares$", PAGE.read_text())
    output = cluster.slurm(*line.split(), str(PLACE / "python"), "squares")
    assert output == "1: 332833500\n"


def test_script_for_hyperqueue_is_accepted(cluster: RunningCluster) -> None:
    (script,) = re.findall(r"(?s)```sh\n(.*?)```", PAGE.read_text())
    (cluster.home / "sweep.sh").write_text(script)
    cluster.slurm("sbatch", "--test-only", "sweep.sh")
