"""Real Slurm with a real bank: jobs are imported, reconciled to the minute, and never charged
twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.run_report import HoldReport
from fairbank.core.time import DAY
from fairbank.rest.client import Client, parse_address
from fairbank.rest.client.bank_client import BankClient, ReportAmounts
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.history_import import HistoryResult, import_history
from fairbank.slurm.people_import import import_people
from fairbank.slurm.policy import SiteRules
from fairbank.slurm.reconcile.compare import Category
from fairbank.slurm.reconcile.reconciler import Reconciler, ReconcileResult, read_jobs
from fairbank.slurm.reconcile.shadow import ShadowInput, simulate
from fairbank.slurm.sync import sync_accounts, sync_policy
from tests.slurm.lab.cluster import Cluster
from tests.slurm.prices import priced
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

LONG = "sleep 3600"


class ReconciledCluster:
    """Cluster and bank with its prices, and the jobs and runs since `since`."""

    def __init__(self, slurm: Cluster, bank: BankClient) -> None:
        self.cluster, self.bank = slurm, bank
        self.slurm = SlurmCommands(slurm.place.environment)
        self.since = int(time.time()) + 2
        wait_until(lambda: time.time() > self.since, "what was before to be over")

    def reconcile(self, *, fix: bool = False) -> ReconcileResult:
        now = int(time.time()) + 1
        return Reconciler(
            SlurmCommands(self.cluster.place.environment), self.bank, grace_seconds=0
        ).reconcile(self.since, now, fix=fix)

    def import_history(self) -> HistoryResult:
        now = int(time.time()) + 1
        return import_history(self.slurm, self.bank, self.since, now, grace_seconds=0, cover=True)

    def executions(self, job: int) -> list[AccountingJob]:
        """Return the accounting records of this test under a job id."""
        return [row for row in self.slurm.jobs_by_id([job]).rows if row.submitted >= self.since]

    def wait_for_accounting(self, job: int, state: str, executions: int = 1) -> None:
        """Wait until accounting has this many executions of the job, the last of them in this
        state. (The lab's own function requests names, and cannot read all of those used here.)
        """

        def is_complete() -> bool:
            rows = sorted(self.executions(job), key=lambda row: row.submitted)
            return (
                len(rows) == executions
                and all(row.is_complete for row in rows)
                and rows[-1].state == state
            )

        wait_until(is_complete, f"accounting to have job {job} as {state}")

    def kinds(self) -> list[Category]:
        return sorted(
            (outcome.finding.category for outcome in self.reconcile().outcomes),
            key=lambda kind: kind.name,
        )


@pytest.fixture
def pair(slurm: Cluster) -> Iterator[ReconciledCluster]:
    with priced() as server:
        yield ReconciledCluster(slurm, BankClient(Client(parse_address(f"unix:{server.socket}"))))


def test_users_and_prices_are_imported_from_slurm(pair: ReconciledCluster) -> None:
    result = import_people(pair.slurm, pair.bank)
    assert (result.unreadable, result.plan.notes, result.differences) == ((), (), ())
    projects = {project.account: project for project in pair.bank.projects()}
    assert {name: sorted(project.members) for name, project in projects.items()} == {
        "wg_astro": [60_601, 60_602], "wg_bio": [60_602, 60_603], "wg_chem": [60_604],
    }  # fmt: skip
    assert import_people(pair.slurm, pair.bank).plan.steps == ()


def test_imported_runs_are_charged_once_to_the_minute(pair: ReconciledCluster) -> None:
    cluster = pair.cluster
    import_people(pair.slurm, pair.bank)
    names = ["a|b", "two\nlines", '"x"\x1f1', "1\x1f2026-01-01T00:00:00"]
    jobs = [
        cluster.submit("alice", f"--job-name={name}", "-c2", script="sleep 3") for name in names
    ]
    jobs.append(cluster.submit("bob", "--partition=gpu", "--gres=gpu:2", script="sleep 3"))
    again = cluster.submit("carol", "--requeue", script="[ $SLURM_RESTART_COUNT ] || sleep 600")
    lost = cluster.submit("dave", script=LONG)
    cluster.wait_for(again, "RUNNING")
    since = time.time()
    wait_until(lambda: time.time() > since + 4, "the first execution to last some seconds")
    cluster.root("scontrol", "requeue", str(again))
    cluster.wait_for(again, "PENDING")
    cluster.root(
        "scontrol", "update", f"jobid={again}", "starttime=now+3"
    )  # in the same second, its credential would count as revoked
    for job in jobs:
        cluster.wait_for(job, "COMPLETED")
        pair.wait_for_accounting(job, "COMPLETED")
    cluster.wait_for(again, "COMPLETED", seconds=90)
    pair.wait_for_accounting(again, "COMPLETED", executions=2)
    cluster.wait_for(lost, "RUNNING")

    before = pair.reconcile()
    assert before.unreadable == ()
    assert {outcome.finding.category for outcome in before.outcomes} == {Category.MISSING}
    assert {outcome.finding.job.job_id for outcome in before.outcomes if outcome.finding.job} >= {
        *jobs,
        again,
    }
    assert not pair.import_history().left
    after = pair.reconcile()
    assert (after.is_clean, after.outcomes, after.comparison.matched) == (
        True,
        (),
        len(before.outcomes),
    )
    assert sum(allocation.remaining for allocation in pair.bank.allocations()) == 0, (
        "each allocation was given exactly what its runs cost"
    )
    runs = {
        (run.job_id, run.reported.run.restart): run
        for run in pair.bank.runs("lab", pair.since - DAY, pair.since + DAY)
    }
    assert (again, 0) in runs


def test_orphan_and_open_holds_are_fixed(pair: ReconciledCluster) -> None:
    cluster = pair.cluster
    import_people(pair.slurm, pair.bank)
    project = next(project for project in pair.bank.projects() if project.account == "wg_chem")
    terms = {"resource": "cpu", "category": "research", "amount": 6_000, "comment": "a test"}
    pair.bank.post(
        "/alloc", {"project": project.id, "start": "2020-01-01", "end": "2040-01-01", **terms}
    )
    job = cluster.submit("dave", "--time=10", script=LONG)
    cluster.wait_for(job, "RUNNING")
    submitted = next(queued.submitted for queued in pair.slurm.queue().rows if queued.job_id == job)
    start = int(time.time()) - 5
    for number in (job, 4_000_000_000):  # this job, and one that Slurm does not know
        hold = HoldReport(
            cluster="lab",
            job_id=number,
            submitted=submitted,
            owner_uid=60_604,
            account="wg_chem",
            partition="cpu",
            start=start,
            time_limit=600,
            tres="cpu=1",
        )
        assert pair.bank.report([hold]) == [ReportAmounts()]
    assert pair.kinds() == [Category.ORPHAN]
    assert pair.reconcile(fix=True).is_clean
    assert pair.kinds() == []
    cluster.root("scancel", str(job))
    cluster.wait_for_sacct(job, "CANCELLED")
    assert pair.kinds() == [Category.OPEN]
    assert pair.reconcile(fix=True).is_clean
    assert pair.kinds() == []


def test_reused_job_ids_are_separate_runs(pair: ReconciledCluster) -> None:
    """After a reset of slurmctld, job numbers begin again; accounting distinguishes the two
    jobs by submit time.
    """
    cluster = pair.cluster
    import_people(pair.slurm, pair.bank)
    cluster.empty()
    first = cluster.submit("alice", script="sleep 2")
    cluster.wait_for(first, "COMPLETED")
    pair.wait_for_accounting(first, "COMPLETED")
    cluster.empty(first_job=first)
    second = cluster.submit("alice", "-c2", script="sleep 2")
    assert second == first
    cluster.wait_for(second, "COMPLETED")
    wait_until(
        lambda: (
            len([job for job in pair.executions(first) if job.has_ended and job.is_complete]) == 2
        ),
        "accounting to have both jobs",
    )
    assert not pair.import_history().left
    runs = [
        run
        for run in pair.bank.runs("lab", pair.since - DAY, pair.since + DAY)
        if run.job_id == first
    ]
    assert len({run.id for run in runs}) == 2
    assert len({run.submitted for run in runs}) == 2
    assert {run.reported.run.restart for run in runs} == {0}
    assert pair.kinds() == []


def test_billing_limit_does_not_end_running_jobs(pair: ReconciledCluster) -> None:
    """Slurm ends running jobs when GrpTRESMins is reached. So the limit includes running jobs, also
    those unknown to the bank.
    """
    cluster = pair.cluster
    import_people(pair.slurm, pair.bank)
    job = cluster.submit("dave", "--time=10", script=LONG)
    cluster.wait_for(job, "RUNNING")
    wait_until(
        lambda: any(
            usage.account == "wg_chem" and usage.running > 0
            for usage in pair.slurm.account_usage().rows
        ),
        "Slurm to count what runs",
        seconds=90,
    )
    try:
        made = sync_accounts(pair.slurm, pair.bank, fence=True)
        assert len([change for change in made.changes if "GrpTRESMins" in change.words[-1]]) == 3
        assert cluster.states(job) == ["RUNNING"]
        refused = cluster.submit("alice", "--time=10", script=LONG)
        wait_until(
            lambda: "AssocGrpBillingMinutes" in cluster.job(refused)["Reason"],
            "Slurm to hold a job beyond the limit",
        )
        assert cluster.states(job) == ["RUNNING"]
    finally:
        cluster.root(
            "sacctmgr",
            "--immediate",
            "modify",
            "account",
            *("wg_astro", "wg_bio", "wg_chem"),
            "set",
            "GrpTRESMins=billing=-1",
        )


def test_policy_and_shadow_of_a_real_cluster(pair: ReconciledCluster, tmp_path: Path) -> None:
    cluster = pair.cluster
    import_people(pair.slurm, pair.bank)
    job = cluster.submit("alice", "--job-name=a\nb", script="sleep 2")
    cluster.wait_for(job, "COMPLETED")
    pair.wait_for_accounting(job, "COMPLETED")
    jobs, unreadable = read_jobs(pair.slurm, pair.since, int(time.time()) + 1)
    assert unreadable == ()
    shadow_input = ShadowInput(
        cluster=pair.bank.cluster("lab"),
        projects=pair.bank.projects(),
        allocations=pair.bank.allocations(),
        now=int(time.time()),
    )
    shadow = simulate(jobs, shadow_input)
    assert job in {refusal.job.job_id for refusal in shadow.refused}, "there is no credit yet"
    sync_policy(pair.slurm, pair.bank, SiteRules(policy=str(tmp_path / "policy")))
    lines = (tmp_path / "policy").read_text().splitlines()
    assert {"gpu\tgpu\ta100\t4", "gpu\tgpu-t4\tt4\t4", "balance\twg_astro\tcpu\t0"} <= set(lines)
    assert any(
        line.startswith("partition\tcpu\tcpu\tmax_tres\t2048\t1000\t30\t64\t131072")
        for line in lines
    )
