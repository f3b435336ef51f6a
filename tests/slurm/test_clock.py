"""slurmctld's clock is set back and forward while jobs run: charges equal accounting, no hold stays
open, and the queue continues.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.accounting_audit import price, slurm_time
from tests.slurm.bank_cluster import BankStack, new_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.clock import Clock, shifted_clock
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.shell import UNTIL_RELEASED
from tests.slurm.prep_cluster import build
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

OFF_SECONDS = 60  # beyond two minutes a slurmd rejects slurmctld's messages as too old
# Until then sacct shows no job that began while the clock was set forward, and the scheduler may
# not run.
AGAIN_SECONDS = OFF_SECONDS + 60
# Otherwise no node would seem to answer after the clock is set forward.
QUIET = {"SlurmdTimeout": "3600"}


@dataclass
class ClockStack:
    stack: BankStack
    clock: Clock


@pytest.fixture
def clock_stack(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[ClockStack]:
    with (
        new_stack(cluster, build(checkout, tmp_path)) as stack,
        cluster.configured(QUIET),
        shifted_clock(cluster) as clock,
    ):
        yield ClockStack(stack, clock)


def test_charges_equal_accounting_with_a_wrong_clock(
    clock_stack: ClockStack, record_figure: RecordFigure
) -> None:
    stack, slurm, since = clock_stack.stack, clock_stack.stack.slurm, time.time() - 1
    forward = run_with_clock(clock_stack, 0, OFF_SECONDS, record_figure)
    assert forward["elapsed"] >= OFF_SECONDS
    assert forward["charged"] >= 4 * OFF_SECONDS // 60
    back = run_with_clock(clock_stack, OFF_SECONDS, 0, record_figure)
    assert (back["elapsed"], back["charged"], back["state"]) == (0, 0, "released")
    assert "before it began: slurmctld's clock was set back" in stack.agent.log_text()
    slurm.wait_for(slurm.submit("bob"), "COMPLETED", seconds=AGAIN_SECONDS)
    stack.agent.wait_until_empty()
    reconciled = stack.reconcile("--starttime", slurm_time(since))
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    assert stack.bank.command("audit", "verify").returncode == 0


def run_with_clock(
    clock_stack: ClockStack, before: int, after: int, record_figure: RecordFigure
) -> dict[str, Any]:
    """Return the ledger's run of a job. The clock has the offset `before` at its start and `after`
    at its end (seconds).
    """
    stack, slurm = clock_stack.stack, clock_stack.stack.slurm
    clock_stack.clock.set(before)
    job = slurm.submit("alice", "-c4", "--time=60", script=UNTIL_RELEASED)
    slurm.wait_for(job, "RUNNING")
    wait_until(lambda: [run["held"] for run in stack.runs(job)] == [4 * 60], "its price to be held")
    clock_stack.clock.set(after)
    slurm.let_end("alice", job)
    slurm.wait_for(job, "COMPLETED", seconds=60)
    (run,) = stack.wait_for_closed_runs(job)
    (row,) = slurm.wait_for_sacct(job, "COMPLETED", seconds=AGAIN_SECONDS)
    record_figure(
        f"slurmctld's clock {before} s off, then {after}: {row['Start']} to {row['End']},"
        f" {row['ElapsedRaw']} s, charged {run['charged']}"
    )
    assert (run["elapsed"], run["charged"], run["held"]) == (int(row["ElapsedRaw"]), price(row), 0)
    return run
