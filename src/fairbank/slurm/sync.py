"""Synchronisation of Slurm with the bank: the policy file, and the accounting database."""

from __future__ import annotations

import os
import pwd
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairbank.core.errors import Forbidden, InvalidInput
from fairbank.slurm.bank import BankClient, Progress, no_progress
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.policy import PolicySources, SiteRules, build_policy, without_balances
from fairbank.slurm.policy_file import render
from fairbank.slurm.reconcile.accounts import (
    AccountUsage,
    SacctmgrChange,
    TargetAccounts,
    plan_changes,
)


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """Files and changes that were made or, with `dry_run`, would be; and what was skipped."""

    cluster: str
    files: tuple[str, ...]
    projects: int
    changes: tuple[SacctmgrChange, ...]
    skipped: tuple[str, ...]


class Sync:
    """Synchronisation of one Slurm with one bank."""

    def __init__(self, slurm: SlurmCommands, bank: BankClient, *, now: int | None = None) -> None:
        self._slurm, self._bank = slurm, bank
        self._now = int(time.time()) if now is None else now

    def policy(
        self,
        site: SiteRules,
        *,
        cluster: str | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> SyncResult:
        """Write the submission policy.

        Args:
            site: rules of the site.
            cluster: required name of the cluster; None for any.
            dry_run: write nothing.
            progress: called with the stage, and how much of how much is done.

        Raises:
            InvalidInput: Slurm's output cannot be read as a whole. A partial policy would refuse
                jobs.
        """
        prices = self._bank.cluster(self._slurm.check_cluster(cluster))
        places, nodes = self._slurm.partitions(), self._slurm.nodes()
        if unreadable := (*places.unreadable, *nodes.unreadable):
            raise InvalidInput(
                f"cannot read {unreadable[0]}",
                field=unreadable[0].field,
                remedy="fix it in slurm.conf; the old policy stays in force",
            )
        projects = self._bank.projects(progress)
        policy = build_policy(
            PolicySources(
                site=site,
                cluster=prices,
                projects=projects,
                allocations=self._bank.allocations(),
                partitions=places.rows,
                nodes=nodes.rows,
                now=self._now,
            )
        )
        texts = {site.policy: render(policy)}
        if site.public_policy is not None:
            texts[site.public_policy] = render(without_balances(policy))
        for path, text in texts.items():
            if not dry_run:
                replace_file(Path(path), text)
        return SyncResult(
            cluster=prices.name,
            files=tuple(texts),
            projects=len(projects),
            changes=(),
            skipped=_unpriced_note(policy.partitions, places.rows),
        )

    def accounts(
        self,
        *,
        cluster: str | None = None,
        fence: bool = False,
        remove: bool = False,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> SyncResult:
        """Give every project an account and every member an association.

        Args:
            cluster: required name of the cluster; None for any.
            fence: also set GrpTRESMins to the balances.
            remove: also delete associations without a membership.
            dry_run: change nothing.
            progress: called with the stage, and how much of how much is done.
        """
        name = self._slurm.check_cluster(cluster)
        associations, usage = (
            self._slurm.associations(),
            self._slurm.account_usage() if fence else ParsedRows(()),
        )
        if unreadable := (*associations.unreadable, *usage.unreadable):
            raise InvalidInput(
                f"cannot read {unreadable[0]}",
                field=unreadable[0].field,
                remedy="fix it with sacctmgr; nothing was changed",
            )
        projects_ = self._bank.projects(progress, removed=True)
        projects = [project for project in projects_ if not project.removed]
        wanted = TargetAccounts(
            cluster=name,
            projects=projects,
            removed=[project.account for project in projects_ if project.removed],
            associations=associations.rows,
            allocations=self._bank.allocations() if fence else (),
            usage={row.account: AccountUsage(row.seconds, row.running) for row in usage.rows},
            now=self._now,
            fence=fence,
            remove=remove,
        )
        changes, notes = plan_changes(wanted, user_of)
        if not dry_run:
            self._apply(changes, progress)
        return SyncResult(
            cluster=name,
            files=(),
            projects=len(projects),
            changes=tuple(changes),
            skipped=tuple(notes),
        )

    def _apply(self, changes: Sequence[SacctmgrChange], progress: Progress) -> None:
        for done, change in enumerate(changes, 1):
            self._slurm.change_accounting(change.words)
            progress("sacctmgr", done, len(changes))


def _unpriced_note(priced: Sequence[object], partitions: Sequence[object]) -> tuple[str, ...]:
    missing = len(partitions) - len(priced)
    return (
        (
            (
                f"{missing} partitions of Slurm's are not in the bank's settings, and so not in the"
                " policy"
            ),
        )
        if missing
        else ()
    )


def user_of(uid: int) -> str | None:
    """Return the name of a user of this host, or None."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def replace_file(path: Path, text: str | bytes, *, field: str = "policy") -> None:
    """Replace a file as a whole, so that a crash leaves the old or the new one. Raises Forbidden.

    Owner and mode of the old file are kept.

    Args:
        path: of the file.
        text: new content.
        field: setting that names the path, for the error.
    """
    try:
        old = path.stat() if path.exists() else None
        with tempfile.NamedTemporaryFile(
            "wb", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                file.write(text.encode() if isinstance(text, str) else text)
                file.flush()
                os.fchmod(file.fileno(), old.st_mode & 0o777 if old else 0o644)
                if old and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fsync(file.fileno())
                Path(file.name).rename(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Forbidden(
            f"cannot write {path}: {error.strerror}",
            field=field,
            remedy="make its folder, or run this as its owner; the old file stays",
        ) from error
