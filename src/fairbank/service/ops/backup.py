"""Backups of a working bank, from one snapshot. Any store can be restored from them."""

from __future__ import annotations

import gzip
import os
import shlex
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from fairbank.bank.entry import Entry
from fairbank.bank.rules.registry import stay_revoked
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import NewIds, RegistryHead, RegistryRows, TransactionData
from fairbank.core.errors import Conflict, Corrupt, InvalidInput, NotFound
from fairbank.core.os_errors import translate_os_error
from fairbank.core.progress import Progress
from fairbank.core.time import Clock, Instant
from fairbank.service.ops.backup_file import chunks, verify_file, write
from fairbank.store.contract import ProgressCallback, RestoreTarget, Store


class Backups:
    """Backup and restore of one store, whose backups name the bank."""

    def __init__(self, store: Store, clock: Clock, bank: str | None = None) -> None:
        self._store, self._clock, self._bank = store, clock, bank

    def create(
        self,
        path: Path,
        progress: Progress | None = None,
        *,
        at_work: ProgressCallback | None = None,
        replace: bool = False,
    ) -> int:
        """Write a backup, complete or not at all, readable by its owner only.

        When this returns, the file survives a loss of power.

        Args:
            path: file to create.
            progress: called now and then.
            at_work: called while the store's own file is checked, before anything is written.
            replace: overwrite an existing file.

        Returns:
            The number of rows.

        Raises:
            Conflict: the file exists and `replace` is false.
            NotFound: there is no such directory.
            Corrupt: the store's own file is damaged.
            Forbidden, InvalidInput: the file cannot be written.
        """
        _check_path(path, replace)
        self._check_integrity(at_work)
        try:
            rows = self._create(path, progress, replace)
            _sync_directory(path.parent)
        except OSError as error:
            raise translate_os_error(error, f"cannot write {path}", field="FILE") from error
        return rows

    def _check_integrity(self, at_work: ProgressCallback | None) -> None:
        """Raise Corrupt for a damaged store: rows that an index lacks would be missing from the
        backup.
        """
        if errors := self._store.integrity_errors(at_work=at_work):
            more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
            raise Corrupt(
                f"the ledger is damaged, so no backup of it is made: {errors[0].message}{more}",
                remedy="fairbank doctor tells what helps; keep the backups of before",
            )

    def _create(self, path: Path, progress: Progress | None, replace: bool) -> int:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with (
                os.fdopen(handle, "wb") as raw,
                gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=3, mtime=0) as out,
            ):
                with self._store.reading() as reader:
                    rows = write(out, reader, self._clock.now(), progress, self._bank)
                out.close()
                raw.flush()
                os.fsync(raw.fileno())
            _publish(Path(name), path, replace)
        finally:
            Path(name).unlink(missing_ok=True)
        return rows

    def restore(
        self, path: Path, *, replace: bool = False, progress: Progress | None = None
    ) -> int:
        """Fill the store from a backup in one transaction. An incomplete file changes nothing.

        Args:
            path: the backup, which is read twice: it is verified first.
            replace: delete the rows that the store has.
            progress: called now and then with the number of rows restored, and of all rows.

        Returns:
            The number of rows.

        Raises:
            Conflict: the store has rows and `replace` is false.
            Corrupt, InvalidInput, NotFound: the backup cannot be read.
        """
        of = verify_file(path)
        rows = 0
        with self._store.restoring(replace=replace) as filling:
            restore = _Restore(filling, self._clock.now())
            for kind, chunk in chunks(path):
                restore.insert(kind, chunk)
                rows += len(chunk)
                if progress:
                    progress(rows, of)
        return rows


class _Restore:
    """Filter for the rows of a backup. It must not make tokens valid that were revoked since.

    Tokens that are revoked in the store that is replaced stay revoked, and one more entry records
    it.
    """

    def __init__(self, filling: RestoreTarget, at: Instant) -> None:
        self._filling, self._at = filling, at
        self._revoked = filling.revoked_tokens()
        self._registry = RegistryHead()
        self._last_entry = 0

    def insert(self, kind: type, rows: list[Any]) -> None:
        """Insert some rows of a kind. Tokens come after all entries and the registry."""
        if kind is RegistryHead:
            self._registry = rows[0]
            self._filling.registry(rows[0])
            return
        if kind is Entry:
            self._last_entry = max(self._last_entry, *(entry.id for entry in rows))
        elif kind is Token:
            rows = self._revoked_as_before(rows)
        self._filling.insert(kind, rows)

    def _revoked_as_before(self, tokens: list[Token]) -> list[Token]:
        kept = [
            msgspec.structs.replace(token, revoked=self._revoked.get(token.digest))
            if token.revoked is None
            else token
            for token in tokens
        ]
        changed = [new for new, old in zip(kept, tokens, strict=True) if new != old]
        work = TransactionData(
            registry=RegistryRows(head=self._registry),
            ids=NewIds(entries=count(self._last_entry + 1)),
        )
        stay_revoked(work, changed, self._at)
        if work.entries:
            self.insert(Entry, work.entries)
            self.insert(RegistryHead, [work.registry])
        return kept


def _check_path(path: Path, replace: bool) -> None:
    """Check, before long work, that the backup can be created at this path."""
    if not path.parent.is_dir():
        raise NotFound(
            f"there is no directory {path.parent}",
            field="FILE",
            remedy=f"make it first: mkdir -p {shlex.quote(str(path.parent))}",
        )
    if path.is_dir():
        raise InvalidInput(f"{path} is a directory", field="FILE", remedy="name a file in it")
    if path.exists() and not path.is_file():
        # Renaming the backup to the name of a device, such as /dev/full, would replace the device.
        raise InvalidInput(
            f"{path} is not a regular file", field="FILE", remedy="name a new or a regular file"
        )
    if not replace and os.path.lexists(path):
        raise _file_exists(path)


def _file_exists(path: Path) -> Conflict:
    return Conflict(
        f"there is a file {path} already",
        field="FILE",
        remedy="name another, or put this in its place with --force",
    )


def _publish(aside: Path, path: Path, replace: bool) -> None:
    """Give the finished file its name. Without `replace`, not the name of a file created
    meanwhile.
    """
    if replace:
        aside.replace(path)
        return
    try:
        os.link(aside, path)
    except FileExistsError as came:
        raise _file_exists(path) from came


def _sync_directory(directory: Path) -> None:
    """Make the disk store the file's name: a rename alone may be lost with the power."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
