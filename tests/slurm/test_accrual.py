"""Accrual of age under limits on a real Slurm: random jobs of several users, accounts and QOS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import pytest
from msgspec.structs import replace

from fairbank.cli import main
from tests.priority.age_by_job import Job, Limit, accrue_jobs
from tests.slurm.conftest import RecordFigure
from tests.slurm.frozen_cluster import instant, run_sacctmgr_commands
from tests.slurm.lab import output_parsers
from tests.slurm.lab.cluster import Cluster
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

PLACE = "cpu"
SEATS = (
    ("alice", "wg_astro"),
    ("bob", "wg_astro"),
    ("bob", "wg_bio"),
    ("carol", "wg_bio"),
    ("dave", "wg_chem"),
)
ACCOUNTS = {"wg_bio": Limit(group=2)}
QOS_LIMITS = {"normal": Limit(), "high": Limit(per_user=2), "low": Limit(group=3)}
FREE = Job(user="dave", account="wg_chem", submitted_at=1, eligible_at=1)
"""Job without limits: it ages from the scheduler's first pass on."""


@pytest.fixture
def limited(slurm: Cluster) -> Iterator[Cluster]:
    """Return the cluster with limits, and a partition in which no job starts."""
    run_sacctmgr_commands(
        slurm, ["modify account wg_bio set grpjobsaccrue=2", *_qos_commands("2", "3")]
    )
    slurm.root("scontrol", "update", f"partitionname={PLACE}", "state=down")
    try:
        yield slurm
    finally:
        slurm.empty()
        run_sacctmgr_commands(
            slurm, ["modify account wg_bio set grpjobsaccrue=-1", *_qos_commands("-1", "-1")]
        )
        slurm.root("scontrol", "update", f"partitionname={PLACE}", "state=up")


def _qos_commands(high: str, low: str) -> list[str]:
    return [
        f"modify qos high set maxjobsaccrueperuser={high}",
        f"modify qos low set grpjobsaccrue={low}",
    ]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_same_jobs_accrue_age(limited: Cluster, seed: int, record_figure: RecordFigure) -> None:
    rng = Random(seed)
    seats = [(*rng.choice(SEATS), rng.choice(list(QOS_LIMITS))) for _ in range(16)]
    queue = {
        _submit(limited, job): job
        for job in (
            Job(user=u, account=a, qos=q, submitted_at=1, eligible_at=1) for u, a, q in seats
        )
    }
    ageing = _ages_after_a_pass(limited, queue)
    assert {job for job, since in ageing.items() if since} == _expected(queue)
    cancelled = rng.sample(sorted(job for job, since in ageing.items() if since), 4)
    limited.root("scancel", *map(str, cancelled))
    remaining = {
        number: replace(job, accrued_at=1 if ageing[number] else 0)
        for number, job in queue.items()
        if number not in cancelled
    }
    ageing_after = _ages_after_a_pass(limited, remaining)
    begun = {job for job in remaining if ageing_after[job] and not ageing[job]}
    assert begun == _expected(remaining)
    assert all(ageing_after[job] == ageing[job] for job in remaining if ageing[job]), (
        "jobs that aged before continue"
    )
    assert all(ageing_after[job] >= max(ageing.values()) for job in begun), (
        "from now on, and not from when it might have begun"
    )
    record_figure(
        f"limits of accrual: of {len(queue)} jobs {sum(map(bool, ageing.values()))} age, and"
        f" {len(begun)} more when 4 are gone"
    )


def test_prio_names_the_limit_that_keeps_a_job_from_ageing(
    limited: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """QOS high lets two jobs of a user age. The third is listed by sprio with an age of 0."""
    job = Job(user="alice", account="wg_astro", qos="high", submitted_at=1, eligible_at=1)
    queue = {_submit(limited, job): job for _ in range(3)}
    ages = _ages_after_a_pass(limited, queue)
    (third,) = [number for number, since in ages.items() if not since]
    for name, value in limited.place.environment.items():
        monkeypatch.setenv(name, value)
    wait_until(lambda: str(third) in limited.root("sprio", "-h", "-o", "%i"), "sprio to list it")
    assert (
        "does not age: QOS high lets 2 jobs of a user age at once (MaxJobsAccruePerUser), and 2 of"
        " alice do; it begins when one of these leaves the queue" in _explained(third, capsys)
    )
    assert "per hour until" in _explained(min(queue), capsys)


def _explained(number: int, capsys: pytest.CaptureFixture[str]) -> str:
    assert main.run(["prio", "--explain", "-j", str(number), "--utc"]) == 0
    return capsys.readouterr().out


def _expected(queue: Mapping[int, Job]) -> set[int]:
    """Return the jobs whose age begins. Slurm 22.05 uses only the first limit of a QOS."""
    accrued = accrue_jobs(list(queue.values()), ACCOUNTS, QOS_LIMITS, now=2, first_of_qos=True)
    return {number for number, (since, _) in zip(queue, accrued, strict=True) if since}


def _submit(slurm: Cluster, job: Job) -> int:
    return int(
        slurm.submit(
            job.user,
            f"--partition={PLACE}",
            f"--account={job.account}",
            f"--qos={job.qos}",
            "--time=5",
        )
    )


def _ages_after_a_pass(slurm: Cluster, queue: Mapping[int, Job]) -> dict[int, int]:
    """Return each job's start of ageing, or 0, after the scheduler has passed all of them: a job
    without limits ages by then.
    """
    last = _submit(slurm, FREE)
    wait_until(lambda: _ages(slurm)[last] > 0, "the scheduler to look at the queue", seconds=90)
    ages = _ages(slurm)
    slurm.root("scancel", str(last))
    return {number: ages[number] for number in queue}


def _ages(slurm: Cluster) -> dict[int, int]:
    jobs = (
        output_parsers.fields(line)
        for line in slurm.root("scontrol", "--oneliner", "show", "job").splitlines()
        if "=" in line
    )
    return {
        int(job["JobId"]): instant(job["AccrueTime"])
        for job in jobs
        if job["JobState"] == "PENDING"
    }
