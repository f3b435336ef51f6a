"""Slurm's accounts and users as projects and members, its partitions and QOS as bank settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.ids import UID_MAX
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.slurm.parsers.config import read_billing_rule
from fairbank.slurm.parsers.values import (
    AccountingJob,
    SlurmAssociation,
    SlurmNode,
    SlurmPartition,
    SlurmQos,
)
from fairbank.slurm.reconcile.bank_records import BankProject

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
    entered = {project.account for project in known if not project.removed}
    names = _TakenNames(known)
    steps: list[Step] = []
    notes: list[str] = []
    for association in _top_down(centre.associations):
        if is_passed_over(association, passed_over):
            continue
        if project := by_account.get(association.account):
            if project.removed:
                notes.append(
                    f"account {association.account}: its project was removed; bring it back:"
                    f" fairbank project set {project.id} --restore"
                )
            continue
        gid = gid_of(association.account)
        if gid is None:
            notes.append(
                f"account {association.account}: this host has no group of this name; name its"
                f" number: --gid {association.account}=NUMBER"
            )
            continue
        if (taken := names.taken(association.account, gid)) is not None:
            notes.append(f"account {association.account}: {taken}")
            continue
        parent = association.parent if association.parent in entered else None
        steps.append(
            PlannedProject(
                account=association.account, group=association.account, gid=gid, parent=parent
            )
        )
        names.by_gid[gid] = f"account {association.account}"
        entered.add(association.account)
    users = [
        association
        for association in centre.associations
        if association.user
        and association.account in entered
        and not is_passed_over(association, passed_over)
    ]
    members, unknown = _members(users, centre.coordinators, by_account, uid_of)
    return ImportPlan(steps=(*steps, *members), notes=(*notes, *unknown))


def is_passed_over(record: SlurmAssociation | AccountingJob, names: Collection[str]) -> bool:
    """Return True if the account or the user is among the names to leave out.

    >>> is_passed_over(SlurmAssociation("chem", "alice"), {"alice"})
    True
    >>> is_passed_over(SlurmAssociation("chem"), {"alice"})
    False
    """
    return record.account in names or bool(record.user and record.user in names)


def projects_after(known: Sequence[BankProject], plan: ImportPlan) -> list[BankProject]:
    """Return the projects once the plan is carried out, without new members.

    New projects get numbers in their order, which need not be those that the bank will give them.
    """
    projects = list(known)
    numbers = {project.account: project.id for project in known}
    new_numbers = count(max(numbers.values(), default=0) + 1)
    for number, project in zip(
        new_numbers, (step for step in plan.steps if isinstance(step, PlannedProject)), strict=False
    ):
        numbers[project.account] = number
        parent = numbers.get(project.parent) if project.parent else None
        projects.append(
            BankProject(
                id=number,
                group=project.group,
                gid=project.gid,
                account=project.account,
                parent=parent,
            )
        )
    return projects


class _TakenNames:
    """Group ids and groups in use.

    The bank gives neither twice, and keeps those of removed projects.
    """

    def __init__(self, known: Sequence[BankProject]) -> None:
        self.by_gid = {project.gid: _whose(project) for project in known}
        self._by_group = {project.group: project for project in known}

    def taken(self, account: str, gid: int) -> str | None:
        """Return why the account cannot be entered with this gid, and the remedy; None if it
        can.
        """
        if gid > UID_MAX:
            return f"{gid} is no number of a group; name another: --gid {account}=NUMBER"
        if (owner := self.by_gid.get(gid)) is not None:
            return f"{owner} has its gid {gid} already; name another: --gid {account}=NUMBER"
        if (owner_of_group := self._by_group.get(account)) is not None:
            return (
                f"{_whose(owner_of_group)} has its group already; say which account that one has:"
                f" fairbank project set {owner_of_group.id} -A {account}"
            )
        return None


def _whose(project: BankProject) -> str:
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
        uid = uid_of(association.user)
        if uid is None:
            unknown[association.user] = (
                f"user {association.user}: this host has no such user; their jobs are"
                " still charged to the project"
            )
        elif (
            association.account not in projects or uid not in projects[association.account].members
        ):
            role = (
                "coordinator"
                if (association.account, association.user) in coordinated
                else "member"
            )
            members[association.account, uid] = NewMember(
                account=association.account, user=association.user, uid=uid, role=role
            )
    return list(members.values()), list(unknown.values())


class SlurmMachine(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions, nodes and QOS as slurmctld has them."""

    cluster: str
    partitions: Sequence[SlurmPartition]
    nodes: Sequence[SlurmNode] = ()
    qos: Sequence[SlurmQos] = ()
    flags: str = ""
    slurm_uid: int | None = None
    """Uid of SlurmUser, as which the agent reports runs. None if Slurm does not show it."""

    @property
    def billing_rule(self) -> BillingRule:
        """Rule by which PriorityFlags adds weighted TRES."""
        return read_billing_rule(self.flags)

    def resource_of(self, partition: SlurmPartition) -> str:
        """Return `gpu` if the partition's nodes have GPUs or its weights price them, else `cpu`."""
        priced = (
            any(name.startswith("gres/gpu") for name in parse_weights(partition.weights))
            if partition.weights
            else False
        )
        return (
            "gpu"
            if priced or any(node.gpus for node in self.nodes if partition.name in node.partitions)
            else "cpu"
        )

    @property
    def factors(self) -> Mapping[str, str]:
        """Price factor of each QOS that differs from 1."""
        return {qos.name: qos.factor for qos in self.qos if Fraction(qos.factor) != 1}


def settings(machine: SlurmMachine, shares: Sequence[SlurmAssociation]) -> str:
    """Return the lines for the bank's settings that price this cluster as Slurm bills it.

    Shares are listed as comments, since they stay in Slurm.
    """
    table = f"clusters.{machine.cluster}"
    agents = "" if machine.slurm_uid is None else str(machine.slurm_uid)
    comment = "the uids that report runs: Slurm's user" + (
        "" if agents else ", whose number is to be put here: id -u slurm"
    )
    lines = [
        f"[{table}]",
        f'adding = "{machine.billing_rule.value}"',
        f"agents = [{agents}]    # {comment}",
        "",
    ]
    for partition in machine.partitions:
        weights = [f'weights = "{partition.weights}"'] if partition.weights else []
        lines += [
            f'[{table}.partitions."{partition.name}"]',
            f'resource = "{machine.resource_of(partition)}"',
            *weights,
            "",
        ]
    if machine.factors:
        lines += [
            f"[{table}.qos_factors]",
            *(f'"{name}" = "{factor}"' for name, factor in machine.factors.items()),
            "",
        ]
    share_lines = [
        f"#   {association.account}{f'/{association.user}' if association.user else ''} "
        f" {association.shares}"
        for association in shares
        if association.shares
    ]
    lines += (
        ["# Shares stay in Slurm, which ranks its queue by them:", *share_lines]
        if share_lines
        else []
    )
    return "\n".join(lines) + "\n"


def price_differences(machine: SlurmMachine, known: Cluster) -> list[str]:
    """Describe each difference between the bank's prices and Slurm's billing."""
    differences = []
    for partition in machine.partitions:
        bank_partition = known.partitions.get(partition.name)
        if bank_partition is None:
            differences.append(f"partition {partition.name}: the bank's settings do not have it")
            continue
        weights = parse_weights(partition.weights) if partition.weights else None
        if (bank_partition.weights and dict(bank_partition.weights)) != weights:
            differences.append(
                f"partition {partition.name}: Slurm's weights are {partition.weights or 'not set'};"
                " the bank's settings have others"
            )
        if bank_partition.billing_rule is not machine.billing_rule:
            differences.append(
                f"partition {partition.name}: Slurm adds TRES by {machine.billing_rule.value}, the"
                f" bank by {bank_partition.billing_rule.value}"
            )
    different_qos = [
        qos for qos in machine.qos if known.qos_factor(qos.name) != Fraction(qos.factor)
    ]
    factors = [
        f"QOS {qos.name}: Slurm's UsageFactor is {qos.factor}, the bank's factor"
        f" {known.qos_factor(qos.name)}"
        for qos in different_qos
    ]
    return differences + factors
