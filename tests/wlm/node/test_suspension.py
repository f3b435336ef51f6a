"""Suspended runs on a node: their script and their steps, also over restarts of the node daemon."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fairbank.cluster.job import Run
from fairbank.wlm.protocol.messages import Accepted, SuspendRun
from fairbank.wlm.stepd.processes import process_table
from tests.support.conditions import wait_until
from tests.wlm.node.running_node import RunningNode

TICK = "while :; do echo tick >> ticks; sleep 0.02; done"


@pytest.fixture
def run(node: RunningNode) -> Run:
    """Return a run whose script waits."""
    run = node.submit("exec sleep 600", seconds=600)
    node.controller.wait(run, "running")
    return run


def suspend(node: RunningNode, run: Run, *, suspended: bool = True) -> None:
    node.controller.ask(SuspendRun(run=run, suspended=suspended), Accepted)


def wait_for_stop(node: RunningNode, run: Run) -> None:
    """Wait until no process of a run can go on."""

    def is_stopped() -> bool:
        table = process_table()
        processes = [table[pid] for pid in node.processes(run) if pid in table]
        return all(one.is_stopped or one.is_zombie for one in processes)

    wait_until(is_stopped, "a stop of all processes")


def ticks(path: Path) -> int:
    return (path / "ticks").stat().st_size


def test_script_and_steps_stop_and_go_on(node: RunningNode, run: Run, tmp_path: Path) -> None:
    node.start_step(run, TICK)
    wait_until((tmp_path / "ticks").exists, "the step")
    suspend(node, run)
    wait_for_stop(node, run)
    before = ticks(tmp_path)
    suspend(node, run, suspended=False)
    wait_until(lambda: ticks(tmp_path) > before, "more ticks")


def test_step_that_starts_meanwhile_is_suspended(
    node: RunningNode, run: Run, tmp_path: Path
) -> None:
    suspend(node, run)
    node.start_step(run, TICK)
    wait_until((node.directories.step_path(run, 0) / "started").exists, "the step")
    wait_until(lambda: node.step_processes(run, 0), "the step")
    wait_for_stop(node, run)
    suspend(node, run, suspended=False)
    wait_until((tmp_path / "ticks").exists, "ticks")


def test_suspension_outlives_the_node_daemon_and_ends_after_its_restart(
    node: RunningNode, run: Run, tmp_path: Path
) -> None:
    node.start_step(run, TICK)
    wait_until((tmp_path / "ticks").exists, "the step")
    suspend(node, run)
    wait_for_stop(node, run)
    node.restart()
    wait_for_stop(node, run)
    before = ticks(tmp_path)
    suspend(node, run)  # as the controller does when the node registers
    suspend(node, run, suspended=False)
    wait_until(lambda: ticks(tmp_path) > before, "more ticks")


def test_suspended_run_ends_by_request(node: RunningNode, run: Run) -> None:
    node.start_step(run, TICK)
    suspend(node, run)
    wait_for_stop(node, run)
    node.controller.end(run, "CANCELLED")
    node.controller.wait(run, "finished")
    assert node.processes(run) == set()


def test_processes_of_a_suspended_run_end_without_their_step_daemon(
    node: RunningNode, run: Run
) -> None:
    suspend(node, run)
    wait_for_stop(node, run)
    start = node.step(run)

    os.kill(start.daemon, signal.SIGKILL)
    end = node.controller.wait(run, "finished").end
    assert end is not None
    assert end.cause == "step_daemon_killed"
    assert node.processes(run) == set()
