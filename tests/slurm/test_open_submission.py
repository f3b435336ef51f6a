"""Submission policy of each profile on a real Slurm with a bank: what Slurm takes by default, and
the strict rules of "hadm".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.accounting_audit import price
from tests.slurm.bank_cluster import RICH, SU, BankStack, new_stack, sync_policy
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.people import PEOPLE
from tests.slurm.lab.shell import UNTIL_RELEASED, CommandResult
from tests.slurm.prep_cluster import build

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

USER, GROUP, OTHER, FOREIGN = "bob", "wg_bio", "wg_astro", "wg_chem"
SIZE = ("-c4", "-t60")
BOTH = "--partition=cpu,gpu-t4"
PRICE = 'price = "refuse"'


@pytest.fixture
def stack(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[BankStack]:
    """Start bank, agent and policy. Bob is a member of the projects of his two accounts."""
    uids = {person.name: person.uid for person in PEOPLE}
    with new_stack(cluster, build(checkout, tmp_path / "plugins")) as stack:
        for account in (GROUP, OTHER):
            stack.add_member(account, uids[USER])
        sync_policy(stack, checkout, tmp_path, PRICE)
        with cluster.configured({"JobSubmitPlugins": "lua"}):
            yield stack


def sbatch(stack: BankStack, *options: str) -> CommandResult:
    """Submit a job of Bob in his default group."""
    return stack.slurm.run(
        USER,
        *("sbatch", "--parsable", *SIZE, *options),
        group=GROUP,
        stdin=f"#!/bin/sh\n{UNTIL_RELEASED}\n",
    )


def held_and_charged(stack: BankStack, *options: str) -> tuple[dict[str, str], int]:
    """Run an accepted job to its end. Return its row of accounting and what was held for it, once
    it has been charged by that row.
    """
    job = int(sbatch(stack, *options).checked().out)
    stack.slurm.wait_for(job, "RUNNING")
    (run,) = stack.runs(job)
    held = int(run["held"])
    stack.slurm.let_end(USER, job)
    (row,) = stack.slurm.wait_for_sacct(job, "COMPLETED")
    (run,) = stack.wait_for_closed_runs(job)
    assert (run["account"], run["partition"]) == (row["Account"], row["Partition"])
    assert (run["charged"], run["held"]) == (price(row), 0)
    return row, held


def test_default_profile_takes_what_slurm_takes(
    stack: BankStack, record_figure: RecordFigure
) -> None:
    row, held = held_and_charged(stack)
    assert (row["Account"], row["Partition"], held) == (GROUP, "cpu", 4 * SU)
    row, held = held_and_charged(stack, f"--account={OTHER}")
    assert (row["Account"], row["Partition"], held) == (OTHER, "cpu", 4 * SU)
    refused = sbatch(stack, f"--account={FOREIGN}")
    assert refused.code != 0
    assert f"you are not a member of project {FOREIGN}: write --account=" in refused.err
    record_figure(refused.err)


def test_job_of_several_partitions_is_judged_by_the_dearest_and_charged_where_it_ran(
    stack: BankStack, checkout: Path, tmp_path: Path, record_figure: RecordFigure
) -> None:
    """4 SU in cpu, a quarter of one in gpu-t4."""
    slurm = stack.slurm
    stack.set_available(GROUP, 1 * SU)
    sync_policy(stack, checkout, tmp_path, PRICE)
    refused = sbatch(stack, BOTH)
    assert refused.code != 0
    assert f"this job may cost 4 SU; {GROUP} has 1 SU of cpu" in refused.err
    record_figure(refused.err)

    stack.set_available(GROUP, RICH)
    sync_policy(stack, checkout, tmp_path, PRICE)
    try:
        slurm.root("scontrol", "update", "partitionname=cpu", "state=down")
        row, held = held_and_charged(stack, BOTH)
    finally:
        slurm.root("scontrol", "update", "partitionname=cpu", "state=up")
    assert (row["Partition"], held) == ("gpu-t4", SU // 4)
    row, held = held_and_charged(stack, BOTH, "--nodelist=c01")
    assert (row["Partition"], held) == ("cpu", 4 * SU)


def test_profile_hadm_refuses_what_slurm_takes(
    stack: BankStack, checkout: Path, tmp_path: Path, record_figure: RecordFigure
) -> None:
    sync_policy(stack, checkout, tmp_path, f'profile = "hadm"\n{PRICE}')
    for options, message in (
        ((), "no partition is named"),
        ((BOTH,), "a job runs in one partition, not in cpu,gpu-t4"),
        (
            ("--partition=cpu", f"--account={OTHER}"),
            f"account {OTHER} is not that of your group {GROUP}",
        ),
    ):
        refused = sbatch(stack, *options)
        assert refused.code != 0
        assert message in refused.err
        record_figure(refused.err)
    row, _ = held_and_charged(stack, "--partition=cpu")
    assert row["Account"] == GROUP
