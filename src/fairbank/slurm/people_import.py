"""Import of Slurm's accounts and users into the bank, through its own routes.

What the bank has already is not entered twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import msgspec

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import NotFound
from fairbank.core.progress import StageProgress, no_progress
from fairbank.rest.client import Refused
from fairbank.rest.client.bank_client import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.parsers.config import read_default_memory, slurm_uid
from fairbank.slurm.reconcile.import_plan import (
    ImportPlan,
    PlannedProject,
    SlurmPeople,
    Step,
    plan_import,
)
from fairbank.slurm.reconcile.prices import SlurmMachine, price_differences, price_settings
from fairbank.unix_users import find_gid, find_uid


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


def import_people(
    slurm: SlurmCommands,
    bank: BankClient,
    *,
    cluster: str | None = None,
    gids: Mapping[str, int] = MappingProxyType({}),
    passed_over: Collection[str] = (),
    dry_run: bool = False,
    progress: StageProgress = no_progress,
) -> ImportResult:
    """Enter accounts as projects and users as their members.

    Args:
        slurm: commands of the cluster.
        bank: client that may create projects.
        cluster: required name of the cluster; None for any.
        gids: group ids by account, for groups that this host does not know.
        passed_over: accounts and users to leave out silently.
        dry_run: enter nothing.
        progress: called with the stage, and how much of how much is done.
    """
    name = slurm.check_cluster(cluster)
    machine, people, unreadable = _read_cluster(slurm, name)
    known = bank.projects(progress, removed=True)
    plan = plan_import(
        people,
        known,
        lambda account: gids[account] if account in gids else find_gid(account),
        find_uid,
        passed_over,
    )
    refused: list[str] = []
    if not dry_run:
        numbers = {project.account: project.id for project in known}
        refused = _enter(bank, plan.steps, numbers, progress)
    try:
        differences = tuple(price_differences(machine, bank.cluster(name)))
    except NotFound:
        differences = None
    return ImportResult(
        cluster=name,
        plan=plan,
        settings=price_settings(machine, people.associations),
        differences=differences,
        unreadable=unreadable,
        refused=tuple(refused),
    )


def _read_cluster(
    slurm: SlurmCommands, name: str
) -> tuple[SlurmMachine, SlurmPeople, tuple[UnreadableLine, ...]]:
    """Return the cluster, its accounts and users, and the lines that could not be read."""
    answers = (associations, coordinators, partitions, nodes, qos) = (
        slurm.associations(),
        slurm.coordinators(),
        slurm.partitions(),
        slurm.nodes(),
        slurm.qos(),
    )
    machine = SlurmMachine(
        cluster=name,
        partitions=partitions.rows,
        nodes=nodes.rows,
        qos=qos.rows,
        flags=slurm.config.get("PriorityFlags", ""),
        slurm_uid=slurm_uid(slurm.config),
        default_memory=read_default_memory(slurm.config),
    )
    people = SlurmPeople(associations=associations.rows, coordinators=coordinators.rows)
    unreadable = tuple(line for answer in answers for line in answer.unreadable)
    return machine, people, unreadable


def _enter(
    bank: BankClient, steps: Sequence[Step], numbers: dict[str, int], progress: StageProgress
) -> list[str]:
    """Carry out the steps in order and return the refusals.

    A project that is refused leaves out its own members, and no others.
    """
    refusals: list[str] = []
    for done, step in enumerate(steps, 1):
        try:
            if isinstance(step, PlannedProject):
                body = {
                    "gname": step.group,
                    "gid": step.gid,
                    "account": step.account,
                    "parent": numbers.get(step.parent) if step.parent else None,
                }
                numbers[step.account] = bank.post("/project", body)["id"]
            elif step.account in numbers:
                bank.put(
                    f"/project/{numbers[step.account]}/member/{step.uid}",
                    {"role": step.role, "comment": "imported from Slurm"},
                )
            else:
                refusals.append(
                    f"user {step.user}: there is no project {step.account} to be a member of"
                )
        except Refused as refusal:
            remedy = f"; {refusal.remedies[0]}" if refusal.remedies else ""
            refusals.append(f"account {step.account}: {refusal.message}{remedy}")
        progress("enter", done, len(steps))
    return refusals
