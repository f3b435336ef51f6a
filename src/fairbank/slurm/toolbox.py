"""Slurm and bank of one host, and the operations that commands run on the two."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from fairbank.rest.client import Client
from fairbank.slurm.bank import BankClient, Progress, no_progress
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.importer import HistoryImport, HistoryResult, Importer, ImportResult
from fairbank.slurm.policy import read_site_rules
from fairbank.slurm.prolog import Prolog
from fairbank.slurm.reconcile.import_plan import ImportPlan
from fairbank.slurm.reconcile.reconciler import Reconciler, ReconcileResult, read_jobs
from fairbank.slurm.reconcile.shadow import ShadowInput, ShadowResult, simulate
from fairbank.slurm.sync import Sync, SyncResult, replace_file


class SlurmToolbox:
    """Operations on the Slurm that PATH finds and the bank of the client.

    Args:
        client: of the bank.
        cluster: required name of the cluster; None for any.
        now: clock.
    """

    def __init__(
        self, client: Client, cluster: str | None, *, now: Callable[[], float] = time.time
    ) -> None:
        self._client, self._bank, self._slurm = client, BankClient(client), SlurmCommands()
        self._cluster, self._now = cluster, now

    def reconcile(
        self,
        since: int,
        until: int,
        *,
        grace_seconds: int,
        fix: bool,
        retry_refused: bool,
        progress: Progress | None = None,
    ) -> ReconcileResult:
        """Compare finished runs with accounting (arguments: `Reconciler.reconcile`)."""
        self._bank.require_full_view()
        reconciler = Reconciler(
            self._slurm, self._bank, grace_seconds=grace_seconds, now=int(self._now())
        )
        return reconciler.reconcile(
            since,
            until,
            cluster=self._cluster,
            fix=fix,
            retry_refused=retry_refused,
            progress=progress or no_progress,
        )

    def shadow(
        self, since: int, until: int, *, progress: Progress | None = None
    ) -> tuple[ShadowResult, tuple[str, ...]]:
        """Return the charges and refusals of a period without enforcement, and unreadable lines.

        Args:
            since: start of the period.
            until: end of the period, not included.
            progress: called with the stage, and how much of how much is done.
        """
        self._bank.require_full_view()
        cluster = self._bank.cluster(self._slurm.check_cluster(self._cluster))
        jobs, unreadable = read_jobs(self._slurm, since, until, progress or no_progress)
        bank = ShadowInput(
            cluster=cluster,
            projects=self._bank.projects(),
            allocations=self._bank.allocations(),
            now=int(self._now()),
        )
        return simulate(jobs, bank), tuple(map(str, unreadable))

    def import_people(
        self,
        gids: Mapping[str, int],
        *,
        passed_over: Collection[str] = (),
        dry_run: bool,
        progress: Progress | None = None,
    ) -> ImportResult:
        """Import Slurm's accounts and users (arguments: `Importer`)."""
        self._bank.require_full_view()
        importer = Importer(self._slurm, self._bank, gids=gids, passed_over=passed_over)
        return importer.run(
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
        """Charge what ended between two instants (arguments: `HistoryImport`).

        With `after` nothing is charged: the result is predicted, as if the plan were carried out.
        """
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
        return history.run(since, until) if after is None else history.predict(since, until, after)

    def write_settings(self, path: str, text: str) -> None:
        """Write the lines for the bank's settings into a file."""
        replace_file(Path(path), text)

    def sync_policy(
        self, site: str | None, *, dry_run: bool, progress: Progress | None = None
    ) -> SyncResult:
        """Write the submission policy.

        Args:
            site: file with the site's rules; None for the default.
            dry_run: write nothing.
            progress: called with the stage, and how much of how much is done.
        """
        return self._sync().policy(
            read_site_rules(site),
            cluster=self._cluster,
            dry_run=dry_run,
            progress=progress or no_progress,
        )

    def sync_accounts(
        self, *, fence: bool, remove: bool, dry_run: bool, progress: Progress | None = None
    ) -> SyncResult:
        """Change Slurm's accounts to match the bank (arguments: `Sync.accounts`)."""
        return self._sync().accounts(
            cluster=self._cluster,
            fence=fence,
            remove=remove,
            dry_run=dry_run,
            progress=progress or no_progress,
        )

    def prolog(self, environ: Mapping[str, str], *, fail_open: bool) -> str | None:
        """Ask the bank for the job of Slurm's environment; None if it may run, else the refusal."""
        return Prolog(self._slurm, self._client, fail_open=fail_open).run(environ)

    def _sync(self) -> Sync:
        self._bank.require_full_view()
        return Sync(self._slurm, self._bank, now=int(self._now()))
