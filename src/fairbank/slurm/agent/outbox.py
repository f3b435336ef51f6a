"""The outbox: letters that the bank has not answered, and runs that are under way, in one SQLite file (docs/decisions/0013).

One connection, held for itself as long as the agent lives: so nobody else can write, no checkpoint meets a commit of another
connection, and two agents cannot share an outbox.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fairbank.slurm.agent.letters import Kind, Known, Letter, State, Words
from fairbank.slurm.agent.memory import Changes
from fairbank.values.trouble import Conflict, Corrupt, Forbidden, Trouble

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
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=32)
            path.chmod(0o600)
            self._claim()
        except (sqlite3.Error, OSError) as bad:
            raise _cannot_open(path, bad) from bad

    def _claim(self) -> None:
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", "cache_size = -4096"):
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
        for run, state, limit, say, reason, text in self._db.execute("SELECT * FROM runs ORDER BY rowid"):
            yield run, Known(State(state), limit, Words(say, reason, text) if say else None)

    def write(self, changes: Changes) -> None:
        """All of it or nothing, safe on the disk when this returns. Raises sqlite3.Error."""
        letters = [(each.seq, *self._row(each)) for each in changes.letters.values() if each is not None]
        runs = [(run, *_known(each)) for run, each in changes.runs.items() if each is not None]
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(_PUT_LETTER, letters)
            self._db.executemany("DELETE FROM letters WHERE seq = ?", [(seq,) for seq, each in changes.letters.items() if each is None])
            self._db.executemany(_PUT_RUN, runs)
            self._db.executemany("DELETE FROM runs WHERE run = ?", [(run,) for run, each in changes.runs.items() if each is None])
            if changes.credit is not None:
                self._db.execute("INSERT OR REPLACE INTO credit VALUES (1, ?)", (changes.credit,))
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _row(self, letter: Letter) -> tuple[object, ...]:
        heard = letter.heard + self._ahead
        return letter.run, letter.kind.value, heard, letter.turned, letter.body

    def read(self, seqs: Sequence[int]) -> list[Letter]:
        """These letters, as far as they are there, in the order asked for. They may have been sent before. Raises sqlite3.Error."""
        marks = ",".join("?" * len(seqs))
        found = {row[0]: row for row in self._db.execute(f"SELECT * FROM letters WHERE seq IN ({marks})", seqs)}  # noqa: S608
        return [self._letter(*found[seq]) for seq in seqs if seq in found]

    def _letter(self, seq: int, run: str, kind: str, heard: float, turned: int, body: bytes) -> Letter:
        return Letter(seq, run, Kind(kind), body, heard - self._ahead, stored=True, tried=1, turned=bool(turned))

    def close(self) -> None:
        self._db.close()


def _known(each: Known) -> tuple[object, ...]:
    words = each.words
    return each.state.value, each.limit, words and words.say, words and words.reason, words and words.text


def _cannot_open(path: Path, bad: Exception) -> Trouble:
    said = str(bad)
    if isinstance(bad, sqlite3.OperationalError) and "locked" in said:
        return Conflict(f"another agent uses the outbox {path}", field="outbox.path", remedy="stop it first, or name another file")
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
