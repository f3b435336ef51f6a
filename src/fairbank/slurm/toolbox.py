"""One Slurm and one bank, and what commands do with the two."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from fairbank.rest.client import Client
from fairbank.slurm.bank import BankClient, Progress, no_progress
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.compare.import_plan import ImportPlan
from fairbank.slurm.compare.shadow import ShadowResult, ShadowInput, simulate
from fairbank.slurm.history import HistoryImport, HistoryResult
from fairbank.slurm.importer import Importer, ImportResult
from fairbank.slurm.prolog import Prolog
from fairbank.slurm.reconciler import Reconciler, ReconcileResult, read_jobs
from fairbank.slurm.site import read_site_rules
from fairbank.slurm.sync import Sync, SyncResult, replace_file


class SlurmToolbox:
    """The Slurm that PATH finds and the bank that the client asks. `cluster` is what the Slurm must be called; None: whatever it is."""

    def __init__(
        self, client: Client, cluster: str | None, *, now: Callable[[], float] = time.time
    ) -> None:
        self._client, self._bank, self._slurm, self._cluster, self._now = (
            client,
            BankClient(client),
            SlurmCommands(),
            cluster,
            now,
        )

    def reconcile(
        self,
        since: int,
        until: int,
        *,
        grace_seconds: int,
        fix: bool,
        again: bool,
        progress: Progress | None = None,
    ) -> ReconcileResult:
        """Compare every run that ended between two instants with accounting; with `fix` mend what can be mended."""
        self._bank.require_full_view()
        reconciler = Reconciler(
            self._slurm, self._bank, grace_seconds=grace_seconds, now=int(self._now())
        )
        return reconciler.reconcile(
            since, until, cluster=self._cluster, fix=fix, again=again, progress=progress or no_progress
        )

    def shadow(
        self, since: int, until: int, *, progress: Progress | None = None
    ) -> tuple[ShadowResult, tuple[str, ...]]:
        """What would have been charged and refused; and which lines of accounting could not be read."""
        self._bank.require_full_view()
        prices = self._bank.cluster(self._slurm.check_cluster(self._cluster))
        jobs, unreadable = read_jobs(self._slurm, since, until, progress or no_progress)
        world = ShadowInput(
            cluster=prices,
            projects=self._bank.projects(),
            allocations=self._bank.allocations(),
            now=int(self._now()),
        )
        return simulate(jobs, world), tuple(map(str, unreadable))

    def import_people(
        self,
        gids: Mapping[str, int],
        *,
        passed_over: Collection[str] = (),
        dry_run: bool,
        progress: Progress | None = None,
    ) -> ImportResult:
        """Enter Slurm's accounts and users, but for those that are passed over."""
        return self._importer(gids, passed_over).run(
            cluster=self._cluster, dry_run=dry_run, progress=progress or no_progress
        )

    def import_history(
        self,
        since: int,
        until: int,
        *,
        grace_seconds: int,
        cover: bool,
        passed_over: Collection[str] = (),
        after: ImportPlan | None = None,
        progress: Progress | None = None,
    ) -> HistoryResult:
        """Charge what ended between two instants; with `after` only tell what that would come to once this plan is carried out. Runs of
        accounts and users that are passed over are not among what is left."""
        self._bank.require_full_view()
        history = HistoryImport(
            self._slurm,
            self._bank,
            grace_seconds=grace_seconds,
            now=int(self._now()),
            cluster=self._cluster,
            cover=cover,
            passed_over=passed_over,
            progress=progress or no_progress,
        )
        return (
            history.run(since, until) if after is None else history.predict(since, until, after)
        )

    def keep_settings(self, path: str, text: str) -> None:
        """Write the lines for the bank's settings into a file."""
        replace_file(Path(path), text)

    def sync_policy(
        self, site: str | None, *, dry_run: bool, progress: Progress | None = None
    ) -> SyncResult:
        """Write the submission policy from the bank."""
        return self._sync().policy(
            read_site_rules(site), cluster=self._cluster, dry_run=dry_run, progress=progress or no_progress
        )

    def sync_accounts(
        self, *, fence: bool, remove: bool, dry_run: bool, progress: Progress | None = None
    ) -> SyncResult:
        """Bring Slurm's accounts and associations into line with the bank."""
        asked = partial(self._sync().accounts, cluster=self._cluster, progress=progress or no_progress)
        return asked(fence=fence, remove=remove, dry_run=dry_run)

    def prolog(self, environ: Mapping[str, str], *, open_: bool) -> str | None:
        """Ask the bank for the job that Slurm's environment names. None when it runs; else what its owner is told."""
        return Prolog(self._slurm, self._client, is_open=open_).run(environ)

    def _importer(self, gids: Mapping[str, int], passed_over: Collection[str]) -> Importer:
        self._bank.require_full_view()
        return Importer(self._slurm, self._bank, gids=gids, passed_over=passed_over)

    def _sync(self) -> Sync:
        self._bank.require_full_view()
        return Sync(self._slurm, self._bank, now=int(self._now()))
