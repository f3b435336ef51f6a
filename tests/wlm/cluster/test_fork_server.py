"""Tests of the fork server: its forks do what the commands would do by themselves."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.conditions import wait_until
from tests.wlm.cluster.running_cluster import RunningCluster

TELL = 'umask; pwd; ulimit -Sn; echo "$WORDS|$SLURM_PRIO_PROCESS|${COLUMNS-none}"'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    running = RunningCluster(tmp_path_factory.mktemp("fork"))
    try:
        started = running.run("cluster", "up", "--no-bank", "--cpus", "4", "--memory", "1G")
        assert started.returncode == 0, started
        yield running
    finally:
        running.close()


def server(cluster: RunningCluster) -> int:
    pid = cluster.states()["commands"]["pid"]
    assert isinstance(pid, int)
    return pid


def forks(cluster: RunningCluster) -> list[int]:
    """Return the forks that run a command, all of which a test keeps from ending."""
    pid = server(cluster)
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def start(cluster: RunningCluster, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command with pipes."""
    return subprocess.Popen(
        [f"{cluster.directory}/bin/{words[0]}", *words[1:]],
        env={**cluster.environment, **options.pop("environment", {})},
        cwd=options.pop("cwd", cluster.home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def waiting_fork(cluster: RunningCluster) -> int:
    wait_until(lambda: len(forks(cluster)) == 1, "a fork")
    return forks(cluster)[0]


def without_server(cluster: RunningCluster, act: Callable[[], str]) -> str:
    """Return what an act gives while the server cannot be reached."""
    socket = cluster.directory / "commands.sock"
    hidden = socket.rename(socket.with_name("hidden"))
    try:
        return act()
    finally:
        hidden.rename(socket)


def test_script_of_standard_input_is_submitted_by_a_fork(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch", "--parsable")
    waiting_fork(cluster)
    out, err = command.communicate(b"#!/bin/sh\ntrue\n")
    assert (command.returncode, err) == (0, b"")
    assert int(out) > 0
    wait_until(lambda: not forks(cluster), "the end of the fork")


def test_fork_has_directory_limits_and_environment_of_its_client(cluster: RunningCluster) -> None:
    folder = cluster.home / "a folder"
    folder.mkdir()

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(7)[1]))
        os.umask(0o027)
        os.nice(3)

    def tell() -> str:
        words = ("sbatch", "--wait", "--parsable", "-o", "said", "--wrap", TELL)
        command = start(
            cluster, *words, cwd=folder, preexec_fn=prepare, environment={"WORDS": "ä  b\n'c"}
        )
        assert command.wait(60) == 0, command.communicate()
        return (folder / "said").read_text()

    said = tell()
    assert said == f"0027\n{folder}\n512\nä  b\n'c|3|none\n"
    assert without_server(cluster, tell) == said


def test_arguments_may_name_open_files(cluster: RunningCluster) -> None:
    script = cluster.home / "script"
    script.write_text("#!/bin/sh\necho from the file\n")
    with script.open() as file:
        number = file.fileno()
        words = ("sbatch", "--wait", "-o", "out", f"/dev/fd/{number}")
        command = start(cluster, *words, pass_fds=[number])
        waiting_fork(cluster)
        assert command.wait(60) == 0, command.communicate()
    assert (cluster.home / "out").read_text() == "from the file\n"


def test_closed_standard_files_are_those_of_the_command(cluster: RunningCluster) -> None:
    for redirections, code in (("<&-", 0), ("2>&-", 0), (">&-", 1)):
        script = f"{cluster.directory}/bin/squeue {redirections}"
        ended = subprocess.run(
            ["sh", "-c", script], env=cluster.environment, capture_output=True, check=False
        )
        assert ended.returncode == code, ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signal_ends_the_command_as_without_server(
    cluster: RunningCluster, number: signal.Signals
) -> None:
    def code() -> str:
        command = start(cluster, "squeue", "-i", "100")
        assert command.stdout
        command.stdout.readline()
        command.send_signal(number)
        command.wait(30)
        return str(command.returncode)

    assert code() == without_server(cluster, code)
    wait_until(lambda: not forks(cluster), "the end of the fork")


def test_ignored_signals_stay_ignored(cluster: RunningCluster) -> None:
    script = f"trap '' HUP INT; exec {cluster.directory}/bin/sbatch --parsable"
    command = subprocess.Popen(
        ["sh", "-c", script], env=cluster.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    fork = waiting_fork(cluster)
    for number in (signal.SIGHUP, signal.SIGINT):
        command.send_signal(number)
        os.kill(fork, number)
    assert int(command.communicate(b"#!/bin/sh\n")[0]) > 0


def test_stopped_client_stops_its_fork_until_it_goes_on(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch", "--parsable")
    fork = waiting_fork(cluster)

    def states() -> list[str]:
        files = (Path(f"/proc/{pid}/stat").read_text() for pid in (command.pid, fork))
        return [text.rpartition(")")[2].split()[0] for text in files]

    command.send_signal(signal.SIGTSTP)
    wait_until(lambda: states() == ["T", "T"], "both to stop")
    command.send_signal(signal.SIGCONT)
    assert int(command.communicate(b"#!/bin/sh\n")[0]) > 0


def test_killed_srun_ends_its_fork_and_its_job(cluster: RunningCluster) -> None:
    command = start(cluster, "srun", "sleep", "600")
    fork = waiting_fork(cluster)
    wait_until(lambda: cluster.slurm("squeue", "-s", "-h"), "the step")
    command.kill()
    command.wait()
    wait_until(lambda: not Path(f"/proc/{fork}").exists(), "the end of the fork")
    wait_until(lambda: not cluster.slurm("squeue", "-h"), "the end of the job")


def test_killed_fork_is_an_error(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch")
    os.kill(waiting_fork(cluster), signal.SIGKILL)
    _, err = command.communicate()
    assert (command.returncode, err) == (1, b"error: the process of this command was killed\n")


def test_stopped_server_lets_a_command_run_once(cluster: RunningCluster) -> None:
    pid = server(cluster)
    os.kill(pid, signal.SIGSTOP)
    try:
        cluster.slurm("sbatch", "-J", "once", "-H", "--wrap", "true")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not forks(cluster), "the end of the fork that came too late")
    assert len(cluster.slurm("squeue", "-h", "-n", "once").splitlines()) == 1
    cluster.slurm("scancel", "-n", "once")


def test_fork_goes_on_when_its_server_is_killed(cluster: RunningCluster) -> None:
    pid = server(cluster)
    command = start(cluster, "sbatch", "--parsable")
    waiting_fork(cluster)
    os.kill(pid, signal.SIGKILL)
    assert cluster.slurm("squeue", "-h") == ""
    assert int(command.communicate(b"#!/bin/sh\n")[0]) > 0
    wait_until(lambda: cluster.states()["commands"]["pid"] not in (None, pid), "a new server")


def test_client_with_another_locale_runs_the_command(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch", environment={"LC_ALL": "de_DE.ISO-8859-1"})
    other = start(cluster, "sbatch")
    waiting_fork(cluster)  # one of two
    for process in (command, other):
        process.communicate(b"#!/bin/sh\n")
        assert process.returncode == 0


def test_interactive_commands_keep_their_own_process(cluster: RunningCluster) -> None:
    command = start(cluster, "salloc", "sh", "-c", "read line")
    wait_until(lambda: cluster.slurm("squeue", "-h", "-t", "R"), "the job")
    assert forks(cluster) == []
    command.communicate(b"\n")
    assert command.returncode == 0
