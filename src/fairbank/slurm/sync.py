"""Bringing Slurm into line with the bank: the policy file, replaced as a whole, and the accounting database, call by call."""

from __future__ import annotations

import os
import pwd
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairbank.core.errors import Forbidden, InvalidInput
from fairbank.slurm.bank import BankClient, Progress, silent
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.compare.accounts import AccountUsage, SacctmgrChange, TargetAccounts, changes
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.policy import Sources, policy_of, untold
from fairbank.slurm.policy_file import render
from fairbank.slurm.site import Site


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or with `dry_run` would be, written and changed. `skipped` could not be read or named."""

    cluster: str
    files: tuple[str, ...]
    projects: int
    changes: tuple[SacctmgrChange, ...]
    skipped: tuple[str, ...]


class Sync:
    """One Slurm and one bank."""

    def __init__(self, slurm: SlurmCommands, bank: BankClient, *, now: int | None = None) -> None:
        self._slurm, self._bank = slurm, bank
        self._now = int(time.time()) if now is None else now

    def policy(
        self,
        site: Site,
        *,
        cluster: str | None = None,
        dry_run: bool = False,
        progress: Progress = silent,
    ) -> SyncResult:
        """Write the submission policy. Raises InvalidInput when Slurm's answers cannot all be read: half a policy would refuse jobs."""
        prices = self._bank.cluster(self._slurm.check(cluster))
        places, nodes = self._slurm.places(), self._slurm.nodes()
        if wrong := (*places.unreadable, *nodes.unreadable):
            raise InvalidInput(
                f"cannot read {wrong[0]}",
                field=wrong[0].field,
                remedy="mend it in slurm.conf; the policy before stays in force",
            )
        projects = self._bank.projects(progress)
        policy = policy_of(
            Sources(
                site=site,
                cluster=prices,
                projects=projects,
                allocations=self._bank.allocations(),
                places=places.rows,
                nodes=nodes.rows,
                now=self._now,
            )
        )
        texts = {site.policy: render(policy)}
        if site.public_policy is not None:
            texts[site.public_policy] = render(untold(policy))
        for path, text in texts.items():
            if not dry_run:
                replace_file(Path(path), text)
        return SyncResult(
            cluster=prices.name,
            files=tuple(texts),
            projects=len(projects),
            changes=(),
            skipped=_unpriced(policy.places, places.rows),
        )

    def accounts(
        self,
        *,
        cluster: str | None = None,
        fence: bool = False,
        remove: bool = False,
        dry_run: bool = False,
        progress: Progress = silent,
    ) -> SyncResult:
        """Give every project an account and every member an association; with `fence` GrpTRESMins as well."""
        name = self._slurm.check(cluster)
        associations, usage = (
            self._slurm.associations(),
            self._slurm.usage() if fence else ParsedRows(()),
        )
        if wrong := (*associations.unreadable, *usage.unreadable):
            raise InvalidInput(
                f"cannot read {wrong[0]}",
                field=wrong[0].field,
                remedy="mend it with sacctmgr; nothing was changed",
            )
        booked = self._bank.projects(progress, removed=True)
        projects = [each for each in booked if not each.removed]
        wanted = TargetAccounts(
            cluster=name,
            projects=projects,
            gone=[each.account for each in booked if each.removed],
            associations=associations.rows,
            allocations=self._bank.allocations() if fence else (),
            usage={each.account: AccountUsage(each.seconds, each.running) for each in usage.rows},
            now=self._now,
            fence=fence,
            remove=remove,
        )
        found, notes = changes(wanted, user_of)
        if not dry_run:
            self._carry_out(found, progress)
        return SyncResult(
            cluster=name,
            files=(),
            projects=len(projects),
            changes=tuple(found),
            skipped=tuple(notes),
        )

    def _carry_out(self, found: Sequence[SacctmgrChange], progress: Progress) -> None:
        for done, change in enumerate(found, 1):
            self._slurm.manage(change.words)
            progress("sacctmgr", done, len(found))


def _unpriced(known: Sequence[object], there: Sequence[object]) -> tuple[str, ...]:
    missing = len(there) - len(known)
    return (
        (
            f"{missing} partitions of Slurm's are not in the bank's settings, and so not in the policy",
        )
        if missing
        else ()
    )


def user_of(uid: int) -> str | None:
    """The name of a user of this host, or None."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def replace_file(path: Path, text: str | bytes, *, field: str = "policy") -> None:
    """Put a whole new file in place of the old one, safe against a crash at any moment; owner and rights stay. Raises Forbidden."""
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
