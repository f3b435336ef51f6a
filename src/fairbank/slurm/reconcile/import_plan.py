"""Slurm's accounts and users as projects and members; allocations for time before the bank."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from shlex import quote

import msgspec

from fairbank.bank.allocation import Allocation, AllocationTerms
from fairbank.bank.policy import HISTORY_CATEGORY
from fairbank.bank.project import Project
from fairbank.bank.records import BankCluster, BankFunds, BankProject
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core.ids import UID_MAX
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.slurm.parsers.values import SlurmAssociation
from fairbank.slurm.reconcile.prices import ClusterPrices

ROOT = "root"
"""Slurm's own account above all others; it is no project."""


class PlannedProject(msgspec.Struct, frozen=True, kw_only=True):
    """Project to create; `parent` is an account."""

    account: str
    group: str
    gid: int
    parent: str | None = None


class NewMember(msgspec.Struct, frozen=True, kw_only=True):
    """User to add with a role."""

    account: str
    user: str
    uid: int
    role: str


Step = PlannedProject | NewMember


class ImportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in the order in which to enter them, and notes on what cannot be entered."""

    steps: tuple[Step, ...]
    notes: tuple[str, ...]


class SlurmPeople(msgspec.Struct, frozen=True, kw_only=True):
    """Associations of Slurm, and the coordinators of its accounts."""

    associations: Sequence[SlurmAssociation]
    coordinators: Sequence[SlurmAssociation] = ()


def plan_import(
    centre: SlurmPeople,
    known: Sequence[BankProject],
    gid_of: Callable[[str], int | None],
    uid_of: Callable[[str], int | None],
    passed_over: Collection[str] = (),
) -> ImportPlan:
    """Plan which projects and members the bank lacks, parents before children.

    What the bank has already stays as it is. A removed project is restored only by an
    administrator.

    Args:
        centre: associations and coordinators of Slurm.
        known: projects of the bank, removed ones too.
        gid_of: returns the group id for an account, or None.
        uid_of: returns the uid of a user, or None.
        passed_over: accounts and users to leave out silently (`is_passed_over`).
    """
    by_account = {project.account: project for project in known}
    projects, notes = _projects(centre, known, gid_of, passed_over)
    entered = {project.account for project in known if not project.removed}
    entered.update(project.account for project in projects)
    users = [
        association
        for association in centre.associations
        if association.user
        and association.account in entered
        and not is_passed_over(association, passed_over)
    ]
    members, unknown = _members(users, centre.coordinators, by_account, uid_of)
    return ImportPlan(steps=(*projects, *members), notes=(*notes, *unknown))


def _projects(
    centre: SlurmPeople,
    known: Sequence[BankProject],
    gid_of: Callable[[str], int | None],
    passed_over: Collection[str],
) -> tuple[list[PlannedProject], list[str]]:
    """Return the projects that the bank lacks, and notes on accounts that cannot become one."""
    by_account = {project.account: project for project in known}
    entered = {project.account for project in known if not project.removed}
    names = _TakenNames(known)
    planned: list[PlannedProject] = []
    notes: list[str] = []
    for association in _top_down(centre.associations):
        if is_passed_over(association, passed_over):
            continue
        account = association.account
        if project := by_account.get(account):
            if project.removed:
                notes.append(
                    f"account {account}: its project was removed; bring it back:"
                    f" fairbank project set {project.id} --restore"
                )
            continue
        gid = gid_of(account)
        if gid is None:
            notes.append(
                f"account {account}: this host has no group of this name; name its number:"
                f" --gid {quote(account)}=NUMBER"
            )
            continue
        if (taken := names.taken(account, gid)) is not None:
            notes.append(f"account {account}: {taken}")
            continue
        parent = association.parent if association.parent in entered else None
        planned.append(PlannedProject(account=account, group=account, gid=gid, parent=parent))
        names.by_gid[gid] = f"account {account}"
        entered.add(account)
    return planned, notes


def is_passed_over(record: SlurmAssociation | AccountingJob, names: Collection[str]) -> bool:
    """Return True if the account or the user is among the names to leave out.

    >>> is_passed_over(SlurmAssociation("chem", "alice"), {"alice"})
    True
    >>> is_passed_over(SlurmAssociation("chem"), {"alice"})
    False
    """
    return record.account in names or bool(record.user and record.user in names)


def projects_after(known: Sequence[Project], plan: ImportPlan) -> list[Project]:
    """Return the projects once the plan is carried out, without new members.

    New projects get numbers in their order, which need not be those that the bank will give them.
    """
    projects = list(known)
    numbers = {project.account: project.id for project in known}
    planned = (step for step in plan.steps if isinstance(step, PlannedProject))
    for number, step in enumerate(planned, max(numbers.values(), default=0) + 1):
        numbers[step.account] = number
        parent = numbers.get(step.parent) if step.parent else None
        project = Project(
            id=number, gname=step.group, gid=step.gid, account=step.account, parent=parent
        )
        projects.append(project)
    return projects


class _TakenNames:
    """Group ids and groups in use.

    The bank gives neither twice, and keeps those of removed projects.
    """

    def __init__(self, known: Sequence[Project]) -> None:
        self.by_gid = {project.gid: _whose(project) for project in known}
        self._by_group = {project.gname: project for project in known}

    def taken(self, account: str, gid: int) -> str | None:
        """Return why the account cannot be entered with this gid, and the remedy; None if it
        can.
        """
        if gid > UID_MAX:
            return f"{gid} is not a number of a group; name another: --gid {quote(account)}=NUMBER"
        if (owner := self.by_gid.get(gid)) is not None:
            return f"{owner} has its gid {gid} already; name another: --gid {quote(account)}=NUMBER"
        if (owner_of_group := self._by_group.get(account)) is not None:
            return (
                f"{_whose(owner_of_group)} has its group already; say which account that one has:"
                f" fairbank project set {owner_of_group.id} -A {quote(account)}"
            )
        return None


def _whose(project: Project) -> str:
    return f"project {project.id} ({project.account}{', removed' if project.removed else ''})"


def _top_down(associations: Sequence[SlurmAssociation]) -> Iterator[SlurmAssociation]:
    """Yield the accounts except root, each after its parent."""
    waiting = {
        account.account: account
        for account in associations
        if not account.user and account.account != ROOT
    }
    while waiting:
        ready = [account for account in waiting.values() if account.parent not in waiting]
        # Slurm has no cycle; if there were one, the rest would come in any order.
        for account in ready or list(waiting.values()):
            del waiting[account.account]
            yield account


def _members(
    users: Sequence[SlurmAssociation],
    coordinators: Sequence[SlurmAssociation],
    projects: Mapping[str, BankProject],
    uid_of: Callable[[str], int | None],
) -> tuple[list[NewMember], list[str]]:
    coordinated = {
        (association.account, user)
        for association in coordinators
        for user in association.coordinators
    }
    members: dict[tuple[str, int], NewMember] = {}
    unknown: dict[str, str] = {}
    for association in users:
        account, user = association.account, association.user
        uid = uid_of(user)
        if uid is None:
            unknown[user] = (
                f"user {user}: this host has no such user; their jobs are still charged to the"
                " project"
            )
        elif account not in projects or uid not in projects[account].members:
            role = "coordinator" if (account, user) in coordinated else "member"
            members[account, uid] = NewMember(account=account, user=user, uid=uid, role=role)
    return list(members.values()), list(unknown.values())


class HistoryAllocation(Allocation, frozen=True, kw_only=True):
    """Allocation to create, deposited exactly the price of its `jobs`. Its number is not known."""

    id: int = 0
    account: str
    jobs: int


def plan_allocations(
    jobs: Sequence[AccountingJob],
    projects: Sequence[Project],
    allocations: Sequence[Allocation],
    cluster: BankCluster,
) -> list[HistoryAllocation]:
    """Plan one allocation for each gap between a project's allocations of a resource.

    Only gaps with jobs that no allocation would pay count. Jobs that cost nothing count too: the
    bank accepts no end without an allocation, not even one of a node failure.

    Args:
        jobs: finished jobs.
        projects: the bank's projects, perhaps with those that an import will create.
        allocations: the allocations that exist.
        cluster: the cluster, with its prices.
    """
    funds, prices = BankFunds(projects, allocations), ClusterPrices(cluster)
    gaps: dict[tuple[int, str, int], list[tuple[int, int]]] = defaultdict(list)
    ended = {(job.job_id, job.submitted, job.start): job for job in jobs if job.has_ended}
    for job in ended.values():
        project = funds.by_account.get(job.account)
        price = prices.end_price(job)
        if project is None or price is None:
            continue
        resource = cluster.resource(job.partition, job.qos)
        if job.start is None or not job.elapsed or not job.is_complete:
            continue
        if funds.payers(project.id, resource, job.start):
            continue
        starts = [allocation.terms.start for allocation in funds.own(project.id, resource)]
        gaps[project.id, resource, bisect_right(starts, job.start)].append((job.start, price))
    accounts = {project.id: project.account for project in projects}
    return [
        HistoryAllocation(
            terms=AllocationTerms(
                project=project,
                resource=resource,
                category=HISTORY_CATEGORY,
                start=Instant(min(start for start, _ in charges)),
                end=Instant(max(start for start, _ in charges) + 1),
            ),
            account=accounts[project],
            deposited=SuMinutes(sum(price for _, price in charges)),
            jobs=len(charges),
        )
        for (project, resource, _), charges in sorted(gaps.items())
    ]
