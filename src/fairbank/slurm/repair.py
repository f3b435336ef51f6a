"""Mending what reconciling found: the reports that the bank is told, and what it says to each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.slurm.bank import BankClient, Progress, ReportObjection, silent
from fairbank.slurm.compare import reports
from fairbank.slurm.compare.bank_records import BankFunds
from fairbank.slurm.compare.classification import (
    CHARGED,
    RELEASED,
    FindingCategory,
    ReconcileFinding,
    restart_of,
)
from fairbank.slurm.parsers.values import AccountingJob, Spent


class RepairOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, done about a finding: `said` is None when it is mended, else why not; empty when nobody asked for it.
    `against` is what the bank says against its end, or where nobody wanted it told now, said the last time."""

    finding: ReconcileFinding
    said: str | None = ""
    against: ReportObjection | None = None


class Mender:
    """Tells one bank. `history` is all that accounting has of the jobs found; `again`: what the bank refused before is told once more where
    an allocation is there now; `doubt` is why no hold is given back, if so; `funds` stand in for those that the bank has."""

    def __init__(
        self,
        bank: BankClient,
        prices: Cluster,
        history: Sequence[AccountingJob],
        now: int,
        *,
        again: bool,
        doubt: InvalidInput | None,
        funds: BankFunds | None = None,
    ) -> None:
        self._bank, self._prices, self._now, self._again, self._doubt = (
            bank,
            prices,
            now,
            again,
            doubt,
        )
        self._given = funds
        self._history: Mapping[int, list[AccountingJob]] = defaultdict(list)
        for job in history:
            self._history[job.job_id].append(job)
        self._spent: dict[tuple[int, int], Spent] = {}

    def know(self, spent: Iterable[Spent]) -> None:
        """How jobs ended, and what time they used: told with their ends."""
        self._spent |= {(each.job_id, each.submitted): each for each in spent}

    def mend(
        self, findings: Sequence[ReconcileFinding], progress: Progress = silent
    ) -> list[RepairOutcome]:
        """Charges first: what they free may be asked for again."""
        left: list[RepairOutcome] = []
        told: list[tuple[ReconcileFinding, Mapping[str, Any]]] = []
        for finding in sorted(findings, key=lambda each: each.kind in RELEASED):
            try:
                body = self._report(finding)
            except InvalidInput as bad:
                left.append(_not_told(finding, bad))
            else:
                told += [] if body is None else [(finding, body)]
                left += [RepairOutcome(finding=finding)] if body is None else []
        answers = self._bank.report([body for _, body in told], progress)
        return left + [
            _told(finding, against) for (finding, _), against in zip(told, answers, strict=True)
        ]

    def foretell(self, findings: Sequence[ReconcileFinding]) -> list[RepairOutcome]:
        """What `mend` would come to, as far as that can be known without asking the bank."""
        outcomes = []
        for finding in findings:
            try:
                body = self._report(finding)
                if body is not None and finding.job is not None:
                    self._demand_grant(finding, finding.job)
            except InvalidInput as bad:
                outcomes.append(_not_told(finding, bad))
            else:
                outcomes.append(RepairOutcome(finding=finding, said="" if body is None else None))
        return outcomes

    def _report(self, finding: ReconcileFinding) -> dict[str, Any] | None:
        """What the bank is told; None when that is for people to judge. Raises InvalidInput when it cannot be."""
        job, run = finding.job, finding.run
        if job is not None and finding.kind is FindingCategory.REFUSED and self._again:
            self._demand_payer(job)
        elif job is None or finding.kind not in CHARGED:
            return (
                None if run is None or finding.kind not in RELEASED else self._given_back(finding)
            )
        said = reports.charge(job, run, restart_of(job, self._history[job.job_id]), self._prices)
        return said | reports.spent(self._spent.get((job.job_id, job.submitted)))

    def _given_back(self, finding: ReconcileFinding) -> dict[str, Any] | None:
        if self._doubt is not None:
            raise self._doubt
        return (
            None
            if finding.run is None
            else reports.give_back(finding.run, self._prices.name, self._now)
        )

    def _demand_payer(self, job: AccountingJob) -> None:
        """Raises InvalidInput when nobody could pay: the bank would only keep another refusal."""
        partition = self._prices.partitions.get(job.partition)
        project = self._funds.by_account.get(job.account)
        if (
            project is None
            or partition is None
            or not self._funds.payers(project.id, partition.resource, job.start or 0)
        ):
            raise InvalidInput(
                "no allocation was there that could pay",
                remedy="fairbank alloc create, for the time when it ran",
            )

    def _demand_grant(self, finding: ReconcileFinding, job: AccountingJob) -> None:
        """Raises InvalidInput for an end that the bank would refuse: nothing prices it, or nothing was held and nobody could pay."""
        if finding.amount is None:
            raise InvalidInput(
                f"the bank's settings have no partition {job.partition}",
                remedy="have it entered there, by staff",
            )
        if finding.run is None:
            self._demand_payer(job)

    @cached_property
    def _funds(self) -> BankFunds:
        return self._given or BankFunds(self._bank.projects(), self._bank.allocations())


def _told(finding: ReconcileFinding, against: ReportObjection | None) -> RepairOutcome:
    return RepairOutcome(
        finding=finding, said=None if against is None else str(against), against=against
    )


def _not_told(finding: ReconcileFinding, why: InvalidInput) -> RepairOutcome:
    return RepairOutcome(
        finding=finding, said=f"{why.message}; {why.remedy}" if why.remedy else why.message
    )
