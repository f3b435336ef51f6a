"""What we measure ourselves against: the same writes by hand, with the bare drivers and no rules.

A batch locks and reads the allocations, adds up in dictionaries, and writes the same rows as the bank does: the sums on the
allocation and on the user, the run, the journal entry with its sums and 32 bytes of link. Nothing is judged, hashed, priced or
looked up to see whether it was asked before.
"""

from __future__ import annotations

from typing import Any

LINK = bytes(32)
RUN = "(id, cluster, job_id, submitted, restart, allocation, owner, partition, state, held, charged, written_off, refunded, start_at, until_at)"
ENTRY = (
    "(id, book, seq, at, kind, amount, run, owner, actor, acting_as, key, digest, deposited, charged, held, credit_limit, overrun, "
    "comment, details, link)"
)
DETAILS = '{"run":["bench",1234567,1700000000,0],"partition":"cpu","start":1700000000,"until":1700090000}'


class Loop:
    """Holds, then charges, `batch` at a time, on allocations taken in turn. Subclasses speak to one database."""

    def __init__(self, allocations: list[int], first: int) -> None:
        self._allocations = allocations
        self._next = first
        self._job = first

    def work(self, pairs: int, batch: int) -> int:
        """Do `pairs` holds and their charges; returns the number of operations."""
        for begin in range(0, pairs, batch):
            size = min(batch, pairs - begin)
            runs = self._hold(size)
            self._charge(runs)
        return 2 * pairs

    def _hold(self, size: int) -> list[tuple[int, int]]:
        runs = []
        for _ in range(size):
            self._next += 1
            self._job += 1
            runs.append((self._next, self._allocations[self._job % len(self._allocations)]))
        sums = self._lock({allocation for _, allocation in runs})
        run_rows, entry_rows = [], []
        for number, allocation in runs:
            row = sums[allocation]
            row[2] += 60
            row[3] += 1
            run_rows.append((number, "loop", number, 1, 0, allocation, 1000, "cpu", "held", 60, 0, 0, 0, 1, 2))
            entry_rows.append(_entry(number, allocation, row, "hold", 60, number))
        self._write(sums, run_rows, [], entry_rows, 60, 0)
        return runs

    def _charge(self, runs: list[tuple[int, int]]) -> None:
        sums = self._lock({allocation for _, allocation in runs})
        closed, entry_rows = [], []
        for number, allocation in runs:
            self._next += 1
            row = sums[allocation]
            row[2] -= 60
            row[1] += 30
            row[3] += 1
            closed.append((number,))
            entry_rows.append(_entry(self._next, allocation, row, "charge", 30, number))
        self._write(sums, [], closed, entry_rows, -60, 30)

    def _lock(self, allocations: set[int]) -> dict[int, list[int]]:
        """[deposited, charged, held, seq] of each."""
        raise NotImplementedError

    def _write(self, sums: dict[int, list[int]], runs: list[Any], closed: list[Any], entries: list[Any], held: int, charged: int) -> None:
        raise NotImplementedError


def _entry(number: int, allocation: int, row: list[int], kind: str, amount: int, run: int) -> tuple[Any, ...]:
    sums = (row[0], row[1], row[2], 0, 0)
    return (number, allocation, row[3], 1_700_000_000, kind, amount, run, 1000, 0, None, None, None, *sums, None, DETAILS, LINK)


class SqliteLoop(Loop):
    """sqlite3's own executemany over a WAL database with synchronous=FULL."""

    def __init__(self, connection: Any, allocations: list[int], first: int) -> None:
        super().__init__(allocations, first)
        self._db = connection

    def _lock(self, allocations: set[int]) -> dict[int, list[int]]:
        self._db.execute("BEGIN IMMEDIATE")
        marks = ",".join("?" * len(allocations))
        found = self._db.execute(f"SELECT id, deposited, charged, held, seq FROM allocation WHERE id IN ({marks})", list(allocations))
        return {number: list(row) for number, *row in found}

    def _write(self, sums: dict[int, list[int]], runs: list[Any], closed: list[Any], entries: list[Any], held: int, charged: int) -> None:
        rows = [(row[1], row[2], row[3], LINK, number) for number, row in sums.items()]
        self._db.executemany("UPDATE allocation SET charged = ?, held = ?, seq = ?, link = ? WHERE id = ?", rows)
        self._db.executemany(
            "INSERT INTO user_sum (allocation, uid, charged, held) VALUES (?, 1000, ?, ?) "
            "ON CONFLICT (allocation, uid) DO UPDATE SET charged = excluded.charged, held = excluded.held",
            [(number, row[1], row[2]) for number, row in sums.items()],
        )
        if runs:
            self._db.executemany(f"INSERT INTO run {RUN} VALUES ({','.join('?' * 15)})", runs)
        if closed:
            statement = "UPDATE run SET state = 'charged', held = 0, charged = 30, ended_at = 3, outcome = 'COMPLETED', elapsed_seconds = 1800 WHERE id = ?"
            self._db.executemany(statement, closed)
        self._db.executemany(f"INSERT INTO journal {ENTRY} VALUES ({','.join('?' * 20)})", entries)
        self._db.execute("COMMIT")


class PostgresLoop(Loop):
    """psycopg with one statement for each table and whole columns as arrays (UNNEST), the quickest way by hand that we know."""

    def __init__(self, connection: Any, allocations: list[int], first: int) -> None:
        super().__init__(allocations, first)
        self._db = connection

    def _lock(self, allocations: set[int]) -> dict[int, list[int]]:
        statement = "SELECT id, deposited, charged, held, seq FROM allocation WHERE id = ANY (%s) ORDER BY id FOR UPDATE"
        return {number: list(row) for number, *row in self._db.execute(statement, [list(allocations)])}

    def _write(self, sums: dict[int, list[int]], runs: list[Any], closed: list[Any], entries: list[Any], held: int, charged: int) -> None:
        numbers = list(sums)
        charges, holds, seqs = ([row[each] for row in sums.values()] for each in (1, 2, 3))
        self._db.execute(
            "UPDATE allocation SET charged = new.charged, held = new.held, seq = new.seq, link = %s "
            "FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (id, charged, held, seq) WHERE allocation.id = new.id",
            [LINK, numbers, charges, holds, seqs],
        )
        self._db.execute(
            "INSERT INTO user_sum (allocation, uid, charged, held) SELECT id, 1000, charged, held "
            "FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS new (id, charged, held) "
            "ON CONFLICT (allocation, uid) DO UPDATE SET charged = excluded.charged, held = excluded.held",
            [numbers, charges, holds],
        )
        if runs:
            kinds = "bigint text bigint bigint bigint bigint bigint text text bigint bigint bigint bigint bigint bigint"
            self._unnest("run", RUN, kinds, runs)
        if closed:
            self._db.execute(
                "UPDATE run SET state = 'charged', held = 0, charged = 30, ended_at = 3, outcome = 'COMPLETED', elapsed_seconds = 1800 "
                "WHERE id = ANY (%s)",
                [[number for (number,) in closed]],
            )
        kinds = "bigint bigint bigint bigint text bigint bigint bigint bigint bigint text bytea " + "bigint " * 5 + "text text bytea"
        self._unnest("journal", ENTRY, kinds, entries)
        self._db.commit()

    def _unnest(self, table: str, columns: str, kinds: str, rows: list[Any]) -> None:
        arrays = ", ".join(f"%s::{kind}[]" for kind in kinds.split())
        self._db.execute(
            f"INSERT INTO {table} {columns} SELECT * FROM unnest({arrays})", [list(column) for column in zip(*rows, strict=True)]
        )
