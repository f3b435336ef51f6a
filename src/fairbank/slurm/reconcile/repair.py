"""Repair of findings: report missing ends to the bank, and release the holds of lost runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from fairbank.bank.records import BankFunds, BankRun
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.partition import Cluster
from fairbank.cluster.run_report import CompleteReport, check_report, outcome_of
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import LOST
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.progress import StageProgress, no_progress
from fairbank.rest.client.bank_client import BankClient, ReportAmounts, ReportRefusal
from fairbank.slurm.parsers.values import JobEnd
from fairbank.slurm.reconcile.compare import (
    REPAIRED_BY_CHARGE,
    REPAIRED_BY_RELEASE,
    Category,
    ReconcileFinding,
    complete_record,
    is_of_another_job,
)
from fairbank.slurm.reconcile.restarts import restart_count

FROM_ACCOUNTING = "reconciled with accounting"
"""Comment of the entries of a reconciliation."""


class RepairOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a repair, done or predicted.

    `problem` is the reason why the repair failed; without one an unrepaired finding was not tried.
    `refusal` is the bank's refusal of the report, now or earlier, `amounts` what the bank charged,
    wrote off and released for it. The prediction of an import has in `amounts` what no credit would
    cover.
    """

    finding: ReconcileFinding
    is_repaired: bool = False
    problem: str | None = None
    refusal: ReportRefusal | None = None
    amounts: ReportAmounts | None = None


class Repairer:
    """Repairs of one cluster at one bank.

    Args:
        bank: client that may report runs of the cluster.
        cluster: the cluster, with its partitions, as the bank prices them.
        history: all executions of the jobs found.
        runs: runs of the ledger.
        now: time that a released run ends.
        retry_refused: retry charges that the bank refused, where an allocation exists by now.
        doubt: reason why no hold is released, if there is one.
        funds: projects and allocations to assume instead of the bank's.
        comment: the comment of the entries of charges.
    """

    def __init__(
        self,
        bank: BankClient,
        cluster: Cluster,
        history: Sequence[AccountingJob],
        runs: Sequence[BankRun],
        now: int,
        *,
        retry_refused: bool,
        doubt: InvalidInput | None,
        funds: BankFunds | None = None,
        comment: str = FROM_ACCOUNTING,
    ) -> None:
        self._bank, self._cluster, self._now, self._comment = bank, cluster, now, comment
        self._retry_refused, self._doubt, self._assumed_funds = retry_refused, doubt, funds
        self._history: Mapping[int, list[AccountingJob]] = defaultdict(list)
        for job in history:
            self._history[job.job_id].append(job)
        self._runs: Mapping[tuple[int, int], list[BankRun]] = defaultdict(list)
        for run in runs:
            self._runs[run.job_id, run.submitted].append(run)
        self._job_ends: dict[tuple[int, int], JobEnd] = {}

    def add_job_ends(self, job_ends: Iterable[JobEnd]) -> None:
        """Add exit codes and processor times, which are reported with the ends."""
        self._job_ends |= {(end.job_id, end.submitted): end for end in job_ends}

    def repair(
        self, findings: Sequence[ReconcileFinding], progress: StageProgress = no_progress
    ) -> list[RepairOutcome]:
        """Report to the bank what can be repaired, and return the outcome of each finding."""
        outcomes: list[RepairOutcome] = []
        reported: list[tuple[ReconcileFinding, CompleteReport]] = []
        for finding in sorted(findings, key=_repair_order):
            try:
                body = self._report(finding)
            except InvalidInput as error:
                outcomes.append(_failed(finding, error))
                continue
            if body is None:
                outcomes.append(RepairOutcome(finding=finding))
            else:
                reported.append((finding, body))
        results = self._bank.report([body for _, body in reported], progress)
        for (finding, _), result in zip(reported, results, strict=True):
            if isinstance(result, ReportAmounts):
                outcomes.append(RepairOutcome(finding=finding, is_repaired=True, amounts=result))
            else:
                outcomes.append(RepairOutcome(finding=finding, problem=str(result), refusal=result))
        return outcomes

    def predict(self, findings: Sequence[ReconcileFinding]) -> list[RepairOutcome]:
        """Return the outcomes that `repair` would have, as far as the bank need not be asked."""
        outcomes = []
        for finding in findings:
            try:
                body = self._report(finding)
                if body is not None and finding.job is not None:
                    self._require_price(finding, finding.job)
            except InvalidInput as error:
                outcomes.append(_failed(finding, error))
            else:
                outcomes.append(RepairOutcome(finding=finding, is_repaired=body is not None))
        return outcomes

    def _report(self, finding: ReconcileFinding) -> CompleteReport | None:
        """Return the report that repairs the finding; None if an administrator has to decide.

        Raises InvalidInput if the report lacks something.
        """
        job, run = finding.job, finding.run
        if finding.category in REPAIRED_BY_RELEASE and run is not None:
            if self._doubt is not None:
                raise self._doubt
            return release_report(run, self._cluster.name, self._now)
        if job is None:
            return None
        # Where no allocation could pay, the bank would only refuse it again: its reason stands.
        retry = self._retry_refused and finding.category is Category.REFUSED and self._can_pay(job)
        if not retry and finding.category not in REPAIRED_BY_CHARGE:
            return None
        restart = self._restart(job)
        # Each piece of a resized job has its own exit code and processor time.
        job_end = None if job.pieces else self._job_ends.get((job.job_id, job.submitted))
        return charge_report(job, run, restart, self._cluster, job_end, self._comment)

    def _restart(self, job: AccountingJob) -> int:
        """Return the restart count that distinguishes an execution from all other runs.

        Another job's run may have the one that accounting gives.
        """
        restart = restart_count(job, self._history[job.job_id])
        others = self._runs.get((job.job_id, job.submitted), ())
        taken = {run.reported.run.restart for run in others if is_of_another_job(run, job)}
        while restart in taken:
            restart += 1
        return restart

    def _can_pay(self, job: AccountingJob) -> bool:
        """Return whether there is an allocation that could pay for the job."""
        is_priced = job.partition in self._cluster.partitions
        return is_priced and self._missing_payer(job) is None

    def _missing_payer(self, job: AccountingJob) -> InvalidInput | None:
        resource = self._cluster.resource(job.partition, job.qos)
        return self._funds.missing_payer(job.account, resource, job.start or 0)

    def _require_price(self, finding: ReconcileFinding, job: AccountingJob) -> None:
        """Raise InvalidInput if the bank would refuse: no price, or no hold and no payer."""
        if finding.amount is None:
            text = f"the bank's settings have no partition {job.partition}"
            raise InvalidInput(text, remedy="ask the bank's staff to add it")
        if finding.run is None and (missing := self._missing_payer(job)) is not None:
            raise missing

    @cached_property
    def _funds(self) -> BankFunds:
        return self._assumed_funds or BankFunds(self._bank.projects(), self._bank.allocations())


def _repair_order(finding: ReconcileFinding) -> tuple[int, int]:
    """Sort releases first, then ends of held runs: what they return can pay runs without a hold.

    Runs without a hold are entered by their starts, as holds are: lists of jobs have this order.
    """
    if finding.category in REPAIRED_BY_RELEASE:
        return 0, 0
    if finding.category is not Category.MISSING or finding.job is None:
        return 1, 0
    return 2, finding.job.start or 0


def _failed(finding: ReconcileFinding, error: InvalidInput) -> RepairOutcome:
    problem = f"{error.message}; {error.remedy}" if error.remedy else error.message
    return RepairOutcome(finding=finding, problem=problem)


def charge_report(
    job: AccountingJob,
    run: BankRun | None,
    restart: int,
    cluster: Cluster,
    job_end: JobEnd | None = None,
    comment: str = FROM_ACCOUNTING,
) -> CompleteReport:
    """Return the report of an end as accounting has it.

    Args:
        job: the execution that ended.
        run: its run in the ledger, whose submission and restart the report keeps; None if unknown.
        restart: restarts before this execution.
        job_end: exit code and processor time, where known.

    Raises:
        InvalidInput: the record lacks something that a report needs, or contradicts itself.
    """
    job = complete_record(job, run)
    owner, comment = _owner_and_comment(job, run, comment)
    if job.start is None or job.end is None:
        raise InvalidInput("it has no start or no end", field="Start")
    exit_code, exit_signal = (job_end and job_end.exit_code) or (None, None)
    report = CompleteReport(
        cluster=cluster.name,
        job_id=job.job_id,
        submitted=job.submitted if run is None else run.submitted,
        restart=restart if run is None else run.reported.run.restart,
        owner_uid=owner,
        account=job.account,
        partition=job.partition,
        qos=job.qos or None,
        # The end lies before the start if a clock was set back meanwhile.
        start=min(job.start, job.end),
        time_limit=job.limit_seconds or 0,
        end=job.end,
        elapsed=job.elapsed,
        state=job.state,
        tres=job.tres,
        pieces=job.pieces,
        comment=comment,
        exit_code=exit_code,
        exit_signal=exit_signal,
        cpu_seconds=job.cpu_seconds if job_end is None else job_end.cpu_seconds,
    )
    # The bank's own checks, so that a dry run and a repair decide alike.
    check_report(report)
    outcome_of(report)
    return report


def _owner_and_comment(job: AccountingJob, run: BankRun | None, comment: str) -> tuple[int, str]:
    """Return the uid of the owner, and the comment, which names a user without one."""
    owner = run.owner if job.owner is None and run is not None else job.owner
    if owner is None:
        # Nothing has the number of a user who is gone. The project still used the resources.
        return OVERFLOW_UID, f"{comment}; user {job.user!a} has no uid here"
    return owner, comment


def can_be_charged(job: AccountingJob, cluster: Cluster) -> bool:
    """Return True if the record has everything that the bank checks in a report of its end."""
    try:
        charge_report(job, None, 0, cluster)
    except InvalidInput:
        return False
    return True


def release_report(run: BankRun, cluster: str, now: int) -> CompleteReport:
    """Return the report that releases the hold of a run that Slurm does not know.

    Args:
        now: time that is entered as its end; no time is charged.
    """
    return CompleteReport(
        cluster=cluster,
        job_id=run.job_id,
        submitted=run.submitted,
        restart=run.reported.run.restart,
        owner_uid=run.owner,
        account=run.account,
        partition=run.reported.partition,
        start=run.reported.start,
        end=max(now, run.reported.start),
        elapsed=0,
        state=LOST,
        comment="Slurm no longer knows this run",
    )
