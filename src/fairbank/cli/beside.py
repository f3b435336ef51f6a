"""What the commands on Slurm's hosts are made of: Slurm's answers beside the bank's. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from fairbank.cli.reconciled import Finding, Job, Named, Outcome, Reconciled

    Progress = Callable[[str, int, int], None]
    """Called with what is being done, how much is done, and of how much."""


class Watched(Protocol):
    """What would have become of one account's jobs on one resource, in SU-minutes."""

    @property
    def account(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def jobs(self) -> int: ...
    @property
    def charged(self) -> int: ...
    @property
    def held(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def refused_asked(self) -> int: ...
    @property
    def left(self) -> int: ...


class RefusedJob(Protocol):
    """A job that would have been refused."""

    @property
    def job(self) -> Job: ...
    @property
    def why(self) -> Named: ...
    @property
    def asked(self) -> int: ...
    @property
    def available(self) -> int: ...


class Shadow(Protocol):
    @property
    def rows(self) -> Sequence[Watched]: ...
    @property
    def refused(self) -> Sequence[RefusedJob]: ...


class Plan(Protocol):
    """Steps are projects (`gid`) and members (`uid`); notes say what cannot be entered."""

    @property
    def steps(self) -> Sequence[object]: ...
    @property
    def notes(self) -> Sequence[str]: ...


class Cover(Protocol):
    """An allocation for what ran in the past; `amount` in SU-minutes."""

    @property
    def account(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def amount(self) -> int: ...
    @property
    def jobs(self) -> int: ...


class Past(Protocol):
    """What was, or would be, opened, charged (`amount` in SU-minutes) and given back; `left` with why; `known` were there already."""

    @property
    def covers(self) -> Sequence[Cover]: ...
    @property
    def charged(self) -> Sequence[Finding]: ...
    @property
    def amount(self) -> int: ...
    @property
    def given_back(self) -> Sequence[Finding]: ...
    @property
    def left(self) -> Sequence[Outcome]: ...
    @property
    def known(self) -> int: ...
    @property
    def unreadable(self) -> Sequence[object]: ...


class Imported(Protocol):
    """`differences`: where the bank's settings price otherwise than Slurm; None where they lack this cluster. `refused`: what the bank
    did not take, in words."""

    @property
    def cluster(self) -> str: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def settings(self) -> str: ...
    @property
    def differences(self) -> Sequence[str] | None: ...
    @property
    def unreadable(self) -> Sequence[object]: ...
    @property
    def refused(self) -> Sequence[str]: ...


class Change(Protocol):
    """One call of sacctmgr, and what it is for."""

    @property
    def words(self) -> Sequence[str]: ...
    @property
    def why(self) -> str: ...


class Synced(Protocol):
    @property
    def cluster(self) -> str: ...
    @property
    def files(self) -> Sequence[str]: ...
    @property
    def projects(self) -> int: ...
    @property
    def changes(self) -> Sequence[Change]: ...
    @property
    def skipped(self) -> Sequence[str]: ...


class BesideSlurm(Protocol):
    """One Slurm and one bank. All of these raise FairbankError: Unavailable when either does not answer, and then it is safe to ask again."""

    def reconcile(
        self,
        since: int,
        until: int,
        *,
        grace_seconds: int,
        fix: bool,
        again: bool,
        progress: Progress | None = None,
    ) -> Reconciled: ...

    def shadow(
        self, since: int, until: int, *, progress: Progress | None = None
    ) -> tuple[Shadow, Sequence[str]]: ...

    def import_people(
        self,
        gids: Mapping[str, int],
        *,
        passed_over: Collection[str] = (),
        dry_run: bool,
        progress: Progress | None = None,
    ) -> Imported: ...

    def import_history(
        self,
        since: int,
        until: int,
        *,
        grace_seconds: int,
        cover: bool,
        passed_over: Collection[str] = (),
        after: Any = None,
        progress: Progress | None = None,
    ) -> Past:
        """With `after`, the plan of people that comes first, it only tells what would be. `left` has no runs of who is passed over."""
        ...

    def keep_settings(self, path: str, text: str) -> None: ...

    def sync_policy(
        self, site: str | None, *, dry_run: bool, progress: Progress | None = None
    ) -> Synced: ...

    def sync_accounts(
        self, *, fence: bool, remove: bool, dry_run: bool, progress: Progress | None = None
    ) -> Synced: ...

    def prolog(self, environ: Mapping[str, str], *, open_: bool) -> str | None:
        """Ask the bank for the job that Slurm's environment names. None when it runs; else what its owner is told."""
        ...
