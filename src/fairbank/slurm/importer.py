"""Importing: Slurm's accounts and users into the bank, through its own doors. What is there already is not entered twice."""

from __future__ import annotations

import grp
from collections.abc import Collection, Mapping, Sequence

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import NotFound
from fairbank.rest.client import Refused
from fairbank.slurm.bank import BankClient, Progress, silent
from fairbank.slurm.commands import SlurmCommands, uid_of
from fairbank.slurm.compare.import_plan import (
    ImportPlan,
    NewMember,
    PlannedProject,
    SlurmMachine,
    SlurmPeople,
    Step,
    plan,
    price_differences,
    settings,
)
from fairbank.slurm.parsers.scontrol import slurm_uid
from fairbank.slurm.parsers.values import Unreadable


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or with `dry_run` would be, entered. `settings` are the lines for the bank's settings; `differences` where those it has
    price otherwise than Slurm, None where it has none of this cluster. `refused` says which steps the bank did not take, and why."""

    cluster: str
    plan: ImportPlan
    settings: str
    differences: tuple[str, ...] | None
    unreadable: tuple[Unreadable, ...] = ()
    refused: tuple[str, ...] = ()


class Importer:
    """One Slurm and one bank. `gids` are numbers of groups that this host does not know, by account; accounts and users that are
    `passed_over` are not entered, and nothing is said of them."""

    def __init__(
        self,
        slurm: SlurmCommands,
        bank: BankClient,
        *,
        gids: Mapping[str, int] | None = None,
        passed_over: Collection[str] = (),
    ) -> None:
        self._slurm, self._bank, self._gids, self._passed_over = (
            slurm,
            bank,
            dict(gids or {}),
            frozenset(passed_over),
        )

    def people(
        self, *, cluster: str | None = None, dry_run: bool = False, progress: Progress = silent
    ) -> ImportResult:
        """Enter accounts as projects and users as their members, and tell what the settings should say."""
        name = self._slurm.check(cluster)
        associations, coordinators = self._slurm.associations(), self._slurm.coordinators()
        places, nodes, qualities = (
            self._slurm.places(),
            self._slurm.nodes(),
            self._slurm.qualities(),
        )
        machine = SlurmMachine(
            cluster=name,
            places=places.rows,
            nodes=nodes.rows,
            qualities=qualities.rows,
            flags=self._slurm.config.get("PriorityFlags", ""),
            slurm_uid=slurm_uid(self._slurm.config),
        )
        known = self._bank.projects(progress, removed=True)
        found = plan(
            SlurmPeople(associations=associations.rows, coordinators=coordinators.rows),
            known,
            self._gid_of,
            uid_of,
            self._passed_over,
        )
        refused = (
            []
            if dry_run
            else self._enter(found.steps, {each.account: each.id for each in known}, progress)
        )
        answers = (associations, coordinators, places, nodes, qualities)
        prices = self._prices(name)
        return ImportResult(
            cluster=name,
            plan=found,
            settings=settings(machine, associations.rows),
            differences=None if prices is None else tuple(price_differences(machine, prices)),
            unreadable=tuple(wrong for answer in answers for wrong in answer.unreadable),
            refused=tuple(refused),
        )

    def _enter(
        self, steps: Sequence[Step], numbers: dict[str, int], progress: Progress
    ) -> list[str]:
        """One after the other. What the bank refuses is returned in words, and keeps out none but its own people."""
        said: list[str] = []
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
                    self._admit(step, numbers[step.account])
                else:
                    said.append(
                        f"user {step.user}: there is no project {step.account} to be a member of"
                    )
            except Refused as no:
                remedy = f"; {no.remedies[0]}" if no.remedies else ""
                said.append(f"account {step.account}: {no.message}{remedy}")
            progress("enter", done, len(steps))
        return said

    def _admit(self, member: NewMember, project: int) -> None:
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
