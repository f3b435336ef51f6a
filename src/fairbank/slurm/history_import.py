"""Import of finished jobs into the bank, through its own routes.

What the bank has already is not charged twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from fairbank.bank.allocation import Allocation
from fairbank.bank.policy import HISTORY_CATEGORY
from fairbank.bank.project import Project
from fairbank.bank.records import BankCluster, BankFunds, BankRun, PlannedCharge
from fairbank.cluster.accounting_job import AccountingJob, UnreadableLine
from fairbank.core.errors import InvalidInput
from fairbank.core.progress import StageProgress, no_progress
from fairbank.core.time import iso
from fairbank.core.units import AMOUNT_MAX, show_minutes
from fairbank.rest.client.bank_client import BankClient, ReportAmounts
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.reconcile.compare import (
    REPAIRED_BY_RELEASE,
    Category,
    ReconcileComparison,
    ReconcileFinding,
    ReconcileInput,
    compare,
)
from fairbank.slurm.reconcile.import_plan import (
    HistoryAllocation,
    ImportPlan,
    is_passed_over,
    plan_allocations,
    projects_after,
)
from fairbank.slurm.reconcile.prices import ClusterPrices
from fairbank.slurm.reconcile.reconciler import PERIOD_MARGIN_SECONDS, Reconciler
from fairbank.slurm.reconcile.repair import Repairer, RepairOutcome, can_be_charged

COVERED = frozenset({Category.MISSING, Category.REFUSED})
"""Runs without a hold that an import charges, if an allocation can pay."""


class HistoryResult(msgspec.Struct, frozen=True, kw_only=True):
    """History that was entered or, if predicted, would be.

    allocations  that were created for it
    charged      runs that ended
    released     holds of runs that Slurm does not know
    left         runs that could not be charged or released, and why
    known        number of runs that the ledger had already
    """

    allocations: tuple[HistoryAllocation, ...]
    charged: tuple[RepairOutcome, ...]
    released: tuple[RepairOutcome, ...]
    left: tuple[RepairOutcome, ...]
    known: int
    unreadable: tuple[UnreadableLine, ...]

    @property
    def left_out(self) -> int:
        """Number of runs and lines that are left out."""
        return len(self.left) + len(self.unreadable)

    @property
    def without_owner(self) -> tuple[AccountingJob, ...]:
        """Jobs of charged runs whose user has no uid here, so that their owner is `nobody`."""
        findings = [outcome.finding for outcome in self.charged]
        return tuple(
            finding.job
            for finding in findings
            if finding.job and finding.job.owner is None and finding.run is None
        )


def import_history(
    slurm: SlurmCommands,
    bank: BankClient,
    since: int,
    until: int,
    *,
    grace_seconds: int,
    cluster: str | None = None,
    cover: bool = False,
    passed_over: Collection[str] = (),
    after: ImportPlan | None = None,
    progress: StageProgress = no_progress,
) -> HistoryResult:
    """Charge the runs that ended between two instants and are not in the ledger.

    Args:
        slurm: commands of the cluster.
        bank: client that may report runs of the cluster.
        since: start of the period.
        until: end of the period, not included; the current time.
        grace_seconds: leave jobs that ended less than this time ago for the next import.
        cluster: required name of the cluster; None for any.
        cover: create allocations for runs that no allocation would pay.
        passed_over: accounts and users whose unpaid runs are left out silently. Their other runs
            are charged, since they used the cluster.
        after: charge nothing, and predict the result as if this plan were carried out. The
            prediction ignores `policy.late_charges = false`, with which the bank refuses the ends
            of runs without a hold.
        progress: called with the stage, and how much of how much is done.
    """
    prices = bank.cluster(slurm.check_cluster(cluster))
    projects: Sequence[Project] = bank.projects()
    existing = bank.allocations()
    if after is not None:
        projects = projects_after(projects, after)
    reconciler = Reconciler(slurm, bank, grace_seconds=grace_seconds, now=until)
    reconcile = partial(reconciler.reconcile, since, until, cluster=cluster, progress=progress)
    allocations: list[HistoryAllocation] = []
    if cover:  # only what is charged now: the rest may still change, or be charged by the agent
        findings = reconcile().comparison.findings
        allocations = _cover(bank, findings, projects, existing, prices)
    funds = None
    if after is None:
        for allocation in allocations:
            _create(bank, allocation, prices.name)
    else:
        funds = BankFunds(projects, [*existing, *allocations])
    result = reconcile(fix=after is None, retry_refused=cover, funds=funds)
    outcomes = _without_passed_over(result.outcomes, passed_over)
    return _history_result(allocations, outcomes, result.comparison.matched, result.unreadable)


def _cover(
    bank: BankClient,
    findings: Iterable[ReconcileFinding],
    projects: Sequence[Project],
    existing: Sequence[Allocation],
    cluster: BankCluster,
) -> list[HistoryAllocation]:
    """Plan allocations for the jobs that an import charges and that no allocation would pay."""
    jobs = [finding.job for finding in findings if finding.job and finding.category in COVERED]
    unpaid = [job for job in jobs if can_be_charged(job, cluster)]
    allocations = plan_allocations(unpaid, projects, existing, cluster)
    _check_category(bank, allocations)
    return allocations


def _without_passed_over(
    outcomes: Iterable[RepairOutcome], passed_over: Collection[str]
) -> list[RepairOutcome]:
    """Leave out problems of runs that are passed over. A run that only the bank knows never is."""
    return [
        outcome
        for outcome in outcomes
        if outcome.is_repaired
        or not (outcome.finding.job and is_passed_over(outcome.finding.job, passed_over))
    ]


def import_jobs(
    bank: BankClient,
    cluster: BankCluster,
    jobs: Sequence[AccountingJob],
    now: int,
    *,
    source: str,
    cover: bool = False,
    dry_run: bool = False,
    progress: StageProgress = no_progress,
) -> HistoryResult:
    """Charge jobs of any scheduler that have ended and are not in the ledger.

    Args:
        bank: client that may report runs of the cluster.
        cluster: the cluster of the jobs, with its prices.
        jobs: the jobs that ended before now; none of them is doubtful.
        now: the current time.
        source: the source of the jobs, for the comment of their entries.
        cover: create allocations for runs that no allocation would pay.
        dry_run: charge nothing, and predict the result.
        progress: called with the stage, and how much of how much is done.

    Raises:
        InvalidInput: a job costs more than the bank can count, or the bank does not have the
            category of an allocation to create. Nothing was charged.
    """
    comparison, runs = _compare_jobs(bank, cluster, jobs, now)
    # What only the bank has may be of another file.
    findings = [finding for finding in comparison.findings if finding.job is not None]
    differing = {_execution(finding.job) for finding in findings if finding.job is not None}
    moved = _with_other_account([job for job in jobs if _execution(job) not in differing], runs)
    projects, existing = bank.projects(), bank.allocations()
    allocations = _cover(bank, findings, projects, existing, cluster) if cover else []
    if not dry_run:
        for allocation in allocations:
            _create(bank, allocation, cluster.name)
    funds = BankFunds(projects, [*existing, *allocations])
    comment = f"imported from {source}"
    repairer = Repairer(
        bank, cluster, jobs, runs, now, retry_refused=True, doubt=None, funds=funds, comment=comment
    )
    if dry_run:
        outcomes = _with_lacking_credit(repairer.predict(findings), funds)
    else:
        outcomes = repairer.repair(findings, progress)
    return _history_result(allocations, [*outcomes, *moved], comparison.matched - len(moved))


def _execution(job: AccountingJob) -> tuple[int, int, int | None]:
    return job.job_id, job.submitted, job.start


def _with_other_account(
    jobs: Iterable[AccountingJob], runs: Iterable[BankRun]
) -> list[RepairOutcome]:
    """Return the jobs whose run the ledger has, but of another account."""
    known: dict[tuple[int, int | None], BankRun] = {
        (run.job_id, run.reported.start): run for run in runs
    }
    findings = (
        (job, run)
        for job in jobs
        if (run := known.get((job.job_id, job.start))) is not None and run.account != job.account
    )
    return [
        RepairOutcome(
            finding=ReconcileFinding(category=Category.MATCHED, job=job, run=run),
            problem=f"its run belongs to {run.account} in the bank; left as it is",
        )
        for job, run in findings
    ]


def _with_lacking_credit(
    outcomes: Sequence[RepairOutcome], funds: BankFunds
) -> list[RepairOutcome]:
    """Return predicted outcomes with what the credit would not cover, as written off."""
    charges: dict[int, PlannedCharge] = {}
    for place, outcome in enumerate(outcomes):
        job, run = outcome.finding.job, outcome.finding.run
        if outcome.is_repaired and job is not None:
            amount = max(0, (outcome.finding.amount or 0) - (run.held if run else 0))
            resource = outcome.finding.resource
            charges[place] = PlannedCharge(job.account, resource, job.start or 0, amount)
    beyond = dict(zip(charges, funds.beyond_credit(charges.values()), strict=True))
    return [
        replace(outcome, amounts=ReportAmounts(written_off=beyond[place]))
        if beyond.get(place)
        else outcome
        for place, outcome in enumerate(outcomes)
    ]


def _compare_jobs(
    bank: BankClient, cluster: BankCluster, jobs: Sequence[AccountingJob], now: int
) -> tuple[ReconcileComparison, list[BankRun]]:
    """Compare jobs with the runs that the ledger has of their time."""
    prices = ClusterPrices(cluster)
    for job in jobs:
        if (prices.end_price(job) or 0) > AMOUNT_MAX:
            raise InvalidInput(
                f"job {job.job_id} costs more than the bank can count",
                field="FILE",
                remedy=f"at most {show_minutes(AMOUNT_MAX)}; check what it had, and its times",
            )
    since = min((job.start or 0 for job in jobs), default=now)
    first = max(0, since - PERIOD_MARGIN_SECONDS)
    runs = {run.id: run for run in bank.runs(cluster.name, first, now + 1)}
    refusals = bank.refusals(cluster.name, since)
    sides = ReconcileInput(
        cluster=cluster,
        since=since,
        until=now,
        now=now,
        grace_seconds=0,
        jobs=jobs,
        runs=list(runs.values()),
        queue=(),
        refused={run: refusal.at for run, refusal in refusals.items()},
    )
    return compare(sides), list(runs.values())


def _history_result(
    allocations: Sequence[HistoryAllocation],
    outcomes: Sequence[RepairOutcome],
    known: int,
    unreadable: tuple[UnreadableLine, ...] = (),
) -> HistoryResult:
    """Return the result of an import.

    Args:
        allocations: those that were created for it.
        known: number of runs that the ledger had already.
        unreadable: lines of Slurm that could not be read.
    """
    repaired = [outcome for outcome in outcomes if outcome.is_repaired]
    return HistoryResult(
        allocations=tuple(allocations),
        charged=tuple(
            outcome for outcome in repaired if outcome.finding.category not in REPAIRED_BY_RELEASE
        ),
        released=tuple(
            outcome for outcome in repaired if outcome.finding.category in REPAIRED_BY_RELEASE
        ),
        left=tuple(outcome for outcome in outcomes if not outcome.is_repaired),
        known=known,
        unreadable=unreadable,
    )


def _check_category(bank: BankClient, allocations: Sequence[HistoryAllocation]) -> None:
    """Check that allocations of history may be created. Raises InvalidInput."""
    categories = bank.categories() if allocations else frozenset()
    if categories and HISTORY_CATEGORY not in categories:
        raise InvalidInput(
            f"--cover creates allocations of category {HISTORY_CATEGORY}, which the bank's settings"
            f" do not have ({', '.join(sorted(categories))})",
            field="--cover",
            remedy=f"the administrator adds [policy.categories.{HISTORY_CATEGORY}] to the settings"
            " and restarts the bank; or staff creates allocations: fairbank alloc create",
        )


def _create(bank: BankClient, allocation: HistoryAllocation, cluster: str) -> None:
    terms = allocation.terms
    body = {
        "project": terms.project,
        "resource": terms.resource,
        "category": terms.category,
        "start": iso(terms.start),
        "end": iso(terms.end),
        "amount": allocation.deposited,
        "comment": f"runs on {cluster} before the bank",
    }
    # The same history gets the same key, so that a repeated import creates nothing twice.
    key = f"history:{cluster}:{terms.project}:{terms.resource}:{terms.start}:{terms.end}"
    bank.post("/alloc", body, key)
