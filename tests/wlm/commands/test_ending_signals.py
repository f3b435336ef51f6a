"""Signals to srun, salloc, sattach and sbatch --wait: they end at once, wherever they wait."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from tests.support.conditions import wait_until
from tests.wlm.commands.shell import Shell, sh
from tests.wlm.controller.small_cluster import SmallCluster

Start = Callable[..., subprocess.Popen[str]]
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def blocker(shell: Shell, cluster: SmallCluster) -> Iterator[str]:
    """Return the id of a job that has all nodes."""
    words = ("salloc", "-N", "2", "--no-shell", "--exclusive")
    _, _, err = shell.run(*words)
    number = err[-1].split()[-1]
    yield number
    with Controller(cluster.directory) as controller:
        requests.change_jobs(controller, "cancel", [number])
    wait_until(lambda: not cluster.busy_jobs(), "the end of all jobs")


@pytest.fixture
def start(shell: Shell) -> Iterator[Start]:
    """Return a function that starts a command; it is killed after a test that fails."""
    with ExitStack() as processes:
        started = list[subprocess.Popen[str]]()

        def start_one(*words: str, **options: Any) -> subprocess.Popen[str]:
            started.append(processes.enter_context(shell.start(*words, **options)))
            return started[-1]

        yield start_one
        for process in started:
            process.kill()


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Send a signal to a command that waits. Return its exit code and what it printed."""
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    return process.returncode, err


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    while text not in (line := process.stderr.readline()):
        assert line, process.poll()


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("name", ["srun", "salloc"])
def test_signal_revokes_what_waits_for_nodes(
    shell: Shell,
    start: Start,
    cluster: SmallCluster,
    blocker: str,
    name: str,
    number: signal.Signals,
) -> None:
    process = start(name, "-N", "2", "true")
    read_until(process, "queued and waiting for resources")
    code, err = ended(process, number)
    assert code == 1
    job = re.fullmatch(rf"{name}: Job allocation (\d+) has been revoked\n", err)
    assert job
    wait_until(lambda: cluster.jobs()[job[1]][0] == "CANCELLED", "the cancellation")


@pytest.mark.parametrize("number", ENDING)
def test_signal_ends_the_wait_for_a_step(
    shell: Shell, start: Start, blocker: str, number: signal.Signals
) -> None:
    first = start("srun", f"--jobid={blocker}", *sh("echo on; exec sleep 600"))
    assert first.stdout is not None
    assert first.stdout.readline() == "on\n"
    second = start("srun", f"--jobid={blocker}", "true")
    read_until(second, "retrying")
    code, err = ended(second, number)
    assert (code, err) == (1, f"srun: Cancelled pending job step with signal {int(number)}\n")
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("name", ["srun", "salloc"])
def test_signal_ends_what_cannot_tell_the_end_of_its_job(
    shell: Shell, start: Start, cluster: SmallCluster, name: str, number: signal.Signals
) -> None:
    script = "echo on; while [ ! -e go ]; do sleep 0.05; done"
    process = start(name, *sh(script))
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    cluster.kill_controller()
    try:
        (shell.directory / "go").touch()
        read_until(process, "retrying")
        code, err = ended(process, number)
    finally:
        cluster.start_controller()
    assert code == 128 + number
    sentence = rf"{name}: error: the controller does not know that job (\d+) has ended\n"
    job = re.fullmatch(sentence, err)
    assert job
    cluster.ask("cancel", job=job[1])
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")


@pytest.mark.parametrize("number", ENDING)
def test_signal_ends_sbatch_that_waits_and_not_its_job(
    shell: Shell, start: Start, cluster: SmallCluster, number: signal.Signals
) -> None:
    process = start("sbatch", "--wait", "--wrap", "while [ ! -e go ]; do sleep 0.05; done")
    assert process.stdout is not None
    job = process.stdout.readline().split()[-1]
    code, _ = ended(process, number)
    assert code in (128 + number, -number)
    assert job in cluster.busy_jobs()
    (shell.directory / "go").touch()
    cluster.wait_for_state(job, "COMPLETED")


@pytest.mark.parametrize("number", ENDING)
def test_signal_ends_sattach_and_not_its_step(
    shell: Shell, start: Start, cluster: SmallCluster, number: signal.Signals
) -> None:
    srun = start("srun", *sh("echo $SLURM_JOB_ID; while [ ! -e go ]; do sleep 0.05; done"))
    assert srun.stdout is not None
    job = srun.stdout.readline().strip()
    process = start("sattach", "--from-start", f"{job}.0")
    assert process.stdout is not None
    assert process.stdout.readline() == f"{job}\n"
    assert ended(process, number)[0] == 128 + number
    (shell.directory / "go").touch()
    assert (srun.communicate(timeout=30)[1], srun.returncode) == ("", 0)


def test_salloc_forwards_term_and_waits_for_its_command(shell: Shell, start: Start) -> None:
    script = "trap 'echo term; exit 5' TERM; echo on; while :; do sleep 0.05; done"
    process = start("salloc", *sh(script))
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (5, "term\n")
    assert "Relinquishing" in err


def test_salloc_says_that_its_job_has_ended_before_its_command(
    shell: Shell, cluster: SmallCluster, start: Start
) -> None:
    process = start("salloc", *sh("read line; exit 4"), stdin=subprocess.PIPE)
    assert process.stderr is not None
    job = process.stderr.readline().split()[-1]
    with Controller(cluster.directory) as controller:
        requests.change_jobs(controller, "cancel", [job])
    assert process.stderr.readline() == f"salloc: Job allocation {job} has been revoked.\n"
    assert process.communicate("go on\n", timeout=30) == ("", "")
    assert process.returncode == 4


def test_salloc_forwards_term_to_the_children_of_its_command(shell: Shell, start: Start) -> None:
    child = "trap 'echo child; exit' TERM; touch on; while :; do sleep 0.05; done"
    script = f"trap 'wait; echo command; exit 5' TERM; sh -c \"{child}\" & wait"
    process = start("salloc", *sh(script))
    wait_until((shell.directory / "on").exists, "the child")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (5, "child\ncommand\n")


def test_salloc_gives_its_nodes_back_when_its_terminal_hangs_up(
    shell: Shell, start: Start, cluster: SmallCluster
) -> None:
    script = "trap 'touch hup' HUP; echo on; while [ ! -e hup ]; do sleep 0.05; done"
    process = start("salloc", *sh(script))
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    code, err = ended(process, signal.SIGHUP)
    assert code == 128 + signal.SIGHUP
    granted = re.search(r"Granted job allocation (\d+)", err)
    assert granted
    wait_until(lambda: cluster.jobs()[granted[1]][0] == "FAILED", "the end of the job")
    wait_until((shell.directory / "hup").exists, "the signal of the command")


def test_command_of_salloc_ends_when_its_reader_has_gone(shell: Shell, start: Start) -> None:
    _, _, err = shell.run("salloc", *sh("yes | head -1 >/dev/null"))
    assert [line for line in err if not line.startswith("salloc: ")] == []


def test_srun_asks_a_stopped_controller_no_longer_than_until_a_signal(
    shell: Shell, start: Start, cluster: SmallCluster
) -> None:
    script = (
        "trap 'exit 4' TERM; echo on; [ $SLURM_PROCID = 0 ] && until [ -e go ]; do sleep 0.05; done"
        " && exit 3; while :; do sleep 0.05; done"
    )
    process = start("srun", "-n", "2", *sh(script))
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["on\n", "on\n"]
    cluster.controller.send_signal(signal.SIGSTOP)
    try:
        (shell.directory / "go").touch()
        read_until(process, "task 0: Exited with exit code 3")
        # It asks for KillOnBadExit now.
        process.send_signal(signal.SIGTERM)
        read_until(process, "task 1: Exited with exit code 4")
    finally:
        cluster.controller.send_signal(signal.SIGCONT)
    process.communicate(timeout=30)
    assert process.returncode == 4


@pytest.mark.parametrize("has_controller", [True, False])
def test_third_ctrl_c_kills_the_step_at_once(
    shell: Shell, start: Start, cluster: SmallCluster, has_controller: bool
) -> None:
    script = "trap '' INT; trap 'echo term' TERM; echo on; while :; do sleep 0.05; done"
    process = start("srun", *sh(script))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "on\n"
    if not has_controller:
        cluster.kill_controller()
    try:
        line = ""
        while line != "srun: forcing job termination\n":  # more than a second may have passed
            process.send_signal(signal.SIGINT)
            line = process.stderr.readline()
            if "one more within" in line:
                assert process.stderr.readline().endswith("task 0: running\n")
        read_until(process, "task 0: Killed")
    finally:
        if not has_controller:
            cluster.start_controller()
    assert process.communicate(timeout=30)[0] == ""
    assert process.returncode == 128 + signal.SIGKILL


def test_step_that_srun_cannot_follow_ends_also_over_a_restart_of_the_controller(
    shell: Shell, start: Start, cluster: SmallCluster, blocker: str
) -> None:
    script = "echo on; while [ ! -e go ]; do sleep 0.05; done; echo off; exec sleep 600"
    process = start("srun", f"--jobid={blocker}", *sh(script))
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    process.stdout.close()
    cluster.kill_controller()
    try:
        (shell.directory / "go").touch()
        read_until(process, "retrying")
    finally:
        cluster.start_controller()
    assert process.wait(30) == 1
    with Controller(cluster.directory) as controller:
        find = partial(requests.find_step, controller, blocker, 0)
        wait_until(lambda: find().state == "CANCELLED", "the end of the tasks")


# ------------------------------------------------------------------ terminals that disappear


def start_at_terminal(
    start: Start, *words: str, is_leader: bool
) -> tuple[subprocess.Popen[str], int]:
    """Start a command at a terminal, as leader of its session or not. Return the other end."""
    master, slave = pty.openpty()

    def take_terminal() -> None:
        os.close(master)
        if is_leader:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    ends = {"stdin": slave, "stdout": slave, "stderr": slave}
    process = start(*words, **ends, start_new_session=True, preexec_fn=take_terminal)
    os.close(slave)
    return process, master


@pytest.mark.parametrize("is_leader", [True, False])
@pytest.mark.parametrize("option", ["--pty", "--label"])
def test_step_ends_when_the_terminal_of_its_srun_disappears(
    shell: Shell, start: Start, cluster: SmallCluster, option: str, is_leader: bool
) -> None:
    """With the signal for it or without: the task ignores it, and the end of its input."""
    script = "trap '' HUP; echo $$ >pid; mv pid on; exec sleep 600"
    process, master = start_at_terminal(start, "srun", option, *sh(script), is_leader=is_leader)
    wait_until((shell.directory / "on").exists, "the task")
    task = int((shell.directory / "on").read_text())
    os.close(master)
    process.wait(30)
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")
    with pytest.raises(ProcessLookupError):
        os.kill(task, 0)


def start_in_shell(start: Start, shell: Shell, *words: str) -> tuple[subprocess.Popen[str], int]:
    """Start a shell at a terminal with a script that knows salloc. Return the other end."""
    (shell.directory / "links" / "sh").symlink_to("/bin/sh")
    return start_at_terminal(start, "sh", *words, is_leader=True)


def test_command_of_salloc_has_the_terminal_and_its_ctrl_c(shell: Shell, start: Start) -> None:
    script = (
        "trap 'echo $line >line; exit 6' INT; read line; touch on; while :; do sleep 0.05; done"
    )
    process, master = start_at_terminal(start, "salloc", *sh(script), is_leader=True)
    os.write(master, b"text\n")
    wait_until((shell.directory / "on").exists, "the command")
    os.write(master, b"\x03")
    assert process.wait(30) == 6
    os.close(master)
    assert (shell.directory / "line").read_text() == "text\n"


def test_salloc_takes_the_terminal_back_from_its_command(shell: Shell, start: Start) -> None:
    script = "salloc -Q sh -c 'read line; exit 3'; echo $? >code; read line; echo $line >line"
    process, master = start_in_shell(start, shell, "-c", script)
    os.write(master, b"first\nsecond\n")
    assert process.wait(30) == 0
    os.close(master)
    assert (shell.directory / "code").read_text() == "3\n"
    assert (shell.directory / "line").read_text() == "second\n"


@pytest.mark.parametrize("words", ["fg", "bg && wait $!; fg"])
def test_command_of_salloc_stops_with_salloc_and_continues(
    shell: Shell, start: Start, words: str
) -> None:
    # A builtin waits: a child that stops before its exec would keep the command from stopping.
    command = "touch on; read line; echo $line >line"
    script = f"salloc -Q sh -c '{command}'; touch stopped; {words}"
    process, master = start_in_shell(start, shell, "-m", "-c", script)
    wait_until((shell.directory / "on").exists, "the command")
    os.write(master, b"\x1a")
    wait_until((shell.directory / "stopped").exists, "the shell")
    os.write(master, b"text\n")
    assert process.wait(30) == 0
    os.close(master)
    assert (shell.directory / "line").read_text() == "text\n"


def test_salloc_stops_with_a_shell_that_suspends_itself(shell: Shell, start: Start) -> None:
    command = "kill -STOP $$; read line; echo $line >line"
    script = f"salloc -Q sh -c '{command}'; touch stopped; fg"
    process, master = start_in_shell(start, shell, "-m", "-c", script)
    wait_until((shell.directory / "stopped").exists, "the shell")
    os.write(master, b"text\n")
    assert process.wait(30) == 0
    os.close(master)
    assert (shell.directory / "line").read_text() == "text\n"


def test_ctrl_z_without_a_shell_to_continue_it_leaves_salloc_running(
    shell: Shell, start: Start
) -> None:
    script = "touch on; read line; echo $line >line"
    process, master = start_at_terminal(start, "salloc", *sh(script), is_leader=True)
    wait_until((shell.directory / "on").exists, "the command")
    os.write(master, b"\x1atext\n")
    assert process.wait(30) == 0
    os.close(master)
    assert (shell.directory / "line").read_text() == "text\n"


@pytest.mark.parametrize(("key", "name"), [(b"\x03", "INT"), (b"\x1c", "QUIT")])
def test_command_of_salloc_gets_the_keys_of_a_terminal_that_is_not_its_input(
    shell: Shell, start: Start, key: bytes, name: str
) -> None:
    command = f'trap "exit 6" {name}; touch on; while :; do sleep 0.05; done'
    script = f"exec salloc -Q sh -c '{command}' </dev/null"
    process, master = start_in_shell(start, shell, "-c", script)
    wait_until((shell.directory / "on").exists, "the command")
    os.write(master, key)
    assert process.wait(30) == 6
    os.close(master)


def test_command_of_salloc_stops_on_ctrl_z_without_the_terminal(shell: Shell, start: Start) -> None:
    os.mkfifo(shell.directory / "go")
    command = "echo $$ >pid; mv pid on; read line <go; exit 6"
    script = f"salloc -Q sh -c '{command}' </dev/null; read line; fg; echo $? >code"
    process, master = start_in_shell(start, shell, "-m", "-c", script)
    wait_until((shell.directory / "on").exists, "the command")
    stat = Path("/proc", (shell.directory / "on").read_text().strip(), "stat")
    os.write(master, b"\x1a")
    wait_until(lambda: stat.read_text().split()[2] == "T", "the stop of the command")
    os.write(master, b"\n")
    go = os.open(shell.directory / "go", os.O_RDWR)
    os.write(go, b"\n")
    assert process.wait(30) == 0
    os.close(go)
    os.close(master)
    assert (shell.directory / "code").read_text() == "6\n"


def test_command_of_salloc_opens_the_terminal_that_is_not_its_input(
    shell: Shell, start: Start
) -> None:
    script = "salloc -Q sh -c 'read line </dev/tty; echo $line >line' </dev/null; read line"
    process, master = start_in_shell(start, shell, "-c", script)
    os.write(master, b"first\nsecond\n")
    assert process.wait(30) == 0
    os.close(master)
    assert (shell.directory / "line").read_text() == "first\n"


def test_salloc_in_a_pipeline_leaves_the_terminal_to_its_reader(shell: Shell, start: Start) -> None:
    script = "cat | salloc -Q sh -c 'touch on; read line; echo $line >line'"
    process, master = start_in_shell(start, shell, "-m", "-c", script)
    wait_until((shell.directory / "on").exists, "the command")
    os.write(master, b"text\n")
    wait_until((shell.directory / "line").exists, "the command")
    os.write(master, b"\x04")
    assert process.wait(30) == 0
    os.close(master)
    assert (shell.directory / "line").read_text() == "text\n"


def test_ctrl_c_reaches_the_command_of_salloc_put_into_the_foreground_without_a_signal(
    shell: Shell, start: Start
) -> None:
    """As bash does with a job that runs in the background."""
    command = 'trap "exit 6" INT; touch on; while :; do sleep 0.05; done'
    give = (
        "import os, signal, sys; signal.signal(signal.SIGTTOU, signal.SIG_IGN);"
        " os.tcsetpgrp(0, int(sys.argv[1]))"
    )
    script = (
        f"salloc -Q sh -c '{command}' & job=$!; until [ -e on ]; do sleep 0.05; done;"
        f" {sys.executable} -c '{give}' $job & wait $!; : >given; wait $job; echo $? >code"
    )
    process, master = start_in_shell(start, shell, "-m", "-c", script)
    wait_until((shell.directory / "given").exists, "the foreground")
    os.write(master, b"\x03")
    process.wait(30)
    os.close(master)
    assert (shell.directory / "code").read_text() == "6\n"


def test_salloc_ends_if_its_command_waits_for_a_terminal_that_no_shell_can_give(
    shell: Shell, start: Start, cluster: SmallCluster
) -> None:
    salloc = "until [ -e back ]; do sleep 0.05; done; salloc -Q cat <&3; echo $? >code; mv code on"
    script = f"exec 3<&0; ( {{ {salloc}; }} & ); touch back; read line"
    process, master = start_in_shell(start, shell, "-m", "-c", script)
    wait_until((shell.directory / "on").exists, "the end of salloc")
    os.write(master, b"\n")
    assert process.wait(30) == 0
    os.close(master)
    assert (shell.directory / "on").read_text() == f"{128 + signal.SIGHUP}\n"
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")


@pytest.mark.parametrize("is_leader", [True, False])
def test_job_of_salloc_ends_when_its_terminal_disappears(
    start: Start, shell: Shell, cluster: SmallCluster, is_leader: bool
) -> None:
    process, master = start_at_terminal(start, "salloc", is_leader=is_leader)
    os.write(master, b"touch on\n")
    wait_until((shell.directory / "on").exists, "the shell")
    os.close(master)
    process.wait(30)
    wait_until(lambda: not cluster.busy_jobs(), "the end of the job")


def test_attached_srun_ends_alone_when_its_terminal_disappears(
    shell: Shell, start: Start, cluster: SmallCluster
) -> None:
    srun = start("srun", *sh("echo $SLURM_JOB_ID; while [ ! -e go ]; do sleep 0.05; done"))
    assert srun.stdout is not None
    job = srun.stdout.readline().strip()
    words = ("srun", "--attach", f"{job}.0", "--from-start")
    process, master = start_at_terminal(start, *words, is_leader=True)
    shown = b""
    while f"{job}\r\n".encode() not in shown:
        shown += os.read(master, 4_096)
    os.close(master)
    process.wait(30)
    (shell.directory / "go").touch()
    assert (srun.communicate(timeout=30)[1], srun.returncode) == ("", 0)
