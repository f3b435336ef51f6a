"""Jobs on a node, from their start to the end that the controller acknowledges."""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.cluster.job import Run
from fairbank.wlm.node.settings import HostedNode
from fairbank.wlm.node.usage import read_host
from fairbank.wlm.protocol.messages import (
    Accepted,
    EndJob,
    EndStep,
    ErrorMessage,
    FindJob,
    ForgetRun,
    JobOfProcess,
    ListProcesses,
    NotifyJob,
    PollNode,
    PollUsage,
    ProcessList,
    Registration,
    RunOutcome,
    RunStatus,
    RunUsage,
    SignalJob,
    UsageReport,
)
from fairbank.wlm.stepd.processes import boot_id
from fairbank.wlm.stepd.step import read_start
from tests.support.conditions import wait_until
from tests.support.small_disk import fill, small_disk
from tests.wlm.node.running_node import Controller, RunningNode, StartNode


def outcome(status: RunStatus) -> RunOutcome:
    assert status.end is not None
    return status.end


def test_node_registers_its_resources_and_boot(node: RunningNode) -> None:
    registration = node.controller.registration
    assert (registration.node, registration.cpus, registration.memory) == ("n1", 2, 1_000)
    assert registration.boot_id == boot_id()
    assert registration.runs == ()
    assert registration.boot_time < registration.started <= time.time()
    assert 0 < registration.free_memory < read_host().memory
    assert registration.system == f"Linux {os.uname().release}"
    node.controller.ask(PollUsage(), UsageReport)


def test_job_runs_from_start_to_finish(node: RunningNode) -> None:
    run = node.submit("echo $SLURMD_NODENAME $SLURM_PROCID\nexit 3")
    status = node.controller.wait(run, "finished")
    end = outcome(status)
    assert (end.cause, end.status, status.epilog_status) == ("exit", 3 << 8, 0)
    assert node.lines() == ["n1 0"]
    assert node.controller.states(run) == ["starting", "running", "epilog", "finished"]
    node.controller.forget(run)
    assert node.controller.ask(PollNode(), Registration).runs == ()
    assert not node.directories.path(run).exists()


def test_repeated_start_starts_nothing_more(node: RunningNode) -> None:
    start = node.job("echo started\nexec sleep 600")
    for _ in range(3):
        node.controller.ask(start, Accepted)
    node.lines(1)
    node.controller.ask(start, Accepted)
    node.controller.end(start.run)
    node.controller.wait(start.run, "finished")
    node.controller.ask(start, Accepted)
    assert node.lines() == ["started"]


def test_script_has_its_name_and_the_variables_of_its_node(node: RunningNode) -> None:
    names = "$HOSTNAME $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN $TMPDIR"
    run = node.submit(f"echo ${{0##*/}} {names}")
    node.controller.wait(run, "finished")
    assert node.lines() == ["slurm_script n1 n1 node /tmp"]


def test_requeued_job_is_another_run(node: RunningNode) -> None:
    first = node.submit("echo first; exec sleep 600", append=True)
    node.controller.wait(first, "running")
    second = node.submit("echo second", run=first._replace(restart=1), append=True)
    node.controller.wait(second, "finished")
    node.lines(2)
    assert node.controller.ask(PollNode(), Registration).runs[0].state == "running"
    node.controller.end(first)
    node.controller.wait(first, "finished")
    assert sorted(node.lines()) == ["first", "second"]


def test_end_by_request_has_its_reason(node: RunningNode) -> None:
    run = node.submit("exec sleep 600")
    node.controller.wait(run, "running")
    node.controller.end(run, "cancelled by uid 7")
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.text) == ("request", "cancelled by uid 7")
    assert end.status == signal.SIGTERM


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("CANCELLED", ""),
        ("TIMEOUT", " DUE TO TIME LIMIT"),
        ("time limit", " DUE TO TIME LIMIT"),
        ("PREEMPTED", " DUE TO PREEMPTION"),
        ("REQUEUED", " DUE TO JOB REQUEUE"),
    ],
)
def test_output_of_a_job_that_is_ended_says_so_in_words_of_slurm(
    node: RunningNode, reason: str, cause: str
) -> None:
    run = node.submit("exec sleep 600")
    node.controller.wait(run, "running")
    node.controller.end(run, reason, 0.0)
    node.controller.wait(run, "finished")
    line = rf"slurmstepd: error: \*\*\* JOB 1 ON n1 CANCELLED AT [-0-9T:]{{19}}{cause} \*\*\*\n"
    assert re.fullmatch(line, (node.folder / "out").read_text())


def test_output_of_a_job_that_ends_by_itself_says_nothing(node: RunningNode) -> None:
    run = node.submit("sleep 600 & kill -9 $$")
    node.controller.wait(run, "finished")
    assert (node.folder / "out").read_text() == ""


def test_time_limit_and_a_new_one(node: RunningNode) -> None:
    short = node.submit("exec sleep 600", seconds=0.1)
    longer = node.submit("exec sleep 600", 2, seconds=600)
    assert outcome(node.controller.wait(short, "finished")).cause == "time_limit"
    node.controller.wait(longer, "running")
    node.controller.end(longer, "time limit", 0.1)
    assert outcome(node.controller.wait(longer, "finished")).cause == "time_limit"


def test_request_to_end_before_the_start_is_kept(start_node: StartNode, tmp_path: Path) -> None:
    for number in (1, 2):
        os.mkfifo(tmp_path / f"go{number}")
    prolog = program(tmp_path, f"read line < {tmp_path}/go$SLURM_JOB_ID")
    node = start_node(prolog=str(prolog))
    now = node.submit("echo never")
    later = node.submit("exec sleep 600", 2)
    node.controller.end(now, "cancelled")
    node.controller.end(later, "preempted", 0.3)
    for number in (1, 2):
        (tmp_path / f"go{number}").write_text("go\n")
    assert outcome(node.controller.wait(now, "finished")).text == "cancelled"
    assert outcome(node.controller.wait(later, "finished")).text == "preempted"
    assert "never" not in node.lines()


def test_signal_reaches_the_job(node: RunningNode) -> None:
    run = node.submit("trap 'echo signal; exit' USR1; echo ready; while :; do sleep 0.02; done")
    node.lines(1)
    node.controller.wait(run, "running")
    node.controller.ask(SignalJob(run=run, number=int(signal.SIGUSR1)), Accepted)
    node.controller.wait(run, "finished")
    assert "signal" in node.lines()


def test_notice_is_a_line_of_the_error_output(node: RunningNode, tmp_path: Path) -> None:
    error = tmp_path / "err"
    run = node.submit("exec sleep 600", error=str(error))
    node.controller.wait(run, "running")
    node.controller.ask(NotifyJob(run=run, text="save\nyour\x1b[2J work"), Accepted)
    assert error.read_text() == "save?your?[2J work\n"
    error.unlink()
    error.symlink_to(tmp_path / "other")
    (tmp_path / "other").write_text("kept")
    refused = node.controller.ask(NotifyJob(run=run, text="never"), ErrorMessage)
    assert refused.message.startswith(f"cannot write to {error}")
    assert (tmp_path / "other").read_text() == "kept"
    node.controller.end(run)
    node.controller.wait(run, "finished")
    assert node.controller.ask(NotifyJob(run=run, text="late"), ErrorMessage).kind == "Conflict"


def test_requests_that_cannot_be_carried_out_name_the_reason(node: RunningNode) -> None:
    run = node.submit("exec sleep 600")
    node.controller.wait(run, "running")
    other = Run("test", 99, 1)
    for request, kind in (
        (SignalJob(run=other, number=1), "NotFound"),
        (EndJob(run=other, reason="x"), "NotFound"),
        (ForgetRun(run=run), "Conflict"),
        (ProcessList(processes=()), "InvalidInput"),
    ):
        error = node.controller.ask(request, ErrorMessage)
        assert error.kind == kind
        assert error.remedy
    node.controller.end(run)


@pytest.mark.parametrize(
    ("script", "fields", "status", "text"),
    [
        (b"#!/none\n", {}, errno.ENOENT << 8, ""),
        ("echo never", {"output": "/"}, 53, "cannot open the output /: Is a directory"),
    ],
    ids=["script", "output"],
)
def test_job_whose_files_cannot_be_opened_ends(
    node: RunningNode, script: str | bytes, fields: dict[str, Any], status: int, text: str
) -> None:
    """It is not started again: it would fail on each node."""
    run = node.submit(script, **fields)
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.status) == ("exit", status)
    assert end.text.startswith(text)


def test_job_that_the_node_cannot_start_is_a_launch_failure(node: RunningNode) -> None:
    run = node.submit("echo never", cpus=(9_999,))
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.status) == ("launch", None)
    assert end.text.startswith("cannot prepare the script")
    assert "running" not in node.controller.states(run)


def test_spool_that_cannot_be_written_refuses_the_start(node: RunningNode) -> None:
    (node.folder / "spool/jobs").rmdir()
    error = node.controller.ask(node.job("echo never"), ErrorMessage)
    assert error.message.startswith("cannot write")
    (node.folder / "spool/jobs").mkdir()
    run = node.submit("echo now")
    node.controller.wait(run, "finished")


def test_full_spool_refuses_starts_and_loses_no_end(start_node: StartNode, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        hosted = HostedNode(name="n1", spool=f"{disk}/spool", socket=f"{tmp_path}/n1.sock")
        node = start_node(nodes=(hosted,))
        os.mkfifo(tmp_path / "go")
        running = node.submit("read line < go; exit 3")
        node.controller.wait(running, "running")
        filler = fill(disk)
        error = node.controller.ask(node.job("echo never", 2), ErrorMessage)
        assert "disk is full" in error.message
        (tmp_path / "go").write_text("\n")
        # The end is known at once, and stored as soon as there is space.
        assert outcome(node.controller.wait(running, "epilog")).status == 3 << 8
        filler.unlink()
        node.controller.wait(running, "finished")
        again = node.submit("exit 0", 3)
        assert outcome(node.controller.wait(again, "finished")).status == 0
        node.kill()
        node.start()
        states = [status.state for status in node.controller.registration.runs]
        assert states == ["finished", "finished"]
        node.kill()


def test_usage_counts_all_processes(node: RunningNode) -> None:
    run = node.submit("(while :; do :; done) &\nwhile :; do :; done")
    node.controller.wait(run, "running")

    def usage() -> RunUsage:
        report = node.controller.ask(PollUsage(), UsageReport)
        ((polled, usage),) = report.runs
        assert polled == run
        return usage

    wait_until(lambda: usage().cpu_seconds > 0.3, "0.3 CPU seconds")
    before = usage()
    assert before.virtual_max_kib >= before.resident_max_kib > 0
    node.controller.end(run)
    end = outcome(node.controller.wait(run, "finished"))
    assert end.usage.cpu_seconds >= before.cpu_seconds
    assert end.usage.resident_max_kib > 0
    assert end.elapsed_seconds > 0


def test_processes_are_listed_and_found(node: RunningNode) -> None:
    run = node.submit("setsid sleep 600 &\nexec sleep 600", seconds=600)
    node.controller.wait(run, "running")

    def pids() -> tuple[int, ...]:
        answer = node.controller.ask(ListProcesses(run=run), ProcessList)
        return tuple(process.pid for process in answer.processes)

    wait_until(lambda: len(pids()) == 2, "two processes")
    for pid in pids():
        job = node.controller.ask(FindJob(pid=pid), JobOfProcess)
        assert job.run == run
        assert job.seconds is not None
        assert 0 < job.seconds <= 600
    assert node.controller.ask(FindJob(pid=os.getpid()), JobOfProcess) == JobOfProcess()
    node.controller.end(run)


def test_many_jobs_at_once(node: RunningNode) -> None:
    runs = [node.submit("exit 0", number, output="/dev/null") for number in range(1, 41)]
    for run in runs:
        assert outcome(node.controller.wait(run, "finished")).status == 0


def test_nodes_of_one_daemon_have_their_own_jobs(start_node: StartNode, tmp_path: Path) -> None:
    names = ("n1", "n2")
    hosted = [
        HostedNode(
            name=name, spool=str(tmp_path / name), socket=str(tmp_path / f"{name}.sock"), cpus=1
        )
        for name in names
    ]
    node = start_node(nodes=hosted)
    second = Controller(hosted[1].socket)
    start = node.job("echo $SLURMD_NODENAME >> names")
    for controller in (node.controller, second):
        controller.ask(start, Accepted)
        controller.wait(start.run, "finished")
        assert len(controller.ask(PollNode(), Registration).runs) == 1
    second.close()
    assert (tmp_path / "names").read_text().split() == ["n1", "n2"]


# ---------------------------------------------------------------------- Prolog and Epilog


def program(folder: Path, body: str) -> Path:
    path = folder / f"program{len(list(folder.iterdir()))}"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return path


def test_prolog_and_epilog_run_around_the_job(start_node: StartNode, tmp_path: Path) -> None:
    log = tmp_path / "out"
    prolog = program(tmp_path, f"echo prolog $SLURM_JOB_ID $SLURMD_NODENAME $SECRET >> {log}")
    epilog = program(tmp_path, f"echo epilog $SLURM_JOB_ID >> {log}")
    node = start_node(prolog=str(prolog), epilog=str(epilog))
    environment = (b"SECRET=1", b"PATH=/usr/bin:/bin")
    run = node.submit("echo job", 5, append=True, environment=environment)
    assert node.controller.wait(run, "finished").epilog_status == 0
    assert node.lines() == ["prolog 5 n1", "job", "epilog 5"]


def test_failing_prolog_starts_nothing(start_node: StartNode, tmp_path: Path) -> None:
    node = start_node(prolog=str(program(tmp_path, "exit 7")))
    run = node.submit("echo never")
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.status) == ("prolog", None)
    assert end.text == "the Prolog ended with the status 7:0"
    assert node.lines() == []


def test_failing_epilog_is_reported(start_node: StartNode, tmp_path: Path) -> None:
    node = start_node(epilog=str(program(tmp_path, "exit 7")))
    run = node.submit("exit 0")
    status = node.controller.wait(run, "finished")
    assert (outcome(status).cause, status.epilog_status) == ("exit", 7 << 8)


@pytest.mark.parametrize("kind", ["prolog", "epilog"])
def test_program_that_hangs_is_killed(start_node: StartNode, tmp_path: Path, kind: str) -> None:
    path = program(tmp_path, "sleep 600")
    node = start_node(**{kind: str(path), f"{kind}_timeout": 0.2})
    run = node.submit("exit 0")
    status = node.controller.wait(run, "finished")
    if kind == "prolog":
        assert outcome(status).text == "the Prolog ended with the status 0:9"
    else:
        assert status.epilog_status == signal.SIGKILL
    wait_until(lambda: not node.processes(run), "its processes to end")


def test_missing_program_is_a_failure(start_node: StartNode) -> None:
    node = start_node(prolog="/none")
    end = outcome(node.controller.wait(node.submit("echo never"), "finished"))
    assert end.text == "the Prolog ended with the status 127:0"


@pytest.fixture
def freezer() -> Iterator[Path]:
    """Control group of version 1 whose processes do not react to SIGKILL while it is frozen."""
    path = Path(f"/sys/fs/cgroup/freezer/fairbank-test-{os.getpid()}")
    try:
        path.mkdir()
    except OSError:
        pytest.skip("no freezer of cgroup version 1, or no right to use it")
    yield path
    (path / "freezer.state").write_text("THAWED")
    wait_until(lambda: not (path / "cgroup.procs").read_text(), "the processes to end")
    path.rmdir()


def test_process_that_cannot_be_killed_is_reported_and_the_run_goes_on(
    start_node: StartNode, tmp_path: Path, freezer: Path
) -> None:
    path = program(tmp_path, f"echo unkillable $SLURM_JOB_ID >> {tmp_path}/out")
    options = {"sample_seconds": 0.05, "unkillable_timeout": 0.1}
    node = start_node(unkillable_program=str(path), **options)
    run = node.submit("exec sleep 600", append=True)
    node.controller.wait(run, "running")
    script = node.step(run).script
    (freezer / "cgroup.procs").write_text(str(script))
    (freezer / "freezer.state").write_text("FROZEN")
    node.controller.end(run, "cancelled")
    status = node.controller.wait(run, "running", changes=2)
    assert status.unkillable == (script,)
    assert node.lines(1) == ["unkillable 1"]
    (freezer / "freezer.state").write_text("THAWED")
    end = outcome(node.controller.wait(run, "finished"))
    assert (end.cause, end.text) == ("request", "cancelled")


def test_processes_that_cannot_be_killed_are_reported_until_they_are_gone(
    start_node: StartNode, tmp_path: Path, freezer: Path
) -> None:
    path = program(tmp_path, f"echo unkillable >> {tmp_path}/out")
    options = {"sample_seconds": 0.05, "unkillable_timeout": 0.1}
    node = start_node(unkillable_program=str(path), **options)
    run = node.submit("exec sleep 600", append=True)
    node.controller.wait(run, "running")
    for number in (0, 1):
        node.start_step(run, "exec sleep 600", step=number)
        directory = node.directories.step_path(run, number)
        wait_until((directory / "started").exists, "the start of the step")
        start = read_start(str(directory))
        assert start is not None
        (freezer / "cgroup.procs").write_text(str(start.script))
        (freezer / "freezer.state").write_text("FROZEN")
        node.controller.ask(EndStep(run=run, step=number, reason="CANCELLED"), Accepted)
        status = node.controller.wait(run, "running", changes=2 * number + 2)
        assert status.unkillable == (start.script,)
        assert node.lines(number + 1) == ["unkillable"] * (number + 1)
        (freezer / "freezer.state").write_text("THAWED")
        node.controller.wait_for_step(run, number)
        assert node.controller.wait(run, "running", changes=2 * number + 3).unkillable == ()
