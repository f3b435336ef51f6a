"""Looking after the books (cli.books.Books)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from fairbank.bank.audit import Head
from fairbank.compose.settings import books_of, settings_of
from fairbank.service.clock import SystemClock
from fairbank.service.ops.audit import Audit, AuditResult, Progress
from fairbank.service.ops.audit_processes import verify
from fairbank.service.ops.backup import Backups
from fairbank.service.ops.backup_file import check
from fairbank.store.contract import ProgressCallback
from fairbank.store.factory import open_store


class Books:
    """The books of a bank on this host."""

    def heads(self, config: str | None) -> list[Head]:
        """How far every book is."""
        with books_of(config) as store:
            return Audit(store).heads()

    def verify(
        self, config: str | None, heads: Mapping[int, tuple[int, bytes]], progress: Progress | None
    ) -> AuditResult:
        """Read all books again; `heads` are those written down earlier."""
        written_down = {book: Head(book, seq, link) for book, (seq, link) in heads.items()}
        where = settings_of(config).store
        with books_of(config) as store:
            return verify(
                store, partial(open_store, where.url, journal=where.journal), written_down, progress
            )

    def backup(
        self,
        config: str | None,
        path: str,
        *,
        replace: bool,
        progress: Progress | None,
        at_work: ProgressCallback | None,
    ) -> int:
        """Write a backup while the bank works. Returns the number of rows."""
        with books_of(config) as store:
            return Backups(store, SystemClock()).create(
                Path(path), progress, at_work=at_work, replace=replace
            )

    def check_backup(self, path: str, progress: Progress | None) -> int:
        """Read a backup to its end. Returns the number of rows."""
        return check(Path(path), progress)

    def restore(
        self, config: str | None, path: str, *, replace: bool, progress: Progress | None
    ) -> int:
        """Fill the store from a backup. Returns the number of rows."""
        with books_of(config) as store:
            return Backups(store, SystemClock()).restore(
                Path(path), replace=replace, progress=progress
            )
