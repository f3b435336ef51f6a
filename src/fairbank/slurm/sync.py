"""Synchronisation of Slurm with the bank: the policy file, and the accounting database."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairbank.core.errors import Forbidden, InvalidInput
from fairbank.core.progress import StageProgress, no_progress
from fairbank.core.time import iso
from fairbank.rest.client.bank_client import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.parsers.values import ParsedRows, SlurmPartition
from fairbank.slurm.policy import SiteRules, build_policy
from fairbank.slurm.policy_file import SubmissionPolicy, render
from fairbank.slurm.reconcile.accounts import (
    AccountUsage,
    SacctmgrChange,
    TargetAccounts,
    plan_changes,
)
from fairbank.unix_users import find_user, groups_of


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """Files and changes that were made or, with `dry_run`, would be; and what was skipped."""

    cluster: str
    files: tuple[str, ...] = ()
    projects: int
    changes: tuple[SacctmgrChange, ...] = ()
    skipped: tuple[str, ...]


def sync_policy(
    slurm: SlurmCommands,
    bank: BankClient,
    site: SiteRules,
    *,
    cluster: str | None = None,
    dry_run: bool = False,
    progress: StageProgress = no_progress,
) -> SyncResult:
    """Write the submission policy.

    Args:
        slurm: commands of the cluster.
        bank: client that may see all projects.
        site: rules of the site.
        cluster: required name of the cluster; None for any.
        dry_run: write nothing.
        progress: called with the stage, and how much of how much is done.

    Raises:
        InvalidInput: Slurm's output cannot be read as a whole. A partial policy would refuse
            jobs.
    """
    prices = bank.cluster(slurm.check_cluster(cluster))
    partitions, nodes = slurm.partitions(), slurm.nodes()
    _require_all((partitions, nodes), "fix it in slurm.conf; the old policy stays in force")
    projects = bank.projects(progress)
    policy = build_policy(
        site,
        prices,
        projects,
        bank.allocations(),
        partitions=partitions.rows,
        nodes=nodes.rows,
        now=int(time.time()),
    )
    texts = {site.policy: render(policy)}
    if site.public_policy is not None:
        # Users must not see balances on hosts that they share.
        texts[site.public_policy] = render(msgspec.structs.replace(policy, balances=None))
    for path, text in texts.items():
        if not dry_run:
            replace_file(Path(path), text)
    skipped = [*_missing_partitions(partitions.rows, policy), *_missing_reservations(slurm, policy)]
    return SyncResult(
        cluster=prices.name, files=tuple(texts), projects=len(projects), skipped=tuple(skipped)
    )


def _missing_partitions(
    partitions: Sequence[SlurmPartition], policy: SubmissionPolicy
) -> Iterator[str]:
    """Yield a note if partitions of Slurm are not in the policy."""
    if missing := len(partitions) - len(policy.partitions):
        yield (
            f"{missing} partitions of Slurm's are not in the bank's settings, and so not in the"
            " policy"
        )


def _missing_reservations(slurm: SlurmCommands, policy: SubmissionPolicy) -> Iterator[str]:
    """Yield a note for each short-term allocation whose reservation Slurm does not have.

    The bank cannot know reservations, and a planned one may be created later.
    """
    short_terms = [term for term in policy.short_terms if term.reservation is not None]
    known = slurm.reservation_names() if short_terms else ()
    for term in short_terms:
        if term.reservation not in known:
            yield (
                f"Slurm has no reservation {term.reservation}, to which an allocation of"
                f" {term.account} sends jobs from {iso(term.start)} to {iso(term.end)}"
            )


def sync_accounts(
    slurm: SlurmCommands,
    bank: BankClient,
    *,
    cluster: str | None = None,
    fence: bool = False,
    remove: bool = False,
    dry_run: bool = False,
    progress: StageProgress = no_progress,
) -> SyncResult:
    """Give every project an account in Slurm and every member an association.

    Args:
        slurm: commands of a user who may change Slurm's accounting.
        bank: client that may see all projects.
        cluster: required name of the cluster; None for any.
        fence: also set GrpTRESMins to the balances.
        remove: also delete associations without a membership.
        dry_run: change nothing.
        progress: called with the stage, and how much of how much is done.
    """
    name = slurm.check_cluster(cluster)
    associations = slurm.associations()
    usage = slurm.account_usage() if fence else ParsedRows(())
    _require_all((associations, usage), "fix it with sacctmgr; nothing was changed")
    all_projects = bank.projects(progress, removed=True)
    projects = [project for project in all_projects if not project.removed]
    wanted = TargetAccounts(
        cluster=name,
        projects=projects,
        removed=[project.account for project in all_projects if project.removed],
        associations=associations.rows,
        allocations=bank.allocations() if fence else (),
        usage={row.account: AccountUsage(row.seconds, row.running) for row in usage.rows},
        now=int(time.time()),
        fence=fence,
        remove=remove,
    )
    changes, notes = plan_changes(wanted, find_user, groups_of)
    for done, change in enumerate(() if dry_run else changes, 1):
        slurm.change_accounting(change.words)
        progress("sacctmgr", done, len(changes))
    return SyncResult(
        cluster=name, projects=len(projects), changes=tuple(changes), skipped=tuple(notes)
    )


def _require_all(answers: Iterable[ParsedRows[Any]], remedy: str) -> None:
    """Raise InvalidInput for a line that cannot be read."""
    for answer in answers:
        for line in answer.unreadable:
            raise InvalidInput(f"cannot read {line}", field=line.field, remedy=remedy)


def replace_file(path: Path, text: str | bytes, *, field: str = "policy") -> None:
    """Replace a file as a whole, so that a crash leaves the old or the new one. Raises Forbidden.

    Owner and mode of the old file are kept.

    Args:
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
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise Forbidden(
            f"cannot write {path}: {error.strerror}",
            field=field,
            remedy="make its directory, or run this as its owner; the old file stays",
        ) from error
