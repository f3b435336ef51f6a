"""Jobs whose srun or salloc was killed end after InactiveLimit, and no other job does."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.conditions import wait_until
from tests.wlm.commands.shell import Shell, sh
from tests.wlm.controller.small_cluster import SETTINGS, SmallCluster

Start = Callable[..., subprocess.Popen[str]]
SMALL = "-n", "1", "--mem", "10"
WAITS = sh("echo $SLURM_JOB_ID; while [ ! -e ended ]; do sleep 0.05; done")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallCluster]:
    settings = SETTINGS.replace("[jobs]", "[jobs]\ninactive_limit = 1")
    one = SmallCluster(tmp_path_factory.mktemp("cluster"), settings)
    one.start()
    yield one
    one.close()


@pytest.fixture
def start(shell: Shell, cluster: SmallCluster) -> Iterator[Start]:
    """Return a function that starts a command; what is left after a test is killed.

    The command of a salloc that was killed goes on, and ends when its job has.
    """
    with ExitStack() as processes:
        started = list[subprocess.Popen[str]]()

        def start_one(*words: str, **options: int) -> subprocess.Popen[str]:
            started.append(processes.enter_context(shell.start(*words, **options)))
            return started[-1]

        yield start_one
        for process in started:
            process.kill()
    wait_until(lambda: not cluster.busy_jobs(), "the end of all jobs")
    (shell.directory / "ended").touch()


def job_of(process: subprocess.Popen[str]) -> str:
    """Return the id of the job that a command prints first."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ends_by_the_limit(cluster: SmallCluster, job: str) -> None:
    wait_until(lambda: cluster.jobs()[job] == ["TIMEOUT", "InactiveLimit"], "the end of the job")


def later_job_ends_by_the_limit(cluster: SmallCluster, start: Start) -> None:
    """Wait until the owners were looked for again, and longer than the limit."""
    process = start("srun", *SMALL, *WAITS)
    job = job_of(process)
    process.kill()
    ends_by_the_limit(cluster, job)


@pytest.mark.parametrize("name", ["srun", "salloc"])
def test_job_whose_command_was_killed_gives_its_nodes_back(
    cluster: SmallCluster, start: Start, name: str
) -> None:
    process = start(name, *WAITS)
    job = job_of(process)
    process.kill()
    ends_by_the_limit(cluster, job)


def test_waiting_job_whose_command_was_killed_never_starts(
    cluster: SmallCluster, start: Start
) -> None:
    first = start("salloc", "-N", "2", "--exclusive", *WAITS)
    job_of(first)
    second = start("srun", "-N", "2", "true")
    assert second.stderr is not None
    job = second.stderr.readline().split()[2]
    second.kill()
    wait_until(lambda: cluster.jobs()[job] == ["CANCELLED", "InactiveLimit"], "the cancellation")


def test_stopped_command_keeps_its_job_also_over_a_restart_of_the_controller(
    cluster: SmallCluster, start: Start
) -> None:
    stopped = [start(name, *SMALL, *WAITS) for name in ("srun", "salloc")]
    jobs = [job_of(process) for process in stopped]
    for process in stopped:
        process.send_signal(signal.SIGSTOP)
    later_job_ends_by_the_limit(cluster, start)
    cluster.kill_controller()
    cluster.start_controller()
    later_job_ends_by_the_limit(cluster, start)
    assert [cluster.jobs()[job][0] for job in jobs] == ["RUNNING", "RUNNING"]
    for process in stopped:
        process.kill()  # also one that is stopped
    for job in jobs:
        ends_by_the_limit(cluster, job)


def test_command_that_is_killed_while_there_is_no_controller_is_noticed(
    cluster: SmallCluster, start: Start
) -> None:
    process = start("srun", *WAITS)
    job = job_of(process)
    cluster.kill_controller()
    process.kill()
    process.wait()
    cluster.start_controller()
    ends_by_the_limit(cluster, job)


def test_allocation_without_a_shell_and_batch_jobs_have_no_owner(
    cluster: SmallCluster, shell: Shell, start: Start
) -> None:
    _, _, err = shell.run("salloc", *SMALL, "--no-shell")
    _, out, _ = shell.run("sbatch", *SMALL, "--wrap", "while :; do sleep 0.05; done")
    jobs = [lines[-1].split()[-1] for lines in (err, out)]
    later_job_ends_by_the_limit(cluster, start)
    assert [cluster.jobs()[job][0] for job in jobs] == ["RUNNING", "RUNNING"]
    for job in jobs:
        cluster.ask("cancel", job=job)


def test_srun_in_the_background_goes_on_for_the_one_at_the_terminal(
    cluster: SmallCluster, start: Start
) -> None:
    master, slave = pty.openpty()
    process = start("srun", *SMALL, *WAITS, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while not shown.endswith(b"\n"):
        shown += os.read(master, 4_096)
    job = shown.decode().strip()
    os.write(master, b"~&\n")
    assert process.wait(60) == 0
    os.close(master)
    later_job_ends_by_the_limit(cluster, start)
    assert cluster.jobs()[job][0] == "RUNNING"
    cluster.ask("cancel", job=job)
