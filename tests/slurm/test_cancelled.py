"""Partition with `refusal = "cancel"`: refused jobs are cancelled with a message there, and held in
other partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.bank_cluster import SU, TERMS, Office, of_its_own
from tests.slurm.conftest import Tell
from tests.slurm.lab.cluster import Cluster
from tests.slurm.prep_cluster import build
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

TABLES = f'{TERMS}\n[partitions.cpu]\nrefusal = "cancel"\n'
USER, TEAM, ASKED = "dave", "wg_chem", ("-p", "cpu", "-c4", "-t", "60")
WORDS = f"Fairbank: {TEAM}: not enough credit: requested 4 SU, available 1 SU, short by 3 SU. Try "


@pytest.fixture
def office(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[Office]:
    with of_its_own(cluster, build(checkout, tmp_path), TABLES) as office:
        yield office


def test_refused_job_is_cancelled_with_a_message(office: Office, tell: Tell) -> None:
    slurm, allocation = office.slurm, office.leave(TEAM, 1 * SU)
    job = slurm.submit(USER, *ASKED)
    slurm.wait_for(job, "CANCELLED")
    shown = slurm.run(USER, "scontrol", "show", "job", str(job)).out
    assert f"AdminComment={WORDS}" in shown
    slurm.wait_for_sacct(job, "CANCELLED")
    for command in ("srun", "salloc"):
        result = slurm.run(USER, command, *ASKED, "true")
        assert result.code == 1
        assert f"{command}: {WORDS}" in result.err
        tell(f"$ {command} {' '.join(ASKED)} true\n{result.err}")
    wait_until(lambda: slurm.queued() == [], "the queue to be empty")
    office.agent.wait_until_empty()
    assert office.sums(allocation) == (0, 0)
    assert office.rows("/job", cluster="lab") == []
    refusals = office.rows("/failure", cluster="lab")
    assert [(refusal["account"], refusal["reason"]) for refusal in refusals] == [
        (TEAM, "INSUFFICIENT_CREDIT")
    ] * 3
    assert [refusal["job_id"] for refusal in refusals].count(job) == 1


def test_other_partitions_hold_refused_jobs(office: Office) -> None:
    slurm = office.slurm
    office.leave(TEAM, 1 * SU, "gpu")
    job = slurm.submit(USER, "-p", "gpu", "--gres=gpu:1", "-t", "60")
    wait_until(lambda: slurm.job(job).get("Reason") == "Allocation_exhausted", "the job to be held")
    assert slurm.states(job) == ["PENDING"]
    assert len(office.refusals(job)) == 1
