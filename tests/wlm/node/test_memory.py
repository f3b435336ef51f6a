"""Memory of jobs: what uses more than its job has is killed, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairbank.wlm.node.memory_group import (
    create_step_group,
    limit_of,
    memory_groups,
    memory_version,
)
from fairbank.wlm.node.orphans import run_memory_group
from fairbank.wlm.node.usage import proportional_bytes, resident_bytes
from fairbank.wlm.protocol.frames import ERRORS, OUT_OF_MEMORY_STATUS
from fairbank.wlm.protocol.messages import RunOutcome, RunStatus
from fairbank.wlm.stepd.processes import descendants, oom_kills, process_table, read_process
from tests.support.conditions import wait_until
from tests.wlm.node.running_node import RunningNode, StartNode
from tests.wlm.stepd.reader import Reader

TAKE = f"{sys.executable} -c 'import time; data = bytearray(200 << 20); time.sleep(600)'"
"""Command that uses 200 MiB."""
WAIT = "until [ -e door ]; do sleep 0.05; done"
LIMIT = 100
"""MiB of memory of a job."""


@pytest.fixture
def node(start_node: StartNode) -> RunningNode:
    """Return a node where memory is sampled."""
    return start_node(over_memory_kill=True, control_groups=False)


@pytest.fixture
def limited_node(start_node: StartNode) -> RunningNode:
    """Return a node where the kernel limits memory."""
    node = start_node(over_memory_kill=True)
    if node.controller.registration.memory_limits == "samples":
        pytest.skip("needs control groups that limit memory")
    return node


def outcome(status: RunStatus) -> tuple[str, int | None, str]:
    end = status.end
    assert end is not None
    return end.cause, end.status, end.text


def test_job_above_its_memory_is_killed_alone(node: RunningNode, tmp_path: Path) -> None:
    near, over = tmp_path / "near", tmp_path / "over"
    neighbour = node.submit(f"{WAIT}; exit 7", 2, output=str(near), memory=LIMIT)
    run = node.submit(f"trap '' TERM\n{TAKE} & wait", memory=LIMIT, output=str(over))
    status = node.controller.wait(run, "finished")
    assert outcome(status) == ("exit", OUT_OF_MEMORY_STATUS, "")
    first, second = over.read_text().splitlines()
    assert first.startswith("slurmstepd: error: StepId=1.batch exceeded memory limit (2")
    assert first.endswith(f" > {LIMIT << 20}), being killed")
    assert second == (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. "
        "Some of the step tasks have been OOM Killed."
    )
    assert node.processes(run) == set()
    assert node.processes(neighbour)
    (tmp_path / "door").touch()
    assert outcome(node.controller.wait(neighbour, "finished")) == ("exit", 7 << 8, "")
    assert near.read_text() == ""


def test_step_above_the_memory_of_its_job_is_killed_alone(node: RunningNode) -> None:
    run = node.submit("exec sleep 600", memory=LIMIT)
    node.controller.wait(run, "running")
    node.start_step(run, "exec sleep 600")
    node.start_step(run, TAKE, step=1)
    end: RunOutcome = node.controller.wait_for_step(run, 1)
    assert (end.cause, end.status) == ("exit", OUT_OF_MEMORY_STATUS)
    with Reader(node.directories.step_path(run, 1), credit=2**31) as reader:
        reader.receive_all()
    assert b"StepId=1.1 exceeded memory limit" in reader.output[ERRORS, 0]
    assert node.step_processes(run, 0)
    assert "finished" not in node.controller.states(run)


def test_limit_of_memory_outlives_the_node_daemon(node: RunningNode, tmp_path: Path) -> None:
    run = node.submit(f"{WAIT}; {TAKE}", memory=LIMIT)
    node.controller.wait(run, "running")
    node.restart()
    (tmp_path / "door").touch()
    assert outcome(node.controller.wait(run, "finished"))[1] == OUT_OF_MEMORY_STATUS


def test_job_without_a_limit_may_use_any_memory(node: RunningNode) -> None:
    over = node.submit(TAKE, 2, memory=LIMIT)
    run = node.submit(TAKE)
    node.controller.wait(over, "finished")
    assert node.processes(run)


def test_kernel_keeps_a_job_to_its_memory_and_its_step_is_named(
    limited_node: RunningNode, tmp_path: Path
) -> None:
    node, near, over = limited_node, tmp_path / "near", tmp_path / "over"
    neighbour = node.submit(f"{WAIT}; exit 7", 2, output=str(near), memory=LIMIT)
    run = node.submit(f"{TAKE}; echo code $?; {WAIT}", memory=LIMIT, output=str(over))
    wait_until(lambda: over.exists() and "code 137" in over.read_text(), "the kill")
    node.start_step(run, "exec sleep 600")
    node.start_step(run, TAKE, step=1)
    end = node.controller.wait_for_step(run, 1)
    assert (end.cause, end.status) == ("exit", OUT_OF_MEMORY_STATUS)
    with Reader(node.directories.step_path(run, 1), credit=2**31) as reader:
        reader.receive_all()
    assert reader.output[ERRORS, 0].endswith(
        b"slurmstepd: error: Detected 1 oom_kill event in StepId=1.1. "
        b"Some of the step tasks have been OOM Killed.\n"
    )
    assert node.step_processes(run, 0)
    group = run_memory_group(node.directories.path(run))
    assert Path(group).is_dir()
    (tmp_path / "door").touch()
    assert outcome(node.controller.wait(run, "finished")) == ("exit", OUT_OF_MEMORY_STATUS, "")
    assert "Detected 1 oom_kill event in StepId=1.batch." in over.read_text()
    assert outcome(node.controller.wait(neighbour, "finished")) == ("exit", 7 << 8, "")
    assert not Path(group).exists()


def test_groups_of_version_2_have_limits_and_leaves(tmp_path: Path) -> None:
    """Files of a directory are written as the kernel's would be."""
    parent = tmp_path / "group"
    parent.mkdir()
    (parent / "cgroup.controllers").write_text("cpu memory\n")
    (parent / "cgroup.subtree_control").write_text("memory\n")
    groups = memory_groups(tmp_path, [tmp_path / "missing", parent])
    assert memory_version(groups) == 2
    run = Path(groups.create("1"))
    (run / "memory.swap.max").touch()
    assert groups.create("1", limit_of(100 << 20)) == str(run)
    assert (run / "memory.max").read_text() == str(100 << 20)
    assert (run / "memory.swap.max").read_text() == "0"
    assert (run / "cgroup.subtree_control").read_text() == "+memory"
    step = Path(create_step_group(str(run), "0"))
    assert step.parent == run
    (step / "memory.events").write_text("low 0\noom 2\noom_kill 3\noom_group_kill 1\n")
    assert oom_kills(str(step)) == 3
    assert oom_kills("") == oom_kills(str(run)) == 0


def test_parent_that_cannot_limit_memory_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    groups = memory_groups(tmp_path, [tmp_path])
    assert memory_version(groups) == 0
    assert groups.create("1", limit_of(1)) == ""


def test_memory_that_processes_share_counts_once() -> None:
    script = """if True:
        import os, time
        data = bytearray(64 << 20)
        for _ in range(4):
            if os.fork() == 0:
                time.sleep(600)
        print("ready", flush=True)
        time.sleep(600)
    """
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        table = process_table()
        family = [table[parent.pid], *descendants([parent.pid], table)]
        try:
            assert len(family) == 5
            assert resident_bytes(family) > 5 * 64 << 20
            assert 64 << 20 < proportional_bytes(family) < 2 * 64 << 20
        finally:
            for process in family:
                subprocess.run(["kill", "-9", str(process.pid)], check=True)
    ended = [process for process in family if read_process(process.pid) is None]
    assert proportional_bytes(ended) == 0
