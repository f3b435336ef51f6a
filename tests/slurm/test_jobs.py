"""Behaviour of the cluster: jobs of every kind, by several users, with their groups, GPUs and
billing.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.output_parsers import tres
from tests.slurm.lab.people import PEOPLE
from tests.slurm.prices import BILLING

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

DEFAULT_ACCOUNT = {person.name: person.teams[0][0] for person in PEOPLE}
EVERYONE = pytest.mark.parametrize("user", sorted(DEFAULT_ACCOUNT))


@EVERYONE
def test_every_user_can_use_sbatch(slurm: Cluster, user: str) -> None:
    job = slurm.submit(user, "--output=said", script="id -un; echo $SLURM_JOB_ACCOUNT")
    slurm.wait_for(job, "COMPLETED")
    assert slurm.file(user, "said").read_text().split() == [user, DEFAULT_ACCOUNT[user]]


@EVERYONE
def test_every_user_can_use_srun(slurm: Cluster, user: str) -> None:
    assert slurm.run(user, "srun", "--nodes=2", "id", "-un").checked().out.split() == [user, user]


@EVERYONE
def test_every_user_can_use_salloc(slurm: Cluster, user: str) -> None:
    assert slurm.run(user, "salloc", "--nodes=1", "srun", "id", "-un").checked().out.split() == [
        user
    ]


def test_job_has_the_chosen_group(slurm: Cluster) -> None:
    own, chosen = slurm.submit("bob"), slurm.submit("bob", "--account=wg_astro", group="wg_astro")
    slurm.wait_for(own, "COMPLETED")
    slurm.wait_for(chosen, "COMPLETED")
    for job, group, account in ((own, "users", "wg_bio"), (chosen, "wg_astro", "wg_astro")):
        (row,) = slurm.wait_for_sacct(job, "COMPLETED")
        assert (row["Group"], row["Account"]) == (group, account)


def test_users_cannot_use_other_accounts(slurm: Cluster) -> None:
    result = slurm.run("dave", "sbatch", "--account=wg_bio", "--wrap=true")
    assert result.code != 0
    assert "Invalid account" in result.err


def test_array_tasks_are_accounted_as_jobs(slurm: Cluster) -> None:
    job = slurm.submit(
        "dave", "--array=1-5%2", "--output=said-%a", script="echo task $SLURM_ARRAY_TASK_ID"
    )
    slurm.wait_for(job, "COMPLETED", seconds=60)
    rows = slurm.wait_for_sacct(job, "COMPLETED", rows=5)
    assert {row["JobID"] for row in rows} == {f"{job}_{task}" for task in range(1, 6)}
    assert [slurm.file("dave", f"said-{task}").read_text() for task in range(1, 6)] == [
        f"task {task}\n" for task in range(1, 6)
    ]


def test_gpus_are_allocated_and_billed(slurm: Cluster) -> None:
    job = slurm.submit(
        "carol",
        "--partition=gpu",
        "--cpus-per-task=16",
        "--mem=64G",
        "--gres=gpu:2",
        "--output=said",
        script="echo $SLURM_GPUS_ON_NODE",
    )
    slurm.wait_for(job, "COMPLETED")
    (row,) = slurm.wait_for_sacct(job, "COMPLETED")
    assert tres(row["AllocTRES"]) == {
        "billing": "24",
        "cpu": "16",
        "gres/gpu": "2",
        "mem": "64G",
        "node": "1",
    }
    assert slurm.file("carol", "said").read_text() == "2\n"


def wait_for_records(slurm: Cluster, jobs: Iterable[int]) -> list[dict[str, str]]:
    """Wait until the jobs complete, and return their rows of accounting. Waiting for many costs
    little more than for one.
    """
    return [row for job in list(jobs) for row in slurm.wait_for_sacct(job, "COMPLETED")]


def test_most_expensive_resource_is_billed(slurm: Cluster) -> None:
    rows = wait_for_records(
        slurm,
        [
            slurm.submit("alice", f"--partition={partition}", *options.split())
            for partition, options, _ in BILLING
        ],
    )
    billed = [int(tres(row["AllocTRES"]).get("billing", "0")) for row in rows]
    assert [
        (partition, options, sum_)
        for (partition, options, _), sum_ in zip(BILLING, billed, strict=True)
    ] == list(BILLING)


def name_of(slurm: Cluster, row: dict[str, str]) -> str:
    (named,) = slurm.sacct(f"--jobs={row['JobID']}", columns=("JobID", "JobName", "State"))
    return named["JobName"]


def test_any_job_name_is_read_back(slurm: Cluster) -> None:
    names = ["a|b", "two\nlines", "|\n|", "\n", "back\\slash 'quote", "ünïcödé"]
    rows = wait_for_records(slurm, [slurm.submit("alice", f"--job-name={name}") for name in names])
    assert [name_of(slurm, row) for row in rows] == names


def test_job_name_with_our_separator_is_accounted(slurm: Cluster) -> None:
    (row,) = wait_for_records(slurm, [slurm.submit("alice", "--job-name=1\x1f2")])
    assert row["User"] == "alice"


def test_accounting_changes_double_quotes_in_names(slurm: Cluster) -> None:
    (row,) = wait_for_records(slurm, [slurm.submit("alice", '--job-name="it"')])
    assert name_of(slurm, row) == "`it`"


def test_hanging_command_is_ended(slurm: Cluster) -> None:
    with pytest.raises(TimeoutError, match="srun"):
        slurm.run("alice", "srun", "--hold", "true", seconds=1)
    assert [process for process in slurm.processes() if b"srun" in process.command] == []
