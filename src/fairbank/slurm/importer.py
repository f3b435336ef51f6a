"""Import of Slurm's accounts, users and history into the bank, through the bank's own routes.

What the bank has already is not entered twice.
"""

from __future__ import annotations

import grp
from collections.abc import Collection, Mapping, Sequence

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import NotFound
from fairbank.core.time import iso
from fairbank.rest.client import Refused
from fairbank.slurm.bank import BankClient, Progress, no_progress
from fairbank.slurm.commands import SlurmCommands, uid_of
from fairbank.slurm.parsers.config import slurm_uid
from fairbank.slurm.parsers.values import UnreadableLine
from fairbank.slurm.reconcile.bank_records import (
    BankAllocation,
    BankCluster,
    BankFunds,
    BankProject,
)
from fairbank.slurm.reconcile.compare import RELEASED, ReconcileFinding
from fairbank.slurm.reconcile.history_allocations import (
    HistoryAllocation,
    as_bank_allocation,
    plan_allocations,
)
from fairbank.slurm.reconcile.import_plan import (
    ImportPlan,
    NewMember,
    PlannedProject,
    SlurmMachine,
    SlurmPeople,
    Step,
    is_passed_over,
    plan_import,
    price_differences,
    projects_after,
    settings,
)
from fairbank.slurm.reconcile.reconciler import Reconciler, ReconcileResult, read_jobs
from fairbank.slurm.reconcile.repair import RepairOutcome

HISTORY_CATEGORY = "history"


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts and users that were entered or, with `dry_run`, would be.

    settings     lines for the bank's settings
    differences  where the bank's settings price unlike Slurm; None if they lack the cluster
    refused      steps that the bank refused, and why
    """

    cluster: str
    plan: ImportPlan
    settings: str
    differences: tuple[str, ...] | None
    unreadable: tuple[UnreadableLine, ...] = ()
    refused: tuple[str, ...] = ()


class Importer:
    """Import of accounts as projects, and of users as their members.

    Args:
        slurm: commands of the cluster.
        bank: client that may create projects.
        gids: group ids by account, for groups that this host does not know.
        passed_over: accounts and users to leave out silently.
    """

    def __init__(
        self,
        slurm: SlurmCommands,
        bank: BankClient,
        *,
        gids: Mapping[str, int] | None = None,
        passed_over: Collection[str] = (),
    ) -> None:
        self._slurm, self._bank = slurm, bank
        self._gids, self._passed_over = dict(gids or {}), frozenset(passed_over)

    def run(
        self, *, cluster: str | None = None, dry_run: bool = False, progress: Progress = no_progress
    ) -> ImportResult:
        """Enter accounts and users, and return the lines for the bank's settings.

        Args:
            cluster: required name of the cluster; None for any.
            dry_run: enter nothing.
            progress: called with the stage, and how much of how much is done.
        """
        name = self._slurm.check_cluster(cluster)
        associations, coordinators = self._slurm.associations(), self._slurm.coordinators()
        partitions, nodes, qos = (self._slurm.partitions(), self._slurm.nodes(), self._slurm.qos())
        machine = SlurmMachine(
            cluster=name,
            partitions=partitions.rows,
            nodes=nodes.rows,
            qos=qos.rows,
            flags=self._slurm.config.get("PriorityFlags", ""),
            slurm_uid=slurm_uid(self._slurm.config),
        )
        known = self._bank.projects(progress, removed=True)
        plan = plan_import(
            SlurmPeople(associations=associations.rows, coordinators=coordinators.rows),
            known,
            self._gid_of,
            uid_of,
            self._passed_over,
        )
        refused: list[str] = []
        if not dry_run:
            refused = self._enter(plan.steps, {each.account: each.id for each in known}, progress)
        prices = self._prices(name)
        return ImportResult(
            cluster=name,
            plan=plan,
            settings=settings(machine, associations.rows),
            differences=None if prices is None else tuple(price_differences(machine, prices)),
            unreadable=tuple(
                line
                for answer in (associations, coordinators, partitions, nodes, qos)
                for line in answer.unreadable
            ),
            refused=tuple(refused),
        )

    def _enter(
        self, steps: Sequence[Step], numbers: dict[str, int], progress: Progress
    ) -> list[str]:
        """Carry out the steps in order and return the refusals.

        A project that is refused leaves out its own members, and no others.
        """
        refusals: list[str] = []
        for done, step in enumerate(steps, 1):
            try:
                if isinstance(step, PlannedProject):
                    parent = numbers.get(step.parent) if step.parent else None
                    body = {
                        "gname": step.group,
                        "gid": step.gid,
                        "account": step.account,
                        "parent": parent,
                    }
                    numbers[step.account] = self._bank.post("/project", body)["id"]
                elif step.account in numbers:
                    self._add_member(step, numbers[step.account])
                else:
                    refusals.append(
                        f"user {step.user}: there is no project {step.account} to be a member of"
                    )
            except Refused as refusal:
                remedy = f"; {refusal.remedies[0]}" if refusal.remedies else ""
                refusals.append(f"account {step.account}: {refusal.message}{remedy}")
            progress("enter", done, len(steps))
        return refusals

    def _add_member(self, member: NewMember, project: int) -> None:
        body = {"role": member.role, "comment": "imported from Slurm"}
        self._bank.put(f"/project/{project}/member/{member.uid}", body)

    def _prices(self, name: str) -> Cluster | None:
        try:
            return self._bank.cluster(name)
        except NotFound:
            return None

    def _gid_of(self, account: str) -> int | None:
        if account in self._gids:
            return self._gids[account]
        try:
            return grp.getgrnam(account).gr_gid
        except (KeyError, ValueError):
            return None


class HistoryResult(msgspec.Struct, frozen=True, kw_only=True):
    """History that was entered or, if predicted, would be.

    allocations  that were created for it
    charged      runs that ended
    released     holds of runs that Slurm does not know
    left         runs that could not be charged or released, and why
    known        number of runs that the ledger had already
    """

    allocations: tuple[HistoryAllocation, ...]
    charged: tuple[ReconcileFinding, ...]
    released: tuple[ReconcileFinding, ...]
    left: tuple[RepairOutcome, ...]
    known: int
    unreadable: tuple[UnreadableLine, ...]

    @property
    def amount(self) -> int:
        """Sum of all charges, in SU-minutes."""
        return sum(finding.amount or 0 for finding in self.charged)


class HistoryImport:
    """Import of finished runs from accounting.

    Args:
        slurm: commands of the cluster.
        bank: client that may report runs of the cluster.
        grace_seconds: leave jobs that ended less than this time ago for the next import.
        now: current time.
        cluster: required name of the cluster; None for any.
        cover: create allocations for runs that no allocation would pay.
        passed_over: accounts and users whose unpaid runs are left out silently. Their other runs
            are charged, since they used the cluster.
        progress: called with the stage, and how much of how much is done.
    """

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
        self._slurm, self._bank, self._cluster = slurm, bank, cluster
        self._cover, self._passed_over, self._progress = cover, frozenset(passed_over), progress
        self._reconciler = Reconciler(slurm, bank, grace_seconds=grace_seconds, now=now)

    def run(self, since: int, until: int) -> HistoryResult:
        """Charge the runs that ended between two instants and are not in the ledger."""
        prices = self._prices()
        allocations = self._plan_allocations(
            since, until, prices, self._bank.projects(), self._bank.allocations()
        )
        for allocation in allocations:
            self._create(allocation, prices)
        return self._result(allocations, self._reconcile(since, until, fix=True))

    def predict(self, since: int, until: int, plan: ImportPlan) -> HistoryResult:
        """Return the result that `run` would have once the plan is carried out.

        The prediction ignores `policy.late_charges = false`, with which the bank refuses the ends
        of runs without a hold.
        """
        projects, existing = projects_after(self._bank.projects(), plan), self._bank.allocations()
        allocations = self._plan_allocations(since, until, self._prices(), projects, existing)
        funds = BankFunds(projects, [*existing, *map(as_bank_allocation, allocations)])
        return self._result(allocations, self._reconcile(since, until, funds=funds))

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
        ended = [job for job in jobs if job.has_ended and since <= (job.end or 0) < until]
        return plan_allocations(ended, projects, allocations, prices)

    def _reconcile(
        self, since: int, until: int, *, fix: bool = False, funds: BankFunds | None = None
    ) -> ReconcileResult:
        return self._reconciler.reconcile(
            since,
            until,
            cluster=self._cluster,
            fix=fix,
            again=self._cover,
            funds=funds,
            progress=self._progress,
        )

    def _create(self, allocation: HistoryAllocation, prices: BankCluster) -> None:
        body = {
            "project": allocation.project,
            "resource": allocation.resource,
            "category": HISTORY_CATEGORY,
            "start": iso(allocation.start),
            "end": iso(allocation.end),
            "amount": allocation.amount,
            "comment": f"runs on {prices.name} before the bank",
        }
        # The same history gets the same key, so that a repeated import creates nothing twice.
        key = (
            f"history:{prices.name}:{allocation.project}:{allocation.resource}:"
            f"{allocation.start}:{allocation.end}"
        )
        self._bank.post("/alloc", body, key)

    def _result(
        self, allocations: Sequence[HistoryAllocation], reconciled: ReconcileResult
    ) -> HistoryResult:
        repaired = [each.finding for each in reconciled.outcomes if each.problem is None]
        return HistoryResult(
            allocations=tuple(allocations),
            charged=tuple(each for each in repaired if each.category not in RELEASED),
            released=tuple(each for each in repaired if each.category in RELEASED),
            left=tuple(
                outcome
                for outcome in reconciled.outcomes
                if outcome.problem is not None and not self._is_passed_over(outcome.finding)
            ),
            known=reconciled.comparison.matched,
            unreadable=reconciled.unreadable,
        )

    def _is_passed_over(self, finding: ReconcileFinding) -> bool:
        """Return True for a job of such an account or user. A run of the bank alone is never."""
        return finding.job is not None and is_passed_over(finding.job, self._passed_over)
