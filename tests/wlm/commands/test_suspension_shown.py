"""Suspended jobs in squeue, scontrol, sacct and sstat, beside a real controller and node daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fairbank.slurm.parsers.columns import DELIMITER
from fairbank.wlm.stepd.processes import descendants, process_table
from tests.support.conditions import wait_until
from tests.wlm.commands.test_real_cluster import printed
from tests.wlm.controller.small_cluster import SmallCluster


@pytest.fixture
def job(cluster: SmallCluster) -> Iterator[str]:
    """Return a job that is suspended."""
    number = printed(cluster, "sbatch", "--parsable", "-t", "10", "--wrap", "sleep 600").strip()
    cluster.wait_for_state(number, "RUNNING")
    printed(cluster, "scontrol", "suspend", number)
    cluster.wait_for_state(number, "SUSPENDED")
    yield number
    if number in cluster.busy_jobs():
        printed(cluster, "scancel", number)
        wait_until(lambda: number not in cluster.busy_jobs(), "the end of the job")


def fields(page: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in page.split() if "=" in word)


def accounted(cluster: SmallCluster, job: str, columns: str) -> list[list[str]]:
    text = printed(cluster, "sacct", "-n", "-P", "--delimiter", DELIMITER, "-j", job, "-o", columns)
    return [line.split(DELIMITER) for line in text.splitlines()]


def seconds(length: str) -> int:
    hours, minutes, rest = map(int, length.split(":"))
    return hours * 3_600 + minutes * 60 + rest


def test_suspended_job_is_shown(cluster: SmallCluster, job: str) -> None:
    assert printed(cluster, "squeue", "-h", "-o", "%i %t %T").strip() == f"{job} S SUSPENDED"
    shown = fields(printed(cluster, "scontrol", "show", "job", job))
    assert shown["JobState"] == "SUSPENDED"
    assert shown["SuspendTime"] != "None"
    assert shown["SecsPreSuspend"] == str(seconds(shown["RunTime"]))
    rows = accounted(cluster, job, "jobid,state")
    assert rows == [[job, "SUSPENDED"], [f"{job}.batch", "SUSPENDED"]]
    assert printed(cluster, "sstat", "-n", "-P", "-a", "-j", job, "-o", "jobid") == f"{job}.batch\n"


def test_time_stands_still_and_accounting_says_for_how_long(
    cluster: SmallCluster, job: str
) -> None:
    before = printed(cluster, "squeue", "-h", "-j", job, "-o", "%M %L").split()
    wait_until(lambda: seconds(accounted(cluster, job, "suspended")[0][0]) >= 2, "two seconds")
    assert printed(cluster, "squeue", "-h", "-j", job, "-o", "%M %L").split() == before
    printed(cluster, "scontrol", "resume", job)
    cluster.wait_for_state(job, "RUNNING")
    shown = fields(printed(cluster, "scontrol", "show", "job", job))
    assert shown["JobState"] == "RUNNING"
    assert shown["SuspendTime"] != "None"
    printed(cluster, "scancel", job)
    wait_until(lambda: job not in cluster.busy_jobs(), "the end of the job")
    (row, _) = accounted(cluster, job, "state,suspended")
    assert row[0].startswith("CANCELLED")
    assert 2 <= seconds(row[1]) < 600


def test_suspended_job_is_cancelled(cluster: SmallCluster, job: str) -> None:
    printed(cluster, "scancel", job)
    cluster.wait_for_state(job, "CANCELLED")


def test_wrong_states_are_refused_with_the_sentences_of_slurm(
    cluster: SmallCluster, job: str
) -> None:
    def refused(*words: str) -> str:
        environment = {**os.environ, "FAIRBANK_CLUSTER": str(cluster.directory)}
        command = [sys.executable, "-m", "fairbank.wlm.commands", *words]
        process = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False
        )
        assert process.returncode != 0
        return process.stderr

    assert printed(cluster, "scontrol", "suspend", job) == ""  # again
    assert "Invalid job id specified for job 4711" in refused("scontrol", "resume", "4711")
    assert "Job can not be altered now" in refused("scancel", "-s", "USR1", job)
    printed(cluster, "scontrol", "resume", job)
    cluster.wait_for_state(job, "RUNNING")
    assert f"Job is not suspended for job {job}" in refused("scontrol", "resume", job)


def test_srun_and_its_step_stop_and_go_on(cluster: SmallCluster) -> None:
    srun = f"{sys.executable} -m fairbank.wlm.commands srun"
    script = f"{srun} -n 1 sh -c 'while [ ! -e {{}} ]; do sleep 0.05; done; echo done'"
    go = cluster.directory / "go"
    number = printed(
        cluster, "sbatch", "--parsable", "-n", "1", "--wrap", script.format(go)
    ).strip()
    wait_until(
        lambda: f"{number}.0" in printed(cluster, "squeue", "-s", "-h", "-o", "%i"), "a step"
    )
    printed(cluster, "scontrol", "suspend", number)
    cluster.wait_for_state(number, "SUSPENDED")
    steps = printed(cluster, "squeue", "-s", "-h", "-o", "%i", "-j", number).split()
    assert sorted(steps) == [f"{number}.0", f"{number}.batch"]
    go.touch()
    printed(cluster, "scontrol", "resume", number)
    cluster.wait_for_state(number, "COMPLETED")
    assert (cluster.directory / f"slurm-{number}.out").read_text() == "done\n"
    assert accounted(cluster, number, "state") == [["COMPLETED"]] * 3


def test_step_of_a_suspended_job_waits_until_it_goes_on(cluster: SmallCluster, job: str) -> None:
    environment = {**os.environ, "FAIRBANK_CLUSTER": str(cluster.directory)}
    srun = [sys.executable, "-m", "fairbank.wlm.commands", "srun", f"--jobid={job}", "--overlap"]
    refused = subprocess.run(
        [*srun, "-I", "true"], capture_output=True, text=True, env=environment, check=False
    )
    assert refused.returncode == 1
    reason = f"job {job} is suspended"
    assert refused.stderr == f"srun: error: Unable to create step for job {job}: {reason}\n"
    with subprocess.Popen(
        [*srun, "echo", "on"], stdout=-1, stderr=-1, text=True, env=environment
    ) as waiting:
        assert waiting.stderr is not None
        line = f"srun: Job {job} step creation temporarily disabled, retrying ({reason})\n"
        assert waiting.stderr.readline() == line
        printed(cluster, "scontrol", "resume", job)
        assert waiting.communicate(timeout=60)[0] == "on\n"


def test_salloc_whose_shell_ends_while_its_job_is_suspended_ends_the_job(
    cluster: SmallCluster,
) -> None:
    environment = {**os.environ, "FAIRBANK_CLUSTER": str(cluster.directory)}
    command = [sys.executable, "-m", "fairbank.wlm.commands", "salloc", "sleep", "600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as salloc:
        assert salloc.stderr is not None
        number = salloc.stderr.readline().split()[-1]
        cluster.wait_for_state(number, "RUNNING")
        printed(cluster, "scontrol", "suspend", number)
        (child,) = descendants([salloc.pid], process_table())
        os.kill(child.pid, signal.SIGKILL)
        salloc.wait()
    wait_until(lambda: number not in cluster.busy_jobs(), "the end of the job")
