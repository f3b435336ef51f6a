"""State file: what a daemon must find again after a crash, in one SQLite file.

The connection holds an exclusive lock as long as the daemon lives (docs/decisions/0013): two
daemons cannot share a file, and no other reader delays a checkpoint.

SQLite moves its write-ahead log into the file only after a commit, which is impossible on a full
disk. So a state file keeps a reserve file, frees it then, and deletes rows step by step.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fairbank.core.errors import Conflict, Corrupt, FairbankError, Forbidden

_PRAGMAS = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = FULL",
    "cache_size = -4096",
    # 256 pages, so that the log stays below the 1 MiB of the reserve. SQLite's default is 1,000.
    "wal_autocheckpoint = 256",
    "journal_size_limit = 1048576",
)
_DISK_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)  # IOERR when over quota
DELETED_ROWS = 50  # at once on a full disk, so that the log stays small
_SPARE_PAGES = 16
_REFILL_SECONDS = 60.0
_RESERVE_BYTES, _RESERVE_MIN_BYTES = 1 << 20, 1 << 17


class StateFormat(NamedTuple):
    """Format of a kind of state file, and the words of its error messages.

    `application_id` and `version` are stored in the file; `schema` has SQL statements, separated by
    semicolons. `article` and `noun` name the kind, `owner` the daemon that uses it, and `setting`
    its path in the settings. `recovery` says how to recover what a file had that cannot be read.
    """

    application_id: int
    version: int
    schema: str
    article: str
    noun: str
    owner: str
    setting: str
    recovery: str


class SqlStatement(NamedTuple):
    """SQL statement that is executed once for each row of parameters."""

    sql: str
    rows: Sequence[tuple[object, ...]]


class StateChanges(NamedTuple):
    """Changes that are written in one transaction.

    `size`: bytes of the new rows. `deletions` yields those that may be made before the rest, of at
    most `DELETED_ROWS` rows each; None: there are none. On a full disk each is a transaction of its
    own, which frees the log for the next one.
    """

    statements: Sequence[SqlStatement]
    size: int
    deletions: Callable[[], Iterator[SqlStatement]] | None = None


class _DiskReserve:
    """Reserve of 1 MiB of disk so that SQLite can delete rows on a full disk.

    A file beside the state file, or less if there is less space. Its methods never raise: the
    reserve is a help and no need.
    """

    def __init__(self, state_file: Path) -> None:
        self._path = state_file.with_name(f"{state_file.name}.reserve")
        self._size = 0

    @property
    def is_full_size(self) -> bool:
        return self._size == _RESERVE_BYTES

    def fill(self) -> None:
        """Allocate the file, or half of it, and so on."""
        size = _RESERVE_BYTES
        flags = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(OSError), os.fdopen(os.open(self._path, flags, 0o600)) as file:
            while size >= _RESERVE_MIN_BYTES and not _allocate(file.fileno(), size):
                os.ftruncate(file.fileno(), 0)
                size //= 2
            self._size = os.fstat(file.fileno()).st_size

    def free(self) -> None:
        self._size = 0
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def _allocate(file: int, size: int) -> bool:
    try:
        os.posix_fallocate(file, 0, size)
    except OSError:
        return False
    return True


class StateFile:
    """State file; call it from one thread at a time."""

    def __init__(self, path: Path, state_format: StateFormat) -> None:
        """Open the file, or create it.

        Raises:
            Conflict: another daemon uses it.
            Forbidden: it cannot be created.
            Corrupt: it is no file of this format.
        """
        self._path, self._format = path, state_format
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=32
            )
            try:
                path.chmod(0o600)
                self._claim()
                self._reserve = _DiskReserve(path)
                self._fill_reserve()
            except BaseException:
                self._db.close()  # or it would keep the lock until it is collected
                raise
        except (sqlite3.Error, OSError) as error:
            raise _cannot_open(path, state_format, error) from error

    def _claim(self) -> None:
        for pragma in _PRAGMAS:
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("BEGIN EXCLUSIVE")
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        expected = self._format.application_id, self._format.version
        if (application, version) != expected:
            if version not in (0, self._format.version):
                text = f"it is of version {version}, not {self._format.version}"
                raise sqlite3.DatabaseError(text)
            if tables:
                raise sqlite3.DatabaseError("its tables are those of another program or release")
            for statement in self._format.schema.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {self._format.application_id}")
            self._db.execute(f"PRAGMA user_version = {self._format.version}")
        self._db.execute("COMMIT")

    def query(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Return the rows of a query. Raises sqlite3.Error."""
        return self._db.execute(sql, parameters)

    def unreadable_row(self, error: Exception) -> Corrupt:
        """Return the error for a row that cannot be decoded."""
        text = f"{self._path} has a row that cannot be read: {error}"
        return Corrupt(text, remedy=_recovery(self._format))

    def write(self, changes: StateChanges) -> None:
        """Write all changes and sync.

        Raises:
            sqlite3.Error: nothing was written, except that some rows may have been deleted.
            OverflowError: the same, for an integer of more than 64 bits.
        """
        try:
            self._execute(changes.statements)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DISK_FULL:
                raise
            self._write_on_full_disk(changes)
        if not self._reserve.is_full_size and time.monotonic() > self._refill_at:
            self._fill_reserve()

    def close(self) -> None:
        self._db.close()

    def _fill_reserve(self) -> None:
        self._reserve.fill()
        self._refill_at = time.monotonic() + _REFILL_SECONDS

    def _execute(self, statements: Sequence[SqlStatement]) -> None:
        """Execute the statements in one transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for sql, rows in statements:
                self._db.executemany(sql, rows)
            self._db.execute("COMMIT")
        except BaseException:  # OverflowError, too, for an integer of more than 64 bits
            if self._db.in_transaction:  # some errors have rolled it back already
                self._db.execute("ROLLBACK")
            raise

    def _write_on_full_disk(self, changes: StateChanges) -> None:
        """Delete what is done with, in the space of the reserve, and then write the rest.

        The rest may use that space too if the file has free pages for it: the log needs the space
        only until the next checkpoint.
        """
        self._checkpoint()
        if changes.deletions is not None or self._has_free_pages(changes.size):
            self._reserve.free()
            try:
                if changes.deletions is not None:
                    self._delete(changes.deletions())
                if self._has_free_pages(changes.size):
                    self._execute(changes.statements)
                    self._checkpoint()
                    return
            finally:
                self._fill_reserve()
        self._execute(changes.statements)

    def _has_free_pages(self, size: int) -> bool:
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        # Pages have 4,096 bytes; counted as half full.
        return bool(free > _SPARE_PAGES + size // 2_048)

    def _delete(self, deletions: Iterator[SqlStatement]) -> None:
        """Make deletions one by one, as far as the space suffices."""
        with contextlib.suppress(sqlite3.Error):
            for statement in deletions:
                self._execute([statement])
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Move the log into the file as far as there is space, and truncate it."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _recovery(state_format: StateFormat) -> str:
    return f"move it away and start again; {state_format.recovery}"


def _cannot_open(path: Path, state_format: StateFormat, error: Exception) -> FairbankError:
    noun, owner = state_format.noun, state_format.owner
    is_operational = isinstance(error, sqlite3.OperationalError)
    kind: type[FairbankError] = Forbidden
    text = f"cannot use the {noun} {path}: {error}"
    remedy = f"name a file in a directory of the {owner}'s user, with free space"
    if is_operational and "locked" in str(error):
        kind, text = Conflict, f"another {owner} uses the {noun} {path}"
        remedy = "stop it first, or name another file"
    elif isinstance(error, sqlite3.DatabaseError) and not is_operational:
        kind = Corrupt
        text = f"{path} is not {state_format.article} {noun} of this release: {error}"
        remedy = _recovery(state_format)
    return kind(text, field=state_format.setting, remedy=remedy)
