"""Values of the bank as its clients read them, each with what they need beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from fairbank.bank.allocation import Allocation
from fairbank.bank.project import Project, project_chain
from fairbank.bank.run import RESOLVED, RunRecord
from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput


class BankRun(RunRecord, frozen=True, kw_only=True, gc=False):
    """Run with the account of its project, which may be removed: accounting has no project ids."""

    account: str

    @property
    def job_id(self) -> int:
        """Id of the job, as AccountingJob has it."""
        return self.reported.run.job_id

    @property
    def submitted(self) -> int:
        """Submission of the job, as AccountingJob has it."""
        return self.reported.run.submitted

    @property
    def is_open(self) -> bool:
        """True while an end may still be entered."""
        return self.state not in RESOLVED


class BankProject(Project, frozen=True, kw_only=True):
    """Project with the uids of its members.

    `members` are those by rows of the bank, `group_members` those by the Unix group alone, if the
    bank counts it.
    """

    members: Collection[int] = frozenset()
    group_members: Collection[int] = frozenset()

    @property
    def all_members(self) -> frozenset[int]:
        """Members of both kinds: a job of theirs need not have the project's group."""
        return frozenset({*self.members, *self.group_members})


class BankCluster(Cluster, frozen=True, kw_only=True):
    """Cluster as the bank prices it. Runs that end in one of `free_states` cost nothing."""

    free_states: frozenset[str]


class PlannedCharge(NamedTuple):
    """Charge of a run that started at a time, in SU-minutes beyond the run's own hold."""

    account: str
    resource: str
    start: int
    amount: int


class BankFunds:
    """Projects with their chains of parents, and the allocations of each by resource."""

    def __init__(self, projects: Sequence[Project], allocations: Sequence[Allocation] = ()) -> None:
        parents = {record.id: record.parent for record in projects}
        self.chains = {record.id: project_chain(record.id, parents) for record in projects}
        """Each project with the parents whose shared credit it may use, nearest first."""
        self.by_account = {record.account: record for record in projects}
        self.resources = sorted({record.terms.resource for record in allocations})
        self._of: dict[tuple[int, str], list[Allocation]] = defaultdict(list)
        for record in sorted(allocations, key=lambda allocation: allocation.terms.start):
            self._of[record.terms.project, record.terms.resource].append(record)

    def own(self, project: int, resource: str) -> list[Allocation]:
        """Return a project's own allocations of a resource, the earliest first."""
        return self._of.get((project, resource), [])

    def payers(self, project: int, resource: str, at: int) -> list[Allocation]:
        """Return the allocations that may pay for a run, in the order in which they do.

        Args:
            resource: the resource that the run is billed on.
            at: start of the run.
        """
        return [
            allocation
            for lender in self.chains[project]
            for allocation in self.own(lender, resource)
            if allocation.may_pay(project, at)
        ]

    def beyond_credit(self, charges: Iterable[PlannedCharge]) -> list[int]:
        """Return how much of each charge no credit would cover, in their order.

        As at the bank, one allocation pays for a run: the first with enough, else the first.
        """
        left = {id(record): record.remaining for records in self._of.values() for record in records}
        beyond = []
        for charge in charges:
            project = self.by_account.get(charge.account)  # none if it was removed since a hold
            payers = self.payers(project.id, charge.resource, charge.start) if project else []
            keys = [id(payer) for payer in payers]
            able = [key for key in keys if left[key] >= charge.amount]
            covered = 0
            if keys:
                key = (able or keys)[0]
                covered = min(charge.amount, max(0, left[key]))
                left[key] -= covered
            beyond.append(charge.amount - covered)
        return beyond

    def missing_payer(self, account: str, resource: str, at: int) -> InvalidInput | None:
        """Return why no allocation may pay for a run; None if one may (arguments: `payers`)."""
        project = self.by_account.get(account)
        if project is None:
            return InvalidInput(
                f"no active project has the account {account[:64]!r}",
                field="account",
                remedy="list them, also those that were removed: fairbank project list -a",
            )
        if not self.payers(project.id, resource, at):
            return InvalidInput(
                f"there was no allocation of {resource} that could pay",
                field="resource",
                remedy="fairbank alloc create, for the time when it ran",
            )
        return None
