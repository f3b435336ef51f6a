"""Partition with `refusal = "cancel"`: refused jobs are cancelled with a message there, and held in
other partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.bank_cluster import SU, TERMS, BankStack, new_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.prep_cluster import build
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

TABLES = f'{TERMS}\n[partitions.cpu]\nrefusal = "cancel"\n'
USER, TEAM, OPTIONS = "dave", "wg_chem", ("-p", "cpu", "-c4", "-t", "60")
MESSAGE = f"Fairbank: {TEAM}: not enough credit: requested 4 SU, available 1 SU, short by 3 SU. "


@pytest.fixture
def stack(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[BankStack]:
    with new_stack(cluster, build(checkout, tmp_path), TABLES) as stack:
        yield stack


def test_refused_job_is_cancelled_with_a_message(
    stack: BankStack, record_figure: RecordFigure
) -> None:
    slurm, allocation = stack.slurm, stack.set_available(TEAM, 1 * SU)
    job = slurm.submit(USER, *OPTIONS)
    slurm.wait_for(job, "CANCELLED")
    shown = slurm.run(USER, "scontrol", "show", "job", str(job)).out
    assert f"AdminComment={MESSAGE}" in shown
    slurm.wait_for_sacct(job, "CANCELLED")
    for command in ("srun", "salloc"):
        result = slurm.run(USER, command, *OPTIONS, "true")
        assert result.code == 1
        assert f"{command}: {MESSAGE}" in result.err
        record_figure(f"$ {command} {' '.join(OPTIONS)} true\n{result.err}")
    wait_until(lambda: slurm.queued() == [], "the queue to be empty")
    stack.agent.wait_until_empty()
    assert stack.charged_and_held(allocation) == (0, 0)
    assert stack.rows("/job", cluster="lab") == []
    refusals = stack.rows("/failure", cluster="lab")
    assert [(refusal["account"], refusal["reason"]) for refusal in refusals] == [
        (TEAM, "INSUFFICIENT_CREDIT")
    ] * 3
    assert [refusal["job_id"] for refusal in refusals].count(job) == 1


def test_other_partitions_hold_refused_jobs(stack: BankStack) -> None:
    slurm = stack.slurm
    stack.set_available(TEAM, 1 * SU, "gpu")
    job = slurm.submit(USER, "-p", "gpu", "--gres=gpu:1", "-t", "60")
    wait_until(lambda: slurm.job(job).get("Reason") == "Allocation_exhausted", "the job to be held")
    assert slurm.states(job) == ["PENDING"]
    assert len(stack.refusals(job)) == 1
