"""Kills of node daemon, launcher and step daemon: no job is lost, none starts twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fairbank.cluster.job import Run
from fairbank.wlm.node.orphans import group_of
from fairbank.wlm.node.run_store import RunStore, StoredRun
from fairbank.wlm.protocol.messages import Accepted, PollNode, Registration
from fairbank.wlm.stepd.processes import boot_id, read_process
from tests.support.conditions import wait_until
from tests.wlm.node.running_node import RunningNode, StartNode
from tests.wlm.node.test_jobs import outcome, program

WAIT = "echo ready\nread line < go$SLURM_JOB_ID\necho $line"


def waiting_job(node: RunningNode, job_id: int = 1) -> Run:
    """Start a job that ends when `go` is called."""
    os.mkfifo(node.folder / f"go{job_id}")
    environment = (b"PATH=/usr/bin:/bin", b"SLURM_JOB_ID=%d" % job_id)
    run = node.submit(WAIT, job_id, environment=environment, append=True)
    node.controller.wait(run, "running")
    return run


def go(node: RunningNode, job_id: int = 1) -> None:
    (node.folder / f"go{job_id}").write_text("goes on\n")


def test_job_runs_on_while_the_node_daemon_is_away(node: RunningNode) -> None:
    run = waiting_job(node)
    step = node.step(run)
    node.restart()
    assert node.step(run) == step
    (status,) = node.controller.registration.runs
    assert status.state == "running"
    go(node)
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.status) == ("exit", 0)
    assert node.lines() == ["ready", "goes on"]


def test_end_meanwhile_is_reported_until_it_is_acknowledged(node: RunningNode) -> None:
    run = waiting_job(node)
    node.kill()
    go(node)
    node.lines(2)
    node.start()
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.status) == ("exit", 0)
    node.restart()
    (status,) = node.controller.registration.runs
    assert (status.state, status.end) == ("finished", end)
    node.controller.forget(run)
    node.restart()
    assert node.controller.registration.runs == ()


def test_job_is_ended_by_the_next_node_daemon(node: RunningNode) -> None:
    run = waiting_job(node)
    node.restart()
    node.controller.wait(run, "running")
    node.controller.end(run, "cancelled")
    assert outcome(node.controller.wait(run, "finished")).text == "cancelled"
    assert node.processes(run) == set()


def test_time_limit_holds_while_the_node_daemon_is_away(node: RunningNode) -> None:
    run = node.submit("exec sleep 600", seconds=0.3)
    node.controller.wait(run, "running")
    node.kill()
    wait_until(lambda: not node.processes(run), "the time limit")
    node.start()
    assert outcome(node.controller.wait(run, "finished")).cause == "time_limit"


@pytest.mark.parametrize("control_groups", [False, True])
def test_killed_step_daemon_fails_the_job_and_leaves_no_process(
    start_node: StartNode, control_groups: bool
) -> None:
    node = start_node(control_groups=control_groups)
    run = node.submit("trap '' TERM; sleep 600 & setsid sleep 600 & echo $!; wait")
    node.lines(1)
    node.controller.wait(run, "running")
    assert node.processes(run) != set()
    os.kill(node.step(run).daemon, signal.SIGKILL)
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.status) == ("step_daemon_killed", None)
    assert node.processes(run) == set()


@pytest.mark.parametrize("order", ["node-first", "step-first"])
def test_killed_step_daemon_is_noticed_after_a_restart(node: RunningNode, order: str) -> None:
    run = waiting_job(node)
    daemon = node.step(run).daemon
    if order == "node-first":
        node.kill()
        os.kill(daemon, signal.SIGKILL)
    else:
        os.kill(daemon, signal.SIGKILL)
        node.kill()
    node.start()
    assert outcome(node.controller.wait(run, "finished")).cause == "step_daemon_killed"
    assert node.processes(run) == set()
    assert node.lines() == ["ready"]


def test_process_without_the_variable_is_found_by_its_session(start_node: StartNode) -> None:
    node = start_node(control_groups=False)
    run = node.submit("exec env -i sleep 600")
    node.controller.wait(run, "running")
    step = node.step(run)
    wait_until(lambda: not environment(step.script), "the empty environment")
    os.kill(step.daemon, signal.SIGKILL)
    node.controller.wait(run, "finished")
    assert has_ended(step.script)


def test_process_without_any_mark_is_found_by_its_control_group(node: RunningNode) -> None:
    if not node.controller.registration.control_groups:
        pytest.skip("no control groups may be made here")
    # It has another environment, another session, and after two forks another parent.
    script = "(env -i setsid sh -c 'echo $$; exec sleep 600' &)\nexec sleep 600"
    run = node.submit(script)
    (pid,) = map(int, node.lines(1))
    os.kill(node.step(run).daemon, signal.SIGKILL)
    node.controller.wait(run, "finished")
    assert has_ended(pid)


def test_control_group_has_the_processes_of_the_run_and_is_removed(node: RunningNode) -> None:
    if not node.controller.registration.control_groups:
        pytest.skip("no control groups may be made here")
    run = waiting_job(node)
    group = Path(group_of(node.directories.path(run)))
    pids = set(map(int, (group / "cgroup.procs").read_text().split()))
    assert pids == {node.step(run).script}
    go(node)
    node.controller.wait(run, "finished")
    assert not group.exists()


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def test_killed_launcher_is_replaced_and_its_jobs_go_on(node: RunningNode) -> None:
    run = waiting_job(node)
    launcher = node.launcher
    os.kill(launcher, signal.SIGKILL)
    wait_until(lambda: has_ended(launcher), "the end of the launcher")
    second = node.submit("exit 0", 2, output="/dev/null")
    assert outcome(node.controller.wait(second, "finished")).cause == "exit"
    go(node)
    assert outcome(node.controller.wait(run, "finished")).status == 0


def test_launcher_that_gives_no_answer_fails_the_start(node: RunningNode) -> None:
    """It is killed while it has the request, so that it is unknown what became of it."""
    os.kill(node.launcher, signal.SIGSTOP)
    run = node.submit("exit 0", output="/dev/null")
    node.controller.wait(run, "starting")
    node.controller.ask(PollNode(), Registration)  # by now the launcher has the request
    os.kill(node.launcher, signal.SIGKILL)
    assert outcome(node.controller.wait(run, "finished")).cause == "launch"
    second = node.submit("exit 0", 2, output="/dev/null")
    assert outcome(node.controller.wait(second, "finished")).cause == "exit"


def has_ended(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.is_zombie


def test_kill_of_both_node_daemon_and_launcher_keeps_the_job(node: RunningNode) -> None:
    run = waiting_job(node)
    launcher = node.launcher
    node.kill()
    try:
        os.kill(launcher, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended with the node daemon
    node.start()
    node.controller.wait(run, "running")
    go(node)
    assert outcome(node.controller.wait(run, "finished")).status == 0


def test_start_that_was_stored_but_not_made_is_a_launch_failure(node: RunningNode) -> None:
    node.kill()
    run = Run("test", 7, int(time.time()))
    store = RunStore(node.folder / "spool")
    store.put(StoredRun(run=run, boot_id=boot_id()))
    store.close()
    node.directories.create(node.job("echo never", run=run), kill_wait=1)
    node.start()
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.text) == ("launch", "the node daemon was killed during the start")
    node.controller.ask(node.job("echo never", run=run), Accepted)
    assert node.lines() == []


def test_interrupted_prolog_is_ended_and_the_job_does_not_start(
    start_node: StartNode, tmp_path: Path
) -> None:
    node = start_node(prolog=str(program(tmp_path, f"echo prolog >> {tmp_path}/out; sleep 600")))
    run = node.submit("echo never", append=True)
    node.lines(1)
    node.restart()
    assert outcome(node.controller.wait(run, "finished")).cause == "launch"
    assert node.processes(run) == set()
    assert node.lines() == ["prolog"]


def test_interrupted_epilog_runs_again(start_node: StartNode, tmp_path: Path) -> None:
    log, hold = tmp_path / "out", tmp_path / "hold"
    hold.touch()
    body = f"echo epilog >> {log}; while [ -e {hold} ]; do sleep 0.02; done"
    node = start_node(epilog=str(program(tmp_path, body)))
    run = node.submit("exit 0", output="/dev/null")
    node.lines(1)
    node.kill()
    hold.unlink()
    node.start()
    assert outcome(node.controller.wait(run, "finished")).status == 0
    assert node.lines() == ["epilog", "epilog"]


def test_runs_of_another_boot_are_node_failures(node: RunningNode) -> None:
    node.kill()
    store = RunStore(node.folder / "spool")
    runs = [Run("test", number, 1) for number in (1, 2)]
    for run in runs:
        store.put(StoredRun(run=run, boot_id="another"))
        directory = node.directories.path(run)
        (directory / "steps" / "0").mkdir(parents=True)
        for damaged in (directory, directory / "steps" / "0"):
            (damaged / "started").touch()
            (damaged / "ended").touch()
    store.close()
    node.start()
    for run in runs:
        assert outcome(node.controller.wait(run, "finished")).cause == "node_failure"


def test_second_daemon_on_the_same_spool_is_refused(node: RunningNode) -> None:
    second = subprocess.run(node.command, capture_output=True, text=True, check=False)
    assert second.returncode == 7
    assert "another node daemon uses the state file" in second.stderr
    node.controller.ask(PollNode(), Registration)


def test_kills_at_random_moments_lose_no_job(node: RunningNode) -> None:
    """Each of 60 jobs ends once, and none starts twice, while the daemon is killed three times."""
    starts = []
    for number in range(1, 61):
        output = f"{node.folder}/out{number}"
        starts.append(node.job(f"echo {number}", number, output=output, append=True))
    waiting = iter(starts)
    for _ in range(3):
        for start in [next(waiting) for _ in range(20)]:
            node.controller.ask(start, Accepted)
        node.restart()
    for number, start in enumerate(starts, start=1):
        end = outcome(node.controller.wait(start.run, "finished"))
        written = node.folder / f"out{number}"
        lines = written.read_text().split() if written.exists() else []
        assert (end.cause, lines) in (("exit", [str(number)]), ("launch", []))
        node.controller.forget(start.run)
    node.restart()
    assert node.controller.registration.runs == ()
