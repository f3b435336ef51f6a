"""Slurm's accounts and users as projects and members, its partitions and QOS as bank settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.ids import UID_MAX
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.slurm.parsers.priority import read_billing_rule
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
    booked = {each.account: each for each in known}
    entered = {each.account for each in known if not each.removed}
    names = _TakenNames(known)
    steps: list[Step] = []
    notes: list[str] = []
    for each in _top_down(centre.associations):
        if is_passed_over(each, passed_over):
            continue
        if there := booked.get(each.account):
            if there.removed:
                notes.append(
                    f"account {each.account}: its project was removed; bring it back: fairbank"
                    f" project set {there.id} --restore"
                )
            continue
        gid = gid_of(each.account)
        if gid is None:
            notes.append(
                f"account {each.account}: this host has no group of this name; name its number:"
                f" --gid {each.account}=NUMBER"
            )
            continue
        if (taken := names.taken(each.account, gid)) is not None:
            notes.append(f"account {each.account}: {taken}")
            continue
        parent = each.parent if each.parent in entered else None
        steps.append(
            PlannedProject(account=each.account, group=each.account, gid=gid, parent=parent)
        )
        names.by_gid[gid] = f"account {each.account}"
        entered.add(each.account)
    people = [
        each
        for each in centre.associations
        if each.user and each.account in entered and not is_passed_over(each, passed_over)
    ]
    members, strangers = _members(people, centre.coordinators, booked, uid_of)
    return ImportPlan(steps=(*steps, *members), notes=(*notes, *strangers))


def is_passed_over(whose: SlurmAssociation | AccountingJob, names: Collection[str]) -> bool:
    """Return True if the account or the user is among the names to leave out.

    >>> is_passed_over(SlurmAssociation("chem", "alice"), {"alice"})
    True
    >>> is_passed_over(SlurmAssociation("chem"), {"alice"})
    False
    """
    return whose.account in names or bool(whose.user and whose.user in names)


def projects_after(known: Sequence[BankProject], plan: ImportPlan) -> list[BankProject]:
    """Return the projects once the plan is carried out, without new members.

    New projects get numbers in their order, which need not be those that the bank will give them.
    """
    projects = list(known)
    numbers = {each.account: each.id for each in known}
    fresh = count(max(numbers.values(), default=0) + 1)
    for number, each in zip(
        fresh, (step for step in plan.steps if isinstance(step, PlannedProject)), strict=False
    ):
        numbers[each.account] = number
        parent = numbers.get(each.parent) if each.parent else None
        projects.append(
            BankProject(
                id=number, group=each.group, gid=each.gid, account=each.account, parent=parent
            )
        )
    return projects


class _TakenNames:
    """Group ids and groups in use. The bank gives neither twice, and keeps those of removed
    projects.
    """

    def __init__(self, known: Sequence[BankProject]) -> None:
        self.by_gid = {each.gid: _whose(each) for each in known}
        self._by_group = {each.group: each for each in known}

    def taken(self, account: str, gid: int) -> str | None:
        """Return why the account cannot be entered with this gid, and the remedy; None if it
        can.
        """
        if gid > UID_MAX:
            return f"{gid} is no number of a group; name another: --gid {account}=NUMBER"
        if (whose := self.by_gid.get(gid)) is not None:
            return f"{whose} has its gid {gid} already; name another: --gid {account}=NUMBER"
        if (other := self._by_group.get(account)) is not None:
            return (
                f"{_whose(other)} has its group already; say which account that one has: fairbank"
                f" project set {other.id} -A {account}"
            )
        return None


def _whose(project: BankProject) -> str:
    return f"project {project.id} ({project.account}{', removed' if project.removed else ''})"


def _top_down(associations: Sequence[SlurmAssociation]) -> Iterator[SlurmAssociation]:
    """Yield the accounts except root, each after its parent."""
    waiting = {
        each.account: each for each in associations if not each.user and each.account != ROOT
    }
    while waiting:
        ready = [each for each in waiting.values() if each.parent not in waiting]
        for each in ready or list(
            waiting.values()
        ):  # a circle cannot be in Slurm; should it be, nothing hangs
            del waiting[each.account]
            yield each


def _members(
    people: Sequence[SlurmAssociation],
    coordinators: Sequence[SlurmAssociation],
    booked: Mapping[str, BankProject],
    uid_of: Callable[[str], int | None],
) -> tuple[list[NewMember], list[str]]:
    looked_after = {(each.account, user) for each in coordinators for user in each.coordinators}
    found: dict[tuple[str, int], NewMember] = {}
    strangers: dict[str, str] = {}
    for each in people:
        uid = uid_of(each.user)
        if uid is None:
            strangers[each.user] = (
                f"user {each.user}: this host knows nobody of this name; their jobs are still"
                " charged to the project"
            )
        elif each.account not in booked or uid not in booked[each.account].members:
            role = "coordinator" if (each.account, each.user) in looked_after else "member"
            found[each.account, uid] = NewMember(
                account=each.account, user=each.user, uid=uid, role=role
            )
    return list(found.values()), list(strangers.values())


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

    def resource_of(self, place: SlurmPartition) -> str:
        """Return `gpu` if the partition's nodes have GPUs or its weights price them, else `cpu`."""
        priced = (
            any(name.startswith("gres/gpu") for name in parse_weights(place.weights))
            if place.weights
            else False
        )
        return (
            "gpu"
            if priced or any(node.gpus for node in self.nodes if place.name in node.partitions)
            else "cpu"
        )

    @property
    def factors(self) -> Mapping[str, str]:
        """Price factor of each QOS that differs from 1."""
        return {each.name: each.factor for each in self.qos if Fraction(each.factor) != 1}


def settings(machine: SlurmMachine, shares: Sequence[SlurmAssociation]) -> str:
    """Return the lines for the bank's settings that price this cluster as Slurm bills it.

    Shares are listed as comments, since they stay in Slurm.
    """
    here = f"clusters.{machine.cluster}"
    agents = "" if machine.slurm_uid is None else str(machine.slurm_uid)
    about = "the uids that report runs: Slurm's user" + (
        "" if agents else ", whose number is to be put here: id -u slurm"
    )
    lines = [
        f"[{here}]",
        f'adding = "{machine.billing_rule.value}"',
        f"agents = [{agents}]    # {about}",
        "",
    ]
    for place in machine.partitions:
        weights = [f'weights = "{place.weights}"'] if place.weights else []
        lines += [
            f'[{here}.partitions."{place.name}"]',
            f'resource = "{machine.resource_of(place)}"',
            *weights,
            "",
        ]
    if machine.factors:
        lines += [
            f"[{here}.qos_factors]",
            *(f'"{name}" = "{factor}"' for name, factor in machine.factors.items()),
            "",
        ]
    told = [
        f"#   {each.account}{f'/{each.user}' if each.user else ''}  {each.shares}"
        for each in shares
        if each.shares
    ]
    lines += ["# Shares stay in Slurm, which ranks its queue by them:", *told] if told else []
    return "\n".join(lines) + "\n"


def price_differences(machine: SlurmMachine, known: Cluster) -> list[str]:
    """Describe each difference between the bank's prices and Slurm's billing."""
    said = []
    for place in machine.partitions:
        partition = known.partitions.get(place.name)
        if partition is None:
            said.append(f"partition {place.name}: the bank's settings do not have it")
            continue
        weights = parse_weights(place.weights) if place.weights else None
        if (partition.weights and dict(partition.weights)) != weights:
            said.append(
                f"partition {place.name}: Slurm's weights are {place.weights or 'not set'}; the"
                " bank's settings have others"
            )
        if partition.billing_rule is not machine.billing_rule:
            said.append(
                f"partition {place.name}: Slurm adds TRES by {machine.billing_rule.value}, the bank"
                f" by {partition.billing_rule.value}"
            )
    dearer = [each for each in machine.qos if known.qos_factor(each.name) != Fraction(each.factor)]
    factors = [
        f"QOS {each.name}: Slurm's UsageFactor is {each.factor}, the bank's factor"
        f" {known.qos_factor(each.name)}"
        for each in dearer
    ]
    return said + factors
