"""Signals and lost connections between a request of srun or salloc and its answer."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from fairbank.core.errors import NotFound
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.protocol.commands import AnyRequest, CreateStepRequest
from tests.support.conditions import wait_until
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.shell import Shell, sh
from tests.wlm.controller.small_cluster import SmallCluster

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def job(shell: Shell, cluster: SmallCluster) -> Iterator[str]:
    """Return the id of a job that steps may use."""
    _, _, err = shell.run("salloc", "-n", "1", "--no-shell")
    number = err[-1].split()[-1]
    yield number
    with Controller(cluster.directory) as controller:
        requests.change_jobs(controller, "cancel", [number])
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")


def has_ended(cluster: SmallCluster, job: str) -> bool:
    with Controller(cluster.directory) as controller:
        try:
            return requests.find_step(controller, job, 0).state != "RUNNING"
        except NotFound:
            return False


@contextmanager
def relay(
    shell: Shell, cluster: SmallCluster, tag: str, before_answer: Callable[[], bool]
) -> Iterator[RecordingController]:
    """Pass on requests of commands to the controller, and its answers.

    The first answer to a request of one type waits until `before_answer` returns; if that returns
    False, the connection is closed instead.
    """
    waiting = [tag]

    def answer(request: AnyRequest) -> dict[str, Any] | None:
        fields = msgspec.to_builtins(request)
        name = fields.pop("request")
        del fields["version"]
        with Controller(cluster.directory) as controller:
            result = controller.request(name, seconds=None, **fields)
        if name not in waiting:
            return result
        waiting.clear()
        return result if before_answer() else None

    directory = shell.directory / "relay"
    directory.mkdir()
    passing = RecordingController(directory)
    passing.answer = answer
    shell.environment["FAIRBANK_CLUSTER"] = str(directory)
    try:
        yield passing
    finally:
        passing.close()


def interrupted(
    shell: Shell, cluster: SmallCluster, tag: str, number: signal.Signals, *words: str
) -> tuple[int, str, str]:
    """Run a command that gets a signal before its first answer to a request of a type."""
    processes = list[subprocess.Popen[str]]()

    def interrupt() -> bool:
        wait_until(lambda: processes, "the process")
        processes[0].send_signal(number)
        return True

    with relay(shell, cluster, tag, interrupt), shell.start(*words) as process:
        processes.append(process)
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("ends_first", [False, True])
def test_step_whose_answer_is_lost_is_not_created_twice(
    shell: Shell, cluster: SmallCluster, job: str, ends_first: bool
) -> None:
    """srun asks again, and gets the step, whether it runs or has ended meanwhile."""

    def lose() -> bool:
        if ends_first:
            (shell.directory / "go").touch()
            wait_until(lambda: has_ended(cluster, job), "the end of the step")
        return False

    script = "echo one >>runs; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 3"
    with (
        relay(shell, cluster, "create-step", lose),
        shell.start("srun", f"--jobid={job}", *sh(script)) as process,
    ):
        assert process.stderr is not None
        assert process.stderr.readline().endswith("; retrying\n")
        (shell.directory / "go").touch()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "two\n")
    assert err.splitlines() == [
        f"srun: Step created for StepId={job}.0",
        "srun: error: n1: task 0: Exited with exit code 3",
    ]
    assert (shell.directory / "runs").read_text() == "one\n"


def test_srun_that_asks_again_waits_until_the_node_of_its_step_registers(
    shell: Shell, cluster: SmallCluster, job: str
) -> None:
    begun = shell.directory / "begun"

    def attempts(passing: RecordingController) -> int:
        return sum(isinstance(request, CreateStepRequest) for request in passing.requests)

    def lose() -> bool:
        wait_until(begun.exists, "the task")
        cluster.kill_node()
        cluster.kill_controller()
        cluster.start_controller(nodes=())
        return False

    script = "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo on"
    with (
        relay(shell, cluster, "create-step", lose) as passing,
        shell.start("srun", f"--jobid={job}", *sh(script)) as process,
    ):
        assert process.stderr is not None
        assert process.stderr.readline().endswith("; retrying\n")
        wait_until(lambda: attempts(passing) >= 3, "an attempt after the one that was refused")
        cluster.start_node()
        (shell.directory / "go").touch()
        assert process.communicate(timeout=60)[0] == "on\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_before_the_answer_ends_the_step(
    shell: Shell, cluster: SmallCluster, job: str, number: signal.Signals
) -> None:
    words = ("srun", f"--jobid={job}", "sleep", "600")
    outcome = interrupted(shell, cluster, "create-step", number, *words)
    assert outcome == (128 + number, "", "")
    wait_until(lambda: has_ended(cluster, job), "the end of the step")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("name", ["srun", "salloc"])
def test_signal_before_the_answer_revokes_the_job(
    shell: Shell, cluster: SmallCluster, name: str, number: signal.Signals
) -> None:
    code, out, err = interrupted(shell, cluster, "submit", number, name, "sleep", "600")
    assert (code, out, err.split()[-3:]) == (1, "", ["has", "been", "revoked"])
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")


FORK = """
import os, signal, sys
from fairbank.wlm.commands import program

fork = os.fork

def fork_and_signal():
    pid = fork()
    if (pid == 0) == (sys.argv[1] == "child"):
        os.kill(os.getpid(), int(sys.argv[2]))
    return pid

os.fork = fork_and_signal
os._exit(program.run("salloc", sys.argv[3:]))
"""


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("where", ["parent", "child"])
def test_signal_just_after_the_fork_leaves_no_job_behind(
    shell: Shell, cluster: SmallCluster, where: str, number: signal.Signals
) -> None:
    """It is that of the command, or is forwarded to it."""
    program = shell.directory / "links" / "fork"
    program.write_text(f"#!{sys.executable}\n{FORK}")
    program.chmod(0o700)
    with shell.start("fork", where, str(int(number)), "sleep", "600") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + number, "")
    assert [line.split()[1] for line in err.splitlines()] == ["Granted", "Relinquishing"]
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")
