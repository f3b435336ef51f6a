"""Ends of steps: exit codes, signals, requests, time limits, and processes that try to escape."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from fairbank.wlm.stepd.processes import read_process
from fairbank.wlm.stepd.request_socket import CONNECTIONS_MAX
from fairbank.wlm.stepd.step import TIME_LIMIT, StepTask, read_start
from tests.support.conditions import wait_until
from tests.wlm.stepd.conftest import StartStep
from tests.wlm.stepd.steps import StartedLauncher

ESCAPE = f"""
{sys.executable} -c '
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
time.sleep(SECONDS)
'
"""


@pytest.mark.parametrize("code", [0, 1, 255])
def test_exit_code_is_kept(start_step: StartStep, code: int) -> None:
    end = start_step(f"exit {code}").wait()
    assert end.status is not None
    assert os.waitstatus_to_exitcode(end.status) == code
    assert (end.failure, end.reason) == ("", "")


def test_signal_that_ended_the_script_is_kept(start_step: StartStep) -> None:
    end = start_step("kill -USR1 $$").wait()
    assert end.status == signal.SIGUSR1


def test_end_by_request_gives_its_reason(start_step: StartStep) -> None:
    step = start_step("trap 'echo term; exit 3' TERM\necho ready\nwhile :; do sleep 0.02; done")
    step.wait_for_lines(1)
    step.end("cancelled")
    end = step.wait()
    assert end.status is not None
    assert os.waitstatus_to_exitcode(end.status) == 3
    assert end.reason == "cancelled"
    assert step.lines()[-1] == "term"  # after what the shell says about its child


def test_process_that_ignores_sigterm_is_killed_after_kill_wait(start_step: StartStep) -> None:
    step = start_step("trap '' TERM\necho ready\nwhile :; do sleep 0.02; done")
    step.wait_for_lines(1)
    step.end("cancelled")
    assert step.wait().status == signal.SIGKILL


def test_stopped_process_gets_sigterm(start_step: StartStep) -> None:
    step = start_step("echo ready\nkill -STOP $$\n", kill_wait=60)
    step.wait_for_lines(1)
    step.end()
    assert step.wait().status == signal.SIGTERM


@pytest.mark.parametrize("seconds", [0, 600], ids=["script-ends", "request"])
def test_two_forks_and_setsid_leave_nothing(start_step: StartStep, seconds: int) -> None:
    step = start_step(ESCAPE.replace("SECONDS", str(seconds)))
    (escaped,) = map(int, step.wait_for_lines(1))
    if seconds:
        step.end("cancelled")
    step.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(escaped, 0)
    assert step.processes() == set()


def test_many_processes_that_fork_again_and_again_are_ended(start_step: StartStep) -> None:
    step = start_step(
        "trap '' TERM\n"
        "for i in 1 2 3 4 5 6 7 8; do (while :; do (sleep 0.01 & sleep 0.01); done) & done\n"
        "echo ready\nwait\n"
    )
    step.wait_for_lines(1)
    step.end()
    assert step.wait().status == signal.SIGKILL
    assert step.processes() == set()


def test_time_limit_ends_the_step(start_step: StartStep) -> None:
    end = start_step("exec sleep 600", seconds=0.1).wait()
    assert (end.status, end.reason) == (signal.SIGTERM, TIME_LIMIT)
    assert end.elapsed_seconds >= 0.1


def test_new_time_limit_replaces_the_old_one(start_step: StartStep) -> None:
    step = start_step("exec sleep 600", seconds=600)
    step.end(TIME_LIMIT, seconds=1_200)
    assert step.request({"kind": "state"})["seconds_left"] > 600
    step.end(TIME_LIMIT, seconds=0.1)
    assert step.wait().reason == TIME_LIMIT


def test_time_limit_may_be_longer_than_the_longest_poll(start_step: StartStep) -> None:
    step = start_step("exec sleep 600", seconds=1e9)
    assert step.request({"kind": "state"})["seconds_left"] > 2**31 / 1_000
    step.end("cancelled")
    assert step.wait().reason == "cancelled"


def test_only_the_process_that_asked_is_warned_and_only_once(start_step: StartStep) -> None:
    child = "trap 'echo warned' USR1; echo \\$\\$; until [ -e go ]; do sleep 0.02; done"
    step = start_step(f'sh -c "{child}" &\nsh -c "{child}" &\nwait', seconds=600)
    first, second = map(int, step.wait_for_lines(2))

    def warn(pid: int, seconds: float) -> dict[str, object]:
        number = int(signal.SIGUSR1)
        return step.request({"kind": "warn", "pid": pid, "number": number, "seconds": seconds})

    assert (warn(first, 650.0), warn(second, 60.0)) == ({}, {})
    assert step.wait_for_lines(3)[2] == "warned"
    step.request({"kind": "end", "seconds": 500.0, "reason": TIME_LIMIT})  # due again, if kept
    assert "has ended" in str(warn(os.getpid(), 1.0)["error"])
    (step.directory / "go").touch()
    assert step.wait().status == 0
    assert step.lines()[2:] == ["warned"]


def test_signal_goes_to_the_script_alone_or_to_all(start_step: StartStep) -> None:
    step = start_step(
        "trap 'echo script' USR1\n"
        "(trap 'echo child; exit' USR1; echo ready; while :; do sleep 0.02; done) &\n"
        "while :; do sleep 0.02; done\n"
    )
    step.wait_for_lines(1)
    step.request({"kind": "signal", "number": int(signal.SIGUSR1), "only_script": True})
    assert step.wait_for_lines(2) == ["ready", "script"]
    step.request({"kind": "signal", "number": int(signal.SIGUSR1), "only_script": False})
    # The shells also say that their `sleep` was ended.
    wait_until(
        lambda: "child" in step.lines() and step.lines().count("script") == 2, "both signals"
    )
    step.end()
    step.wait()


@pytest.mark.parametrize("name", "HUP INT QUIT TERM USR1 USR2".split())
def test_signal_to_tasks_that_are_being_prepared_ends_them(
    start_step: StartStep, tmp_path: Path, name: str
) -> None:
    number = signal.Signals[f"SIG{name}"]
    (group := tmp_path / "group").mkdir()
    os.mkfifo(group / "tasks")  # without a reader, it delays the tasks before their program
    tasks = [StepTask(0), StepTask(1)]
    step = start_step("echo never", group=str(group), tasks=tasks)
    listed = {"kind": "tasks", "first": 0}
    wait_until(lambda: len(step.request(listed)["tasks"]) == len(tasks), "the forks")
    step.request({"kind": "signal", "number": int(number), "only_script": False})
    reader = os.open(group / "tasks", os.O_RDONLY | os.O_NONBLOCK)
    end = step.wait()
    os.close(reader)
    assert (end.status, step.lines()) == (number, [])


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "signal", "number": 0, "only_script": True},
        {"kind": "signal", "number": 9_999, "only_script": True},
        {"kind": "end", "seconds": "soon", "reason": ""},
        {"kind": "start"},
        ["state"],
        None,
    ],
    ids=["signal-0", "signal-9999", "time", "kind", "list", "nothing"],
)
def test_wrong_request_is_refused_and_changes_nothing(
    start_step: StartStep, request_: object
) -> None:
    step = start_step("exec sleep 600")
    assert "error" in step.request(request_)
    assert step.request({"kind": "state"})["seconds_left"] is None
    step.end()
    assert step.wait().status == signal.SIGTERM


def test_peers_that_send_nothing_or_too_much_do_no_harm(start_step: StartStep) -> None:
    step = start_step("exec sleep 600")
    step.request({"kind": "state"})
    idle = [step.connect() for _ in range(CONNECTIONS_MAX)]
    late = step.connect()
    assert late.recv(1) == b""
    for connection in idle:
        connection.sendall(b"{")
    with pytest.raises(ConnectionError):
        idle[0].sendall(b"x" * 2**24)
    for connection in (late, *idle):
        connection.close()
    step.end()
    assert step.wait().status == signal.SIGTERM


def test_cpu_seconds_of_all_processes_are_counted(start_step: StartStep) -> None:
    loop = "ulimit -t 1; while :; do :; done"  # the kernel ends it after one CPU second
    end = start_step(f"({loop}) &\n({loop}) &\nsetsid sh -c '{loop}' &\nwait\nsleep 0.05").wait()
    assert end.cpu_seconds > 2.1  # more than two of them have


def test_kill_of_the_launcher_leaves_its_steps_running(start_step: StartStep) -> None:
    launcher = StartedLauncher()
    step = start_step("echo ready\nread line < go\necho $line", launcher=launcher)
    os.mkfifo(step.directory / "go")
    step.wait_for_lines(1)
    launcher.kill()
    (step.directory / "go").write_text("goes on\n")
    assert step.wait().status == 0
    assert step.lines() == ["ready", "goes on"]


def test_step_starts_only_once(start_step: StartStep) -> None:
    step = start_step("echo started\nexec sleep 600")
    step.wait_for_lines(1)
    start = read_start(str(step.directory))
    (step.directory / "socket").unlink()
    launcher = StartedLauncher()
    second = int(launcher.start(step.directory))
    wait_until(lambda: read_process(second) is None, "the second step daemon to end")
    launcher.close()
    assert read_start(str(step.directory)) == start
    assert step.lines() == ["started"]
    step.kill_all()
