"""Tests of the fork server: its forks do what the commands would do by themselves."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.conditions import wait_until
from tests.wlm.cluster.running_cluster import RunningCluster

T = TypeVar("T")
SCRIPT = """#!/bin/sh
umask; pwd; ulimit -Sn; echo "$WORDS|$SLURM_PRIO_PROCESS|${COLUMNS-none}"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    ignoring = ("env", "--ignore-signal=INT", "--ignore-signal=HUP")
    running = RunningCluster(tmp_path_factory.mktemp("fork"), ignoring)
    try:
        started = running.run("cluster", "up", "--no-bank", "--cpus", "4", "--memory", "1G")
        assert started.returncode == 0, started
        yield running
    finally:
        running.close()


def server(cluster: RunningCluster) -> int:
    wait_until(lambda: cluster.states()["commands"]["pid"], "the server")
    return int(cluster.states()["commands"]["pid"])


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


def end(command: subprocess.Popen[bytes], text: bytes = b"") -> tuple[int, bytes, bytes]:
    """Give a command its input. Return its exit code and what it writes."""
    out, err = command.communicate(text, timeout=60)
    return command.returncode, out, err


def waiting_fork(cluster: RunningCluster, command: subprocess.Popen[bytes]) -> int:
    """Return the only fork, when its client forwards signals."""
    status = Path(f"/proc/{command.pid}/status")
    mask = re.compile(r"^SigCgt:\t(\w+)$", re.MULTILINE)

    def follows() -> bool:
        match = mask.search(status.read_text())
        return match is not None and bool(int(match[1], 16) >> signal.SIGTSTP - 1 & 1)

    wait_until(follows, "the client to follow its fork")
    wait_until(lambda: len(cluster.forks()) == 1, "the forks before to end")
    return cluster.forks()[0]


def state(pid: int) -> str:
    """Return the letter of the state of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def without_server(cluster: RunningCluster, act: Callable[[], T]) -> T:
    """Return what an act gives while the server cannot be reached."""
    socket = cluster.directory / "commands.sock"
    hidden = socket.rename(socket.with_name("hidden"))
    try:
        return act()
    finally:
        hidden.rename(socket)


def test_script_of_standard_input_is_submitted_by_a_fork(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch", "--parsable")
    waiting_fork(cluster, command)
    code, out, err = end(command, b"#!/bin/sh\ntrue\n")
    assert (code, int(out) > 0, err) == (0, True, b"")
    wait_until(lambda: not cluster.forks(), "the end of the fork")


def test_fork_has_directory_limits_and_environment_of_its_client(cluster: RunningCluster) -> None:
    folder = cluster.home / "a folder"
    folder.mkdir()

    def prepare() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        os.umask(0o027)
        os.nice(3)

    def submit() -> subprocess.Popen[bytes]:
        words = ("sbatch", "--wait", "-o", "output")
        environment = {"WORDS": "ä  b\n'c"}
        return start(cluster, *words, cwd=folder, preexec_fn=prepare, environment=environment)

    def output(command: subprocess.Popen[bytes]) -> str:
        assert end(command, SCRIPT.encode())[0] == 0
        return (folder / "output").read_text()

    command = submit()
    waiting_fork(cluster, command)
    text = output(command)
    assert text == f"0027\n{folder}\n512\nä  b\n'c|3|none\n"
    assert without_server(cluster, lambda: output(submit())) == text


def test_arguments_may_name_open_files(cluster: RunningCluster) -> None:
    script = cluster.home / "script"
    script.write_text("#!/bin/sh\necho from the file\n")
    with script.open() as file:
        number = file.fileno()
        words = ("sbatch", "--wait", "-o", "out", f"/dev/fd/{number}")
        command = start(cluster, *words, pass_fds=[number])
        waiting_fork(cluster, command)
        assert end(command)[0] == 0
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
    def code(*, is_forked: bool) -> int:
        command = start(cluster, "squeue", "-i", "100")
        assert command.stdout
        command.stdout.readline()
        if is_forked:
            waiting_fork(cluster, command)
        command.send_signal(number)
        return end(command)[0]

    assert code(is_forked=True) == without_server(cluster, lambda: code(is_forked=False))
    wait_until(lambda: not cluster.forks(), "the end of the fork")


def test_arguments_are_the_same_bytes(cluster: RunningCluster) -> None:
    words = [f"{cluster.directory}/bin/scontrol", "show", "hostnames", os.fsdecode(b"a\xff")]

    def output(*python: str) -> bytes:
        return subprocess.run(
            [*python, *words], env=cluster.environment, capture_output=True, check=True
        ).stdout

    assert output() == output(sys.executable) == without_server(cluster, output) == b"a\xff\n"


def test_ignored_signals_stay_ignored(cluster: RunningCluster) -> None:
    numbers = (signal.SIGHUP, signal.SIGINT)

    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    command = start(cluster, "sbatch", "--parsable", preexec_fn=ignore)
    fork = waiting_fork(cluster, command)
    for number in numbers:
        command.send_signal(number)
        os.kill(fork, number)
    assert int(end(command, b"#!/bin/sh\n")[1]) > 0


def test_stopped_client_stops_its_fork_until_it_goes_on(cluster: RunningCluster) -> None:
    # In a process group of its own: the kernel stops none that has no shell.
    command = start(cluster, "sbatch", "--parsable", process_group=0)
    fork = waiting_fork(cluster, command)

    def states() -> list[str]:
        return [state(command.pid), state(fork)]

    command.send_signal(signal.SIGTSTP)
    wait_until(lambda: states() == ["T", "T"], "both to stop")
    command.send_signal(signal.SIGCONT)
    assert int(end(command, b"#!/bin/sh\n")[1]) > 0


def test_signals_of_a_hangup_end_the_command(cluster: RunningCluster) -> None:
    command = start(cluster, "squeue", "-i", "100")
    waiting_fork(cluster, command)
    for number in (signal.SIGHUP, signal.SIGCONT):
        command.send_signal(number)
    assert end(command)[0] == -signal.SIGHUP


def test_command_without_terminal_is_not_stopped_by_it(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch", "--parsable", start_new_session=True)
    waiting_fork(cluster, command)
    command.send_signal(signal.SIGTSTP)
    assert int(end(command, SCRIPT.encode())[1]) > 0


def test_command_in_the_background_of_a_terminal_does_not_read_it(cluster: RunningCluster) -> None:
    master, terminal = os.openpty()
    script = f"set -m; {cluster.directory}/bin/sbatch & wait"
    shell = subprocess.run(
        ["setsid", "--ctty", "--wait", "bash", "-c", script],
        env=cluster.environment,
        stdin=terminal,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert b"Stopped" in shell.stderr
    os.close(master)
    os.close(terminal)


def test_files_are_closed_before_the_command_ends(cluster: RunningCluster) -> None:
    program, lock = f"{cluster.directory}/bin/squeue", str(cluster.home / "lock")
    for _ in range(40):
        words = ("flock", "--nonblock", lock, program)
        subprocess.run(words, env=cluster.environment, stdout=subprocess.DEVNULL, check=True)


def test_killed_command_ends_its_fork(cluster: RunningCluster) -> None:
    command = start(cluster, "srun", "sleep", "600")
    fork = waiting_fork(cluster, command)
    wait_until(lambda: cluster.slurm("squeue", "-s", "-h"), "the step")
    command.kill()
    end(command)
    wait_until(lambda: not Path(f"/proc/{fork}").exists(), "the end of the fork")
    cluster.slurm("scancel", "--me")


def test_killed_fork_is_an_error(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch")
    os.kill(waiting_fork(cluster, command), signal.SIGKILL)
    assert end(command) == (1, b"", b"error: the process of this command was killed\n")


def test_stopped_server_lets_a_command_run_once(cluster: RunningCluster) -> None:
    pid = server(cluster)
    os.kill(pid, signal.SIGSTOP)
    try:
        command = start(cluster, "sbatch", "-W", "-J", "once", "-H", "--wrap", "true")
        wait_until(lambda: cluster.slurm("squeue", "-h", "-n", "once"), "the job")
    finally:
        os.kill(pid, signal.SIGCONT)
    # The server takes it after the command that had waited for it.
    assert len(cluster.slurm("squeue", "-h", "-n", "once").splitlines()) == 1
    cluster.slurm("scancel", "-n", "once")
    end(command)


def test_fork_goes_on_when_its_server_is_killed(cluster: RunningCluster) -> None:
    pid = server(cluster)
    command = start(cluster, "sbatch", "--parsable")
    waiting_fork(cluster, command)
    os.kill(pid, signal.SIGKILL)
    assert cluster.slurm("squeue", "-h", "-n", "none") == ""
    assert int(end(command, b"#!/bin/sh\n")[1]) > 0
    wait_until(lambda: server(cluster) != pid, "a new server")
    assert cluster.run("cluster", "up").returncode == 0  # it waits until the server listens


def test_client_with_another_locale_runs_the_command(cluster: RunningCluster) -> None:
    command = start(cluster, "sbatch", environment={"LC_ALL": "de_DE.ISO-8859-1"})
    other = start(cluster, "sbatch")
    waiting_fork(cluster, other)  # the only one in the end
    assert [end(process, SCRIPT.encode())[0] for process in (command, other)] == [0, 0]


def test_interactive_commands_keep_their_own_process(cluster: RunningCluster) -> None:
    command = start(cluster, "salloc", "sh", "-c", "read line")
    wait_until(lambda: cluster.slurm("squeue", "-h", "-t", "R"), "the job")
    wait_until(lambda: not cluster.forks(), "the forks of squeue to end")
    assert end(command, b"\n")[0] == 0
