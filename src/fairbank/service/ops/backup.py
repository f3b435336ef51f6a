"""Backups that any store can be restored from, taken from one snapshot while the bank works."""

from __future__ import annotations

import gzip
import os
import shlex
import tempfile
from pathlib import Path

from fairbank.core.errors import Conflict, Corrupt, Malformed, Unknown
from fairbank.core.os_errors import translate_os_error
from fairbank.core.time import Clock
from fairbank.service.ops.backup_file import Progress, chunks, verify_file, write
from fairbank.service.ops.restored_tokens import RestoredTokens
from fairbank.store.contract import ProgressCallback, Store


class Backups:
    """Taking and restoring backups of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def create(
        self,
        path: Path,
        progress: Progress | None = None,
        *,
        at_work: ProgressCallback | None = None,
        replace: bool = False,
    ) -> int:
        """Write a backup to `path`, whole or not at all, readable by its owner only. Returns the number of rows.

        `at_work` is called as long as the store's own file is checked, before anything is written.

        Once it returns, the file is there even after a loss of power. Raises Conflict when there is a file already and `replace`
        is false, Unknown without the folder, Forbidden, Malformed, Corrupt where the store's own file is damaged.
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
        """Rows that an index lacks would be missing from the backup, and nobody would notice before it is needed."""
        if found := self._store.integrity_errors(at_work=at_work):
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            raise Corrupt(
                f"the books are damaged, so no backup is made of them: {found[0]}{more}",
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
                    rows = write(out, reader, self._clock.now(), progress)
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
        """Fill the store from a backup in one transaction; a file that is not whole changes nothing.

        Raises Conflict when the store is not empty and `replace` is false, Corrupt, Malformed, Unknown.
        """
        of = verify_file(path)
        rows = 0
        with self._store.restoring(replace=replace) as filling:
            tokens = RestoredTokens(filling, self._clock.now())
            for table, chunk in chunks(path):
                table.loader(filling, tokens)(chunk)
                rows += len(chunk)
                if progress:
                    progress(rows, of)
        return rows


def _check_path(path: Path, replace: bool) -> None:
    """Before an hour's work: whether the backup may come to stand at `path`."""
    if not path.parent.is_dir():
        raise Unknown(
            f"there is no folder {path.parent}",
            field="FILE",
            remedy=f"make it first: mkdir -p {shlex.quote(str(path.parent))}",
        )
    if path.is_dir():
        raise Malformed(f"{path} is a folder", field="FILE", remedy="name a file in it")
    if not replace and os.path.lexists(path):
        raise _file_exists(path)


def _file_exists(path: Path) -> Conflict:
    return Conflict(
        f"there is a file {path} already",
        field="FILE",
        remedy="name another, or put this in its place with --force",
    )


def _publish(aside: Path, path: Path, replace: bool) -> None:
    """Give the finished file its name; without `replace` not that of a file that came meanwhile."""
    if replace:
        aside.replace(path)
        return
    try:
        os.link(aside, path)
    except FileExistsError as came:
        raise _file_exists(path) from came


def _sync_directory(folder: Path) -> None:
    """Have the disk keep which file bears which name: a rename alone may be lost with the power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
