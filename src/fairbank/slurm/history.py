"""The past, from accounting into the books: allocations for what nobody would pay for, then every run that ended. Or what that would be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from fairbank.core.time import iso
from fairbank.slurm.bank import BankClient, Progress, no_progress
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.compare.bank_records import (
    BankFunds,
    BankAllocation,
    BankCluster,
    BankProject,
)
from fairbank.slurm.compare.classification import RELEASED, ReconcileFinding
from fairbank.slurm.compare.history_allocations import HistoryAllocation, as_bank_allocation, plan_allocations
from fairbank.slurm.compare.import_plan import ImportPlan, projects_after, is_passed_over
from fairbank.slurm.parsers.values import UnreadableLine
from fairbank.slurm.reconciler import Reconciler, ReconcileResult, read_jobs
from fairbank.slurm.repair import RepairOutcome

CATEGORY = "history"


class HistoryResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was opened, charged and given back, and `left`, each with why; or what would be. `known` runs were in the books already."""

    allocations: tuple[HistoryAllocation, ...]
    charged: tuple[ReconcileFinding, ...]
    released: tuple[ReconcileFinding, ...]
    left: tuple[RepairOutcome, ...]
    known: int
    unreadable: tuple[UnreadableLine, ...]

    @property
    def amount(self) -> int:
        """What all charges come to, in SU-minutes."""
        return sum(each.amount or 0 for each in self.charged)


class HistoryImport:
    """Accounting and one bank. With `cover` allocations are opened for what the bank would refuse. Jobs that ended less than
    `grace_seconds` ago are left for the next time. Of what cannot be charged, nothing is said where its account or user is `passed_over`;
    what can be is charged whoever ran it: it was used."""

    def __init__(
        self,
        slurm: SlurmCommands,
        bank: BankClient,
        *,
        grace_seconds: int,
        now: int,
        cluster: str | None = None,
        cover: bool = False,
        passed_over: Collection[str] = (),
        progress: Progress = no_progress,
    ) -> None:
        self._slurm, self._bank, self._cluster, self._cover, self._progress = (
            slurm,
            bank,
            cluster,
            cover,
            progress,
        )
        self._passed_over = frozenset(passed_over)
        self._reconciler = Reconciler(slurm, bank, grace_seconds=grace_seconds, now=now)

    def run(self, since: int, until: int) -> HistoryResult:
        """Charge what ended between two instants and is not in the books."""
        prices = self._prices()
        opened = self._plan_allocations(since, until, prices, self._bank.projects(), self._bank.allocations())
        for each in opened:
            self._open(each, prices)
        return self._result(opened, self._reconciled(since, until, fix=True))

    def predict(self, since: int, until: int, plan: ImportPlan) -> HistoryResult:
        """What `enter` would come to once the plan is carried out. It does not know whether policy.late_charges is false: then the bank
        refuses the ends of runs that it never held for."""
        projects, allocations = projects_after(self._bank.projects(), plan), self._bank.allocations()
        found = self._plan_allocations(since, until, self._prices(), projects, allocations)
        funds = BankFunds(projects, [*allocations, *map(as_bank_allocation, found)])
        return self._result(found, self._reconciled(since, until, foretold=funds))

    def _prices(self) -> BankCluster:
        return self._bank.cluster(self._slurm.check_cluster(self._cluster))

    def _plan_allocations(
        self,
        since: int,
        until: int,
        prices: BankCluster,
        projects: Sequence[BankProject],
        allocations: Sequence[BankAllocation],
    ) -> list[HistoryAllocation]:
        if not self._cover:
            return []
        jobs, _ = read_jobs(self._slurm, since, until, self._progress)
        return plan_allocations(
            [job for job in jobs if job.has_ended and since <= (job.end or 0) < until],
            projects,
            allocations,
            prices,
        )

    def _reconciled(
        self, since: int, until: int, *, fix: bool = False, foretold: BankFunds | None = None
    ) -> ReconcileResult:
        ask = partial(
            self._reconciler.reconcile,
            cluster=self._cluster,
            again=self._cover,
            progress=self._progress,
        )
        return ask(since, until, fix=fix, funds=foretold)

    def _open(self, cover: HistoryAllocation, prices: BankCluster) -> None:
        body = {
            "project": cover.project,
            "resource": cover.resource,
            "category": CATEGORY,
            "start": iso(cover.start),
            "end": iso(cover.end),
            "amount": cover.amount,
            "comment": f"what ran on {prices.name} before the bank",
        }
        key = f"history:{prices.name}:{cover.project}:{cover.resource}:{cover.start}:{cover.end}"
        self._bank.post("/alloc", body, key)

    def _result(self, opened: Sequence[HistoryAllocation], done: ReconcileResult) -> HistoryResult:
        mended = [each.finding for each in done.outcomes if each.problem is None]
        return HistoryResult(
            allocations=tuple(opened),
            charged=tuple(each for each in mended if each.category not in RELEASED),
            released=tuple(each for each in mended if each.category in RELEASED),
            left=tuple(
                each
                for each in done.outcomes
                if each.problem is not None and not self._is_passed_over(each.finding)
            ),
            known=done.comparison.matched,
            unreadable=done.unreadable,
        )

    def _is_passed_over(self, finding: ReconcileFinding) -> bool:
        """What is in the books alone is of the bank, and never passed over."""
        return finding.job is not None and is_passed_over(finding.job, self._passed_over)
