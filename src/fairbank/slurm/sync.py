"""Synchronisation of Slurm with the bank: the policy file, and the accounting database."""

from __future__ import annotations

import os
import pwd
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairbank.core.errors import Forbidden, Malformed
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
            Malformed: Slurm's output cannot be read as a whole. A partial policy would refuse jobs.
        """
        prices = self._bank.cluster(self._slurm.check_cluster(cluster))
        places, nodes = self._slurm.partitions(), self._slurm.nodes()
        if wrong := (*places.unreadable, *nodes.unreadable):
            raise Malformed(
                f"cannot read {wrong[0]}",
                field=wrong[0].field,
                remedy="mend it in slurm.conf; the policy before stays in force",
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
        if wrong := (*associations.unreadable, *usage.unreadable):
            raise Malformed(
                f"cannot read {wrong[0]}",
                field=wrong[0].field,
                remedy="mend it with sacctmgr; nothing was changed",
            )
        booked = self._bank.projects(progress, removed=True)
        projects = [each for each in booked if not each.removed]
        wanted = TargetAccounts(
            cluster=name,
            projects=projects,
            removed=[each.account for each in booked if each.removed],
            associations=associations.rows,
            allocations=self._bank.allocations() if fence else (),
            usage={each.account: AccountUsage(each.seconds, each.running) for each in usage.rows},
            now=self._now,
            fence=fence,
            remove=remove,
        )
        found, notes = plan_changes(wanted, user_of)
        if not dry_run:
            self._apply(found, progress)
        return SyncResult(
            cluster=name,
            files=(),
            projects=len(projects),
            changes=tuple(found),
            skipped=tuple(notes),
        )

    def _apply(self, found: Sequence[SacctmgrChange], progress: Progress) -> None:
        for done, change in enumerate(found, 1):
            self._slurm.change_accounting(change.words)
            progress("sacctmgr", done, len(found))


def _unpriced_note(known: Sequence[object], there: Sequence[object]) -> tuple[str, ...]:
    missing = len(there) - len(known)
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
        before = path.stat() if path.exists() else None
        with tempfile.NamedTemporaryFile(
            "wb", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                file.write(text.encode() if isinstance(text, str) else text)
                file.flush()
                os.fchmod(file.fileno(), before.st_mode & 0o777 if before else 0o644)
                if before and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
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
    except OSError as bad:
        raise Forbidden(
            f"cannot write {path}: {bad.strerror}",
            field=field,
            remedy="make its folder, or run this as its owner; the old file stays",
        ) from bad
