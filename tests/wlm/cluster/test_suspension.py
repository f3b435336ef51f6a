"""Suspended job of a cluster with a bank: kills of all daemons, its time limit, hold and charge."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.query import RunQuery
from fairbank.bank.run import RunRecord
from fairbank.wlm.stepd.processes import descendants, process_table
from tests.support.conditions import wait_until
from tests.wlm.cluster.live_cluster import LiveCluster

LIMIT = 600
PAUSE = 4.0  # seconds, more than the one that may pass between an allocation and its start
SCRIPT = "until [ -e go ]; do echo tick >> ticks; sleep 0.02; done"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    started = LiveCluster(tmp_path)
    yield started
    started.close()


def wait_for_state(cluster: LiveCluster, job: int, state: str) -> None:
    wait_until(lambda: cluster.job_states().get(str(job)) == state, f"job {job} is {state}")


def is_stopped(cluster: LiveCluster) -> bool:
    """Return True if no process of a step can run.

    A shell in vfork(2) is in state D until its child, which is stopped, has executed a program.
    """
    table = process_table()
    processes = descendants([step.daemon for step in cluster.steps()], table)
    living = [process for process in processes if not process.is_zombie]
    return bool(living) and all(
        process.is_stopped or state_of(process.pid) == "D" for process in living
    )


def state_of(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return text.rpartition(")")[2].split()[0]


def kill(cluster: LiveCluster, daemon: str) -> None:
    """Kill a daemon, and return when the next one runs."""
    pid = cluster.daemon(daemon)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: cluster.daemon(daemon) not in (None, pid), f"another {daemon}")


def bank_run(cluster: LiveCluster) -> RunRecord:
    (run,) = cluster.bank_runs(RunQuery()).values()
    return run


def test_time_and_charge_of_a_suspended_job_stand_still_over_kills(cluster: LiveCluster) -> None:
    ticks = cluster.home / "ticks"
    job = cluster.submit(SCRIPT, time="10")
    wait_until(ticks.exists, "the script")
    until = bank_run(cluster).reported.until
    cluster.change("suspend", job)
    wait_for_state(cluster, job, "SUSPENDED")
    until_resumed = time.monotonic() + PAUSE
    wait_until(lambda: is_stopped(cluster), "a stop of all processes")
    size = ticks.stat().st_size
    for daemon in ("controller", "node", "agent", "bank"):
        kill(cluster, daemon)
        cluster.check_live()
        wait_for_state(cluster, job, "SUSPENDED")
    wait_until(lambda: time.monotonic() >= until_resumed, "a pause of some seconds")
    assert is_stopped(cluster)
    assert ticks.stat().st_size == size
    cluster.change("resume", job)
    wait_until(lambda: ticks.stat().st_size > size, "more ticks")
    # A second may pass between the allocation, with which it is held, and the start.
    wait_until(lambda: bank_run(cluster).reported.until > until + 1, "a later end of the hold")
    reported = bank_run(cluster).reported
    (cluster.home / "go").touch()
    cluster.settle()
    cluster.fairbank("audit", "verify")
    cluster.fairbank("reconcile")
    cluster.fairbank("cluster", "down")
    _, (run,) = cluster.stored()
    own, charged = run.record.run, bank_run(cluster)
    assert own is not None
    assert own.started is not None
    assert own.ended is not None
    assert own.paused > 0
    assert own.elapsed == own.ended.mono - own.started.mono - own.paused
    end = own.started.wall + own.paused + LIMIT
    assert reported.until == end + Policy().hold_grace_seconds
    assert charged.end is not None
    assert charged.end.elapsed_seconds == own.elapsed
    assert charged.held == 0
