"""The outbox: letters that the bank has not answered, and runs that are under way, in one SQLite file (docs/decisions/0013).

One connection, held for itself as long as the agent lives: so nobody else can write, no checkpoint meets a commit of another
connection, and two agents cannot share an outbox.

SQLite brings its log into the file only after a commit, and on a full disk there is none any more. So that is done here, on room that was
kept for it, and what the bank has answered is thrown away bit by bit.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from fairbank.core.errors import Conflict, Corrupt, FairbankError, Forbidden
from fairbank.slurm.agent.letters import Kind, Known, Letter, State, Words
from fairbank.slurm.agent.memory import Changes
from fairbank.slurm.agent.reserve import Reserve

T = TypeVar("T")

VERSION = 1

_SCHEMA = """
CREATE TABLE letters (
    seq INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    heard REAL NOT NULL,
    turned INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE runs (
    run TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    time_limit INTEGER,
    say TEXT,
    reason TEXT,
    words TEXT
);
CREATE TABLE credit (only INTEGER PRIMARY KEY CHECK (only = 1), said BLOB NOT NULL);
"""
_PRAGMAS = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = FULL",
    "cache_size = -4096",
    "wal_autocheckpoint = 256",  # pages: a megabyte, and not the usual four
    "journal_size_limit = 1048576",
)
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)  # over quota is the second
_AT_ONCE, _PAGES_BESIDE, _TOP_UP_SECONDS = 50, 16, 60.0

_PUT_LETTER = "INSERT OR REPLACE INTO letters VALUES (?, ?, ?, ?, ?, ?)"
_PUT_RUN = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)"


class Left(NamedTuple):
    """What an agent before has left."""

    runs: Iterator[tuple[str, Known]]
    seqs: list[int]
    credit: bytes | None


class Outbox:
    """`ahead`: by how many seconds the calendar is ahead of the clock by which letters are timed. Use it from one thread at a time."""

    def __init__(self, path: Path, *, ahead: float = 0.0) -> None:
        """Raises Conflict when another agent has it, Forbidden when it cannot be made, Corrupt when it is no outbox of this version."""
        self._ahead = ahead
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=32
            )
            path.chmod(0o600)
            self._claim()
            self._reserve = Reserve(path)
            self._keep_reserve()
        except (sqlite3.Error, OSError) as bad:
            raise _cannot_open(path, bad) from bad

    def _claim(self) -> None:
        for pragma in _PRAGMAS:
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("BEGIN EXCLUSIVE")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"it is of version {version}, not {VERSION}")
        if not version:
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")

    def left(self) -> Left:
        """What is in it."""
        credit = self._db.execute("SELECT said FROM credit").fetchone()
        seqs = [seq for (seq,) in self._db.execute("SELECT seq FROM letters ORDER BY seq")]
        return Left(self._runs(), seqs, credit[0] if credit else None)

    def _runs(self) -> Iterator[tuple[str, Known]]:
        for run, state, limit, say, reason, text in self._db.execute(
            "SELECT * FROM runs ORDER BY rowid"
        ):
            yield run, Known(State(state), limit, Words(say, reason, text) if say else None)

    def write(self, changes: Changes) -> None:
        """All of it, safe on the disk when this returns; or nothing but what goes away, and sqlite3.Error is raised."""
        try:
            self._write(changes)
        except sqlite3.Error as bad:
            if getattr(bad, "sqlite_errorcode", 0) & 0xFF not in _NO_ROOM:
                raise
            self._write_without_room(changes)
        if not self._reserve.is_whole and time.monotonic() > self._top_up_at:
            self._keep_reserve()

    def _keep_reserve(self) -> None:
        self._reserve.keep()
        self._top_up_at = time.monotonic() + _TOP_UP_SECONDS

    def _write_without_room(self, changes: Changes) -> None:
        """What is done with is deleted first, on the room that was kept. The rest may use that room, too, where there are free pages for it
        in the file: then the log needs it only until it is brought in."""
        self._bring_in()
        if any(
            each is None for each in (*changes.letters.values(), *changes.runs.values())
        ) or self._fits_inside(changes):
            self._reserve.give()
            try:
                with contextlib.suppress(sqlite3.Error):
                    self._delete_all(changes)
                if self._fits_inside(changes):
                    self._write(changes)
                    self._bring_in()
                    return
            finally:
                self._keep_reserve()
        self._write(changes)

    def _fits_inside(self, changes: Changes) -> bool:
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        size = sum(len(each.body) + 256 for each in changes.letters.values() if each is not None)
        return bool(free > _PAGES_BESIDE + (size + 256 * len(changes.runs)) // 2_048)

    def _delete_all(self, changes: Changes) -> None:
        """A little at a time, as each step frees the room for the next. A letter whose run has another in these changes stays until that is
        written: it may be told as something else."""
        kept = {each.run for each in changes.letters.values() if each is not None}
        for seqs in _some_of([seq for seq, each in changes.letters.items() if each is None]):
            found = self.read(seqs)
            self._delete(
                "DELETE FROM letters WHERE seq = ?",
                [(each.seq,) for each in found if each.run not in kept],
            )
        for runs in _some_of([run for run, each in changes.runs.items() if each is None]):
            self._delete("DELETE FROM runs WHERE run = ?", [(run,) for run in runs])

    def _delete(self, statement: str, which: Sequence[tuple[object, ...]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(statement, which)
            self._db.execute("COMMIT")
        except sqlite3.Error:
            self._undo()
            raise
        self._bring_in()

    def _bring_in(self) -> None:
        """Move the log into the file, as far as there is room, and let go of the log's."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _undo(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _write(self, changes: Changes) -> None:
        letters = [
            (each.seq, *self._row(each)) for each in changes.letters.values() if each is not None
        ]
        runs = [(run, *_known(each)) for run, each in changes.runs.items() if each is not None]
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(_PUT_LETTER, letters)
            self._db.executemany(
                "DELETE FROM letters WHERE seq = ?",
                [(seq,) for seq, each in changes.letters.items() if each is None],
            )
            self._db.executemany(_PUT_RUN, runs)
            self._db.executemany(
                "DELETE FROM runs WHERE run = ?",
                [(run,) for run, each in changes.runs.items() if each is None],
            )
            if changes.credit is not None:
                self._db.execute("INSERT OR REPLACE INTO credit VALUES (1, ?)", (changes.credit,))
            self._db.execute("COMMIT")
        except sqlite3.Error:
            self._undo()
            raise

    def _row(self, letter: Letter) -> tuple[object, ...]:
        heard = letter.heard + self._ahead
        return letter.run, letter.kind.value, heard, letter.turned, letter.body

    def read(self, seqs: Sequence[int]) -> list[Letter]:
        """These letters, as far as they are there, in the order asked for. They may have been sent before. Raises sqlite3.Error."""
        marks = ",".join("?" * len(seqs))
        found = {
            row[0]: row
            for row in self._db.execute(f"SELECT * FROM letters WHERE seq IN ({marks})", seqs)  # noqa: S608
        }
        return [self._letter(*found[seq]) for seq in seqs if seq in found]

    def _letter(
        self, seq: int, run: str, kind: str, heard: float, turned: int, body: bytes
    ) -> Letter:
        return Letter(
            seq,
            run,
            Kind(kind),
            body,
            heard - self._ahead,
            stored=True,
            tried=1,
            turned=bool(turned),
        )

    def close(self) -> None:
        self._db.close()


def _some_of(everything: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(everything), _AT_ONCE):
        yield everything[first : first + _AT_ONCE]


def _known(each: Known) -> tuple[object, ...]:
    words = each.words
    return (
        each.state.value,
        each.limit,
        words and words.say,
        words and words.reason,
        words and words.text,
    )


def _cannot_open(path: Path, bad: Exception) -> FairbankError:
    said = str(bad)
    if isinstance(bad, sqlite3.OperationalError) and "locked" in said:
        return Conflict(
            f"another agent uses the outbox {path}",
            field="outbox.path",
            remedy="stop it first, or name another file",
        )
    if isinstance(bad, sqlite3.DatabaseError) and not isinstance(bad, sqlite3.OperationalError):
        return Corrupt(
            f"{path} is no outbox: {said}",
            field="outbox.path",
            remedy="move it aside and start again; what was in it, a comparison with sacct finds",
        )
    return Forbidden(
        f"cannot use the outbox {path}: {said}",
        field="outbox.path",
        remedy="name a file in a folder of the agent's user, with room",
    )
