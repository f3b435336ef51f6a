"""Loops that the bank is measured against: the same writes by hand, with bare drivers and no rules.

A batch locks and reads the allocations, adds up in dictionaries, and writes the same rows as the
bank: the sums on the allocation and on the user, the run, the journal entry with its sums and 32
bytes of link. Nothing is checked, hashed, priced or searched for an earlier request with the same
key. Rows are passed as they are, although the SQLite driver takes longer for each None and for the
link than for ten numbers: the bank avoids that, a loop by hand would not.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from msgspec.msgpack import encode

from fairbank.store.sqlite.driver import driver

LINK = bytes(32)
UID = 1_000
HELD, CHARGED = 60, 30
STARTS = 1_700_000_000
RUN = (
    "id, cluster, job_id, submitted, restart, project, allocation, owner, partition, state, held,"
    " charged, written_off, refunded, start_at, until_at, set_by"
)
ENTRY = (
    "id, allocation, seq, at, kind, amount, run, owner, actor, acting_as, key, digest, deposited,"
    " charged, held, credit_limit, overrun, comment, details, link"
)
STARTED = (
    '{"run":["loop",1234567,1700000000,0],"project":1234,"partition":"cpu",'
    '"start":1700000000,"until":1700090000}'
)
ENDED = '{"outcome":"COMPLETED","elapsed_seconds":1800,"ended":1700001800,"written_off":0}'

Row = tuple[Any, ...]


class Started(NamedTuple):
    """Run whose hold is written."""

    number: int
    allocation: int


class Sums:
    """Sums of an allocation while a batch is added up."""

    __slots__ = ("charged", "deposited", "held", "link", "seq")

    def __init__(
        self, deposited: int, charged: int, held: int, seq: int, link: bytes = LINK
    ) -> None:
        self.deposited, self.charged, self.held, self.seq, self.link = (
            deposited,
            charged,
            held,
            seq,
            link,
        )


class Loop:
    """Holds, then their charges, on the allocations in turn. Each subclass uses one database."""

    def __init__(self, allocations: Sequence[int], first: int) -> None:
        self._allocations = allocations
        self._last = first

    def work(self, pairs: int, batch: int) -> int:
        """Do `pairs` holds and their charges, `batch` at a time. Return the number of
        operations.
        """
        for begin in range(0, pairs, batch):
            self._charge(self._hold(min(batch, pairs - begin)))
        return 2 * pairs

    def _hold(self, size: int) -> list[Started]:
        begun = [
            Started(number, self._allocations[number % len(self._allocations)])
            for number in self._numbers(size)
        ]
        sums = self._lock({run.allocation for run in begun})
        runs, entries = [], []
        for number, allocation in begun:
            own = sums[allocation]
            own.held += HELD
            own.seq += 1
            of = (allocation, allocation)  # its project has the same number
            runs.append(
                (
                    number,
                    "loop",
                    number,
                    STARTS,
                    0,
                    *of,
                    UID,
                    "cpu",
                    "held",
                    HELD,
                    0,
                    0,
                    0,
                    STARTS,
                    STARTS + 90_000,
                    number,
                )
            )
            entries.append(self._entry(number, allocation, own, "hold", HELD, number, STARTED))
        self._write(sums, runs, [], entries)
        return begun

    def _charge(self, runs: list[Started]) -> None:
        sums = self._lock({run.allocation for run in runs})
        closed, entries = [], []
        for entry, (number, allocation) in zip(self._numbers(len(runs)), runs, strict=True):
            own = sums[allocation]
            own.held -= HELD
            own.charged += CHARGED
            own.seq += 1
            closed.append((entry, number))
            entries.append(self._entry(entry, allocation, own, "charge", CHARGED, number, ENDED))
        self._write(sums, [], closed, entries)

    def _numbers(self, count: int) -> range:
        self._last += count
        return range(self._last - count + 1, self._last + 1)

    def _lock(self, allocations: set[int]) -> dict[int, Sums]:
        """Begin a transaction, lock the allocations and read their sums."""
        raise NotImplementedError

    def _write(
        self,
        sums: dict[int, Sums],
        runs: list[Row],
        closed: list[tuple[int, int]],
        entries: list[Row],
    ) -> None:
        """Write the sums, new `runs`, the ends of `closed` runs (entry, run) and the entries, and
        commit.
        """
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _entry(
        self,
        number: int,
        allocation: int,
        sums: Sums,
        kind: str,
        amount: int,
        run: int,
        details: str,
    ) -> Row:
        after = (sums.deposited, sums.charged, sums.held, 0, 0)
        return (
            number,
            allocation,
            sums.seq,
            STARTS,
            kind,
            amount,
            run,
            UID,
            0,
            None,
            None,
            None,
            *after,
            None,
            details,
            sums.link,
        )


class SqliteLoop(Loop):
    """Loop with executemany of sqlite3, over a database in the bank's modes."""

    def __init__(self, path: Path, allocations: Sequence[int], first: int) -> None:
        super().__init__(allocations, first)
        self._db = driver.connect(str(path), isolation_level=None)
        for setting in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "cache_size = -65536",
        ):
            self._db.execute(f"PRAGMA {setting}")

    def close(self) -> None:
        self._db.close()

    def _lock(self, allocations: set[int]) -> dict[int, Sums]:
        self._db.execute("BEGIN IMMEDIATE")
        marks = ",".join("?" * len(allocations))
        rows = self._db.execute(
            f"SELECT id, deposited, charged, held, seq FROM allocation WHERE id IN ({marks})",
            list(allocations),
        )
        return {number: Sums(*sums) for number, *sums in rows}

    def _write(
        self,
        sums: dict[int, Sums],
        runs: list[Row],
        closed: list[tuple[int, int]],
        entries: list[Row],
    ) -> None:
        self._db.executemany(
            "UPDATE allocation SET charged = ?, held = ?, seq = ?, link = ? WHERE id = ?",
            [(own.charged, own.held, own.seq, own.link, number) for number, own in sums.items()],
        )
        self._db.executemany(
            "INSERT INTO user_sum (allocation, uid, charged, held) VALUES (?, ?, ?, ?) ON CONFLICT"
            " (allocation, uid) DO UPDATE SET charged = excluded.charged, held = excluded.held",
            [(number, UID, own.charged, own.held) for number, own in sums.items()],
        )
        self._db.executemany(f"INSERT INTO run ({RUN}) VALUES ({','.join('?' * 17)})", runs)
        self._db.executemany(
            "UPDATE run SET state = 'charged', held = 0, charged = ?, ended_at = 1700001800,"
            " outcome = 'COMPLETED', elapsed_seconds = 1800, set_by = ? WHERE id = ?",
            [(CHARGED, *row) for row in closed],
        )
        self._db.executemany(
            f"INSERT INTO journal ({ENTRY}) VALUES ({','.join('?' * 20)})", entries
        )
        self._db.execute("COMMIT")


class LinkingSqliteLoop(SqliteLoop):
    """SQLite loop that also links every entry to the one before it, as the bank does."""

    def _lock(self, allocations: set[int]) -> dict[int, Sums]:
        sums = super()._lock(allocations)
        marks = ",".join("?" * len(sums))
        for number, link in self._db.execute(
            f"SELECT id, link FROM allocation WHERE id IN ({marks})", list(sums)
        ):
            sums[number].link = link
        return sums

    def _entry(
        self,
        number: int,
        allocation: int,
        sums: Sums,
        kind: str,
        amount: int,
        run: int,
        details: str,
    ) -> Row:
        row = super()._entry(number, allocation, sums, kind, amount, run, details)
        sums.link = blake2b(encode(row), digest_size=32).digest()
        return (*row[:-1], sums.link)


class PostgresLoop(Loop):
    """Loop with psycopg: one statement per table, whole columns as arrays (UNNEST)."""

    def __init__(self, conninfo: str, allocations: Sequence[int], first: int) -> None:
        super().__init__(allocations, first)
        self._db = psycopg.connect(conninfo)

    def close(self) -> None:
        self._db.close()

    def _lock(self, allocations: set[int]) -> dict[int, Sums]:
        statement = (
            "SELECT id, deposited, charged, held, seq FROM allocation WHERE id = ANY (%s) ORDER BY"
            " id FOR NO KEY UPDATE"
        )
        return {
            number: Sums(*sums)
            for number, *sums in self._db.execute(statement, [list(allocations)])
        }

    def _write(
        self,
        sums: dict[int, Sums],
        runs: list[Row],
        closed: list[tuple[int, int]],
        entries: list[Row],
    ) -> None:
        numbers = list(sums)
        charged, held, seqs = zip(
            *((own.charged, own.held, own.seq) for own in sums.values()), strict=True
        )
        self._db.execute(
            "UPDATE allocation SET charged = new.charged, held = new.held, seq = new.seq, link = %s"
            " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (id,"
            " charged, held, seq) WHERE allocation.id = new.id",
            [LINK, numbers, list(charged), list(held), list(seqs)],
        )
        self._db.execute(
            "INSERT INTO user_sum (allocation, uid, charged, held) SELECT id, %s, charged, held"
            " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS new (id, charged, held) ON"
            " CONFLICT (allocation, uid) DO UPDATE SET charged = excluded.charged, held ="
            " excluded.held",
            [UID, numbers, list(charged), list(held)],
        )
        if runs:
            self._insert(
                "run", RUN, "bigint text" + " bigint" * 6 + " text text" + " bigint" * 7, runs
            )
        if closed:
            self._db.execute(
                "UPDATE run SET state = 'charged', held = 0, charged = %s, ended_at = 1700001800,"
                " outcome = 'COMPLETED', elapsed_seconds = 1800, set_by = new.set_by FROM"
                " unnest(%s::bigint[], %s::bigint[]) AS new (set_by, id) WHERE run.id = new.id",
                [CHARGED, *map(list, zip(*closed, strict=True))],
            )
        kinds = (
            "bigint bigint bigint bigint text"
            + " bigint" * 5
            + " text bytea"
            + " bigint" * 5
            + " text text bytea"
        )
        self._insert("journal", ENTRY, kinds, entries)
        self._db.commit()

    def _insert(self, table: str, columns: str, kinds: str, rows: list[Row]) -> None:
        arrays = ", ".join(f"%s::{kind}[]" for kind in kinds.split())
        values = [list(column) for column in zip(*rows, strict=True)]
        self._db.execute(
            f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays})".encode(), values
        )


class PostgresCopyLoop(PostgresLoop):
    """PostgreSQL loop that inserts new rows by COPY, the fastest way by hand that we know."""

    def _insert(self, table: str, columns: str, kinds: str, rows: list[Row]) -> None:
        with (
            self._db.cursor() as cursor,
            cursor.copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy,
        ):
            for row in rows:
                copy.write_row(row)
