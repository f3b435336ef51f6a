"""Jobs and steps above their memory in sacct, squeue, scontrol and srun, beside real daemons."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

from tests.support.conditions import wait_until
from tests.wlm.commands.test_real_cluster import printed
from tests.wlm.controller.small_cluster import SmallCluster

SRUN = f"{sys.executable} -m fairbank.wlm.commands srun"
TAKE = f"{sys.executable} -c 'import time; data = bytearray(200 << 20); time.sleep(600)'"


def accounted(cluster: SmallCluster, job: str, columns: str) -> list[str]:
    return printed(cluster, "sacct", "-n", "-P", "-j", job, "-o", columns).splitlines()


def run_script(cluster: SmallCluster, script: str) -> tuple[str, list[str]]:
    """Run a batch script with 100 MiB. Return its job and the lines of its output."""
    (cluster.directory / "job.sh").write_text(f"#!/bin/sh\n{script}\n")
    job = printed(cluster, "sbatch", "--parsable", "--mem=100M", "job.sh").strip()
    wait_until(lambda: job not in cluster.busy_jobs(), "the end of the job")
    return job, (cluster.directory / f"slurm-{job}.out").read_text().splitlines()


def test_step_above_the_memory_of_its_job_is_named_and_the_script_goes_on(
    cluster: SmallCluster,
) -> None:
    job, lines = run_script(cluster, f"{SRUN} -n 1 {TAKE}\necho code $?")
    assert lines[-2:] == ["srun: error: n1: task 0: Out Of Memory", "code 253"]
    assert any(f"Detected 1 oom_kill event in StepId={job}.0." in line for line in lines)
    assert accounted(cluster, job, "jobid,state,exitcode,derivedexitcode") == [
        f"{job}|COMPLETED|0:0|0:125",
        f"{job}.batch|COMPLETED|0:0|",
        f"{job}.0|OUT_OF_MEMORY|0:125|",
    ]


def test_job_above_its_memory_is_shown_as_in_slurm(cluster: SmallCluster) -> None:
    job, lines = run_script(cluster, f"{TAKE} & wait")
    assert f"Detected 1 oom_kill event in StepId={job}.batch." in lines[-1]
    assert accounted(cluster, job, "jobid,state,exitcode") == [
        f"{job}|OUT_OF_MEMORY|0:125",
        f"{job}.batch|OUT_OF_MEMORY|0:125",
    ]
    shown = printed(cluster, "squeue", "-h", "-j", job, "-t", "all", "-o", "%t %T %r").strip()
    assert shown == "OOM OUT_OF_MEMORY OutOfMemory"
    page = printed(cluster, "scontrol", "show", "job", job)
    assert "JobState=OUT_OF_MEMORY Reason=OutOfMemory" in page
    assert "ExitCode=0:125" in page


def test_interactive_step_above_its_memory_is_named_by_srun(cluster: SmallCluster) -> None:
    command = [*SRUN.split(), "--mem=100M", "-n", "1", *shlex.split(TAKE)]
    environment = {**os.environ, "FAIRBANK_CLUSTER": str(cluster.directory)}
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, cwd=cluster.directory
    )
    assert ended.returncode == 253
    assert "srun: error: n1: task 0: Out Of Memory\n" in ended.stderr
    job = max(cluster.jobs(), key=int)
    wait_until(lambda: job not in cluster.busy_jobs(), "the end of the job")
    assert accounted(cluster, job, "jobid,state,exitcode") == [
        f"{job}|OUT_OF_MEMORY|0:125",
        f"{job}.0|OUT_OF_MEMORY|0:125",
    ]
