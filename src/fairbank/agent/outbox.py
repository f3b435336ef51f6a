"""Outbox: reports that the bank has not answered, and live runs, in one SQLite file.

The connection holds an exclusive lock as long as the agent lives (docs/decisions/0013): two agents
cannot share an outbox, and no other reader delays a checkpoint.

SQLite moves its write-ahead log into the file only after a commit, which is impossible on a full
disk. So the outbox keeps a reserve file, frees it then, and deletes acknowledged reports step by
step.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from fairbank.agent.protocol import Verdict
from fairbank.agent.reports.report import PendingReport, ReportKind
from fairbank.agent.run_memory import KnownRun, OutboxChanges
from fairbank.agent.run_states import AgentRunState
from fairbank.cluster.run_report import RunPiece
from fairbank.core.errors import Conflict, Corrupt, FairbankError, Forbidden

T = TypeVar("T")

APPLICATION_ID = 0x46624F42  # "FbOB"
VERSION = 2

_SCHEMA = """
CREATE TABLE reports (
    seq INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    created REAL NOT NULL,
    converted INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE runs (
    run TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    time_limit INTEGER,
    action TEXT,
    reason TEXT,
    text TEXT,
    billing TEXT NOT NULL,
    pieces BLOB NOT NULL
);
CREATE TABLE credit (id INTEGER PRIMARY KEY CHECK (id = 1), known BLOB NOT NULL);
"""
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
_STEP = 50  # rows that are deleted at once on a full disk; each step frees the log for the next
_SPARE_PAGES = 16
_REFILL_SECONDS = 60.0
RESERVE_BYTES, RESERVE_MIN_BYTES = 1 << 20, 1 << 17

_PUT_REPORT = "INSERT OR REPLACE INTO reports VALUES (?, ?, ?, ?, ?, ?)"
_DELETE_REPORT = "DELETE FROM reports WHERE seq = ?"
_PUT_RUN = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE_RUN = "DELETE FROM runs WHERE run = ?"


_read_pieces = msgspec.json.Decoder(tuple[RunPiece, ...]).decode
_write_pieces = msgspec.json.Encoder().encode


class DiskReserve:
    """Reserve of 1 MiB of disk so that SQLite can delete acknowledged reports on a full disk.

    A file beside the outbox, or less if there is less space. Its methods never raise: the reserve
    is a help and no need.
    """

    def __init__(self, outbox: Path) -> None:
        self._path = outbox.with_name(f"{outbox.name}.reserve")
        self._size = 0

    @property
    def is_full_size(self) -> bool:
        return self._size == RESERVE_BYTES

    def fill(self) -> None:
        """Allocate the file, or half of it, and so on."""
        size = RESERVE_BYTES
        flags = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(OSError), os.fdopen(os.open(self._path, flags, 0o600)) as file:
            while size >= RESERVE_MIN_BYTES and not _allocate(file.fileno(), size):
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


class Outbox:
    """Outbox file; call it from one thread at a time.

    `clock_offset` turns the monotonic seconds of reports into Unix seconds.
    """

    def __init__(self, path: Path, *, clock_offset: float = 0.0) -> None:
        """Open the outbox.

        Raises:
            Conflict: another agent uses it.
            Forbidden: it cannot be created.
            Corrupt: it is no outbox of this version.
        """
        self._clock_offset = clock_offset
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=32
            )
            path.chmod(0o600)
            self._claim()
            self._reserve = DiskReserve(path)
            self._fill_reserve()
        except (sqlite3.Error, OSError) as error:
            raise _cannot_open(path, error) from error

    def _claim(self) -> None:
        for pragma in _PRAGMAS:
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("BEGIN EXCLUSIVE")
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if (application, version) != (APPLICATION_ID, VERSION):
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, not {VERSION}")
            if tables:
                raise sqlite3.DatabaseError("its tables are those of another program or release")
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")

    def content(self) -> tuple[Iterator[tuple[str, KnownRun]], list[int], bytes | None]:
        """Return what an agent before has left: runs, numbers of reports, and known credit."""
        credit = self._db.execute("SELECT known FROM credit").fetchone()
        seqs = [seq for (seq,) in self._db.execute("SELECT seq FROM reports ORDER BY seq")]
        return self._runs(), seqs, credit[0] if credit else None

    def _runs(self) -> Iterator[tuple[str, KnownRun]]:
        rows = self._db.execute("SELECT * FROM runs ORDER BY rowid")
        for run, state, limit, action, reason, text, billing, pieces in rows:
            refusal = Verdict(action=action, reason=reason, text=text) if action else None
            yield run, KnownRun(AgentRunState(state), limit, refusal, billing, _read_pieces(pieces))

    def read(self, seqs: Sequence[int]) -> list[PendingReport]:
        """Return the reports with these numbers that exist, in this order. Raises sqlite3.Error."""
        marks = ",".join("?" * len(seqs))
        rows = self._db.execute(f"SELECT * FROM reports WHERE seq IN ({marks})", seqs)  # noqa: S608
        by_seq = {row[0]: row for row in rows}
        return [self._report(*by_seq[seq]) for seq in seqs if seq in by_seq]

    def _report(
        self, seq: int, run: str, kind: str, created: float, converted: int, body: bytes
    ) -> PendingReport:
        report = PendingReport(seq, run, ReportKind(kind), body, created - self._clock_offset)
        report.stored, report.converted = True, bool(converted)
        report.attempts = 1  # the agent that wrote it may have sent it
        return report

    def close(self) -> None:
        self._db.close()

    # ------------------------------------------------------------------ writing

    def write(self, changes: OutboxChanges) -> None:
        """Write all changes and sync.

        Raises:
            sqlite3.Error: nothing was written, except that some rows may have been deleted.
        """
        try:
            self._write(changes)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DISK_FULL:
                raise
            self._write_on_full_disk(changes)
        if not self._reserve.is_full_size and time.monotonic() > self._refill_at:
            self._fill_reserve()

    def _fill_reserve(self) -> None:
        self._reserve.fill()
        self._refill_at = time.monotonic() + _REFILL_SECONDS

    def _write(self, changes: OutboxChanges) -> None:
        reports = [
            (report.seq, report.run, report.kind.value, report.created + self._clock_offset,
             report.converted, report.body)
            for report in changes.reports.values() if report is not None
        ]  # fmt: skip
        runs = [(run, *_run_row(known)) for run, known in changes.runs.items() if known is not None]
        with self._transaction():
            self._db.executemany(_PUT_REPORT, reports)
            self._db.executemany(_DELETE_REPORT, [(seq,) for seq in _deleted(changes.reports)])
            self._db.executemany(_PUT_RUN, runs)
            self._db.executemany(_DELETE_RUN, [(run,) for run in _deleted(changes.runs)])
            if changes.credit is not None:
                self._db.execute("INSERT OR REPLACE INTO credit VALUES (1, ?)", (changes.credit,))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:  # some errors have rolled it back already
                self._db.execute("ROLLBACK")
            raise

    def _write_on_full_disk(self, changes: OutboxChanges) -> None:
        """Delete what is done with, in the space of the reserve, and then write the rest.

        The rest may use that space too if the file has free pages for it: the log needs the space
        only until the next checkpoint.
        """
        self._checkpoint()
        has_deletions = bool(_deleted(changes.reports) or _deleted(changes.runs))
        if has_deletions or self._has_space_in_free_pages(changes):
            self._reserve.free()
            try:
                with contextlib.suppress(sqlite3.Error):
                    self._delete_all(changes)
                if self._has_space_in_free_pages(changes):
                    self._write(changes)
                    self._checkpoint()
                    return
            finally:
                self._fill_reserve()
        self._write(changes)

    def _has_space_in_free_pages(self, changes: OutboxChanges) -> bool:
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        size = sum(
            len(report.body) + 256 for report in changes.reports.values() if report is not None
        )
        # Pages have 4,096 bytes; counted as half full.
        return bool(free > _SPARE_PAGES + (size + 256 * len(changes.runs)) // 2_048)

    def _delete_all(self, changes: OutboxChanges) -> None:
        """Delete rows step by step.

        A report whose run has another one in these changes stays until that is written: it may
        have been converted, and then the new one replaces it.
        """
        kept = {report.run for report in changes.reports.values() if report is not None}
        for seqs in _steps(_deleted(changes.reports)):
            rows = [(report.seq,) for report in self.read(seqs) if report.run not in kept]
            self._delete(_DELETE_REPORT, rows)
        for runs in _steps(_deleted(changes.runs)):
            self._delete(_DELETE_RUN, [(run,) for run in runs])

    def _delete(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        with self._transaction():
            self._db.executemany(statement, rows)
        self._checkpoint()

    def _checkpoint(self) -> None:
        """Move the log into the file as far as there is space, and truncate it."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _deleted(rows: Mapping[T, object]) -> list[T]:
    return [key for key, value in rows.items() if value is None]


def _steps(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(rows), _STEP):
        yield rows[first : first + _STEP]


def _run_row(known: KnownRun) -> tuple[object, ...]:
    refusal = known.refusal
    parts = (refusal.action, refusal.reason, refusal.text) if refusal else (None, None, None)
    return (known.state.value, known.limit, *parts, known.billing, _write_pieces(known.pieces))


def _cannot_open(path: Path, error: Exception) -> FairbankError:
    is_operational = isinstance(error, sqlite3.OperationalError)
    kind: type[FairbankError] = Forbidden
    text = f"cannot use the outbox {path}: {error}"
    remedy = "name a file in a directory of the agent's user, with free space"
    if is_operational and "locked" in str(error):
        kind, text = Conflict, f"another agent uses the outbox {path}"
        remedy = "stop it first, or name another file"
    elif isinstance(error, sqlite3.DatabaseError) and not is_operational:
        kind, text = Corrupt, f"{path} is not an outbox of this release: {error}"
        remedy = "move it away and start again; fairbank reconcile finds what was in it"
    return kind(text, field="outbox.path", remedy=remedy)
