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

from tests.slurm.accounting_audit import price, words_of
from tests.slurm.bank_cluster import Office, of_its_own
from tests.slurm.conftest import Tell
from tests.slurm.lab.clock import Clock, own_clock
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.shell import UNTIL_TOLD
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
class Stage:
    office: Office
    clock: Clock


@pytest.fixture
def stage(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[Stage]:
    with (
        of_its_own(cluster, build(checkout, tmp_path)) as office,
        cluster.configured(QUIET),
        own_clock(cluster) as clock,
    ):
        yield Stage(office, clock)


def test_charges_equal_accounting_with_a_wrong_clock(stage: Stage, tell: Tell) -> None:
    office, slurm, since = stage.office, stage.office.slurm, time.time() - 1
    forward = seen_through(stage, 0, OFF_SECONDS, tell)
    assert forward["elapsed"] >= OFF_SECONDS
    assert forward["charged"] >= 4 * OFF_SECONDS // 60
    back = seen_through(stage, OFF_SECONDS, 0, tell)
    assert (back["elapsed"], back["charged"], back["state"]) == (0, 0, "released")
    assert "before it began: slurmctld's clock was set back" in office.agent.log_text()
    slurm.wait_for(slurm.submit("bob"), "COMPLETED", seconds=AGAIN_SECONDS)
    office.agent.wait_until_empty()
    reconciled = office.reconciled("--starttime", words_of(since))
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    assert office.bank.command("audit", "verify").returncode == 0


def seen_through(stage: Stage, before: int, after: int, tell: Tell) -> dict[str, Any]:
    """Return the ledger's run of a job. The clock has the offset `before` at its start and `after`
    at its end (seconds).
    """
    office, slurm = stage.office, stage.office.slurm
    stage.clock.set(before)
    job = slurm.submit("alice", "-c4", "--time=60", script=UNTIL_TOLD)
    slurm.wait_for(job, "RUNNING")
    wait_until(
        lambda: [run["held"] for run in office.runs(job)] == [4 * 60], "its price to be held"
    )
    stage.clock.set(after)
    slurm.let_end("alice", job)
    slurm.wait_for(job, "COMPLETED", seconds=60)
    (run,) = office.settled(job)
    (row,) = slurm.wait_for_sacct(job, "COMPLETED", seconds=AGAIN_SECONDS)
    tell(
        f"slurmctld's clock {before} s off, then {after}: {row['Start']} to {row['End']},"
        f" {row['ElapsedRaw']} s, charged {run['charged']}"
    )
    assert (run["elapsed"], run["charged"], run["held"]) == (int(row["ElapsedRaw"]), price(row), 0)
    return run
