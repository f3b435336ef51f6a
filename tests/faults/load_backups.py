"""Backups taken while clients work, and a reader of them that uses no code of the product."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.answer_log import AnswerLog, entry_of
from tests.faults.contention import Contention
from tests.faults.in_process import findings
from tests.faults.ledger_tables import LedgerTables
from tests.faults.nemesis import report_until, wait_for
from tests.faults.site import SU, create_history, report
from tests.support.server import FairbankServer
from tests.support.wire import Wire

CLIENTS = 16


@dataclass(frozen=True)
class BackupRecord:
    """A backup, the keys acknowledged before it began, and the keys requested before it ended."""

    path: Path
    before: frozenset[str]
    requests: frozenset[str]


async def back_up_under_load(
    server: FairbankServer, backups: int, seed: int, folder: Path, *, thousands: int
) -> tuple[list[BackupRecord], AnswerLog]:
    """Take backups while clients work on a ledger that starts with `thousands` thousand runs."""
    answer_log, over = AnswerLog(), asyncio.Event()
    contention = Contention(CLIENTS, 0, seed)
    staff = await contention.open([server.socket], answer_log)
    await create_history(Wire(server.socket), thousands)
    records = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(
                report_until(over, contention.client(number, [server.socket], answer_log))
            )
        tasks.create_task(staff.adjust_credit(over))
        for number in range(backups):
            seen = len(answer_log.answers)

            await wait_for(answer_log.has_answers(seen + 200), "200 more operations")
            before = frozenset(
                key for key, answer in answer_log.answers.items() if entry_of(answer) is not None
            )
            path = folder / f"{number}.fbk"
            done = await asyncio.to_thread(server.command, "backup", "create", str(path))
            assert done.returncode == 0, done.stderr
            records.append(BackupRecord(path, before, frozenset(answer_log.requests)))
        over.set()
    return records, answer_log


def rows(path: Path, table: str) -> Iterator[Any]:
    """Yield the rows of one table in a backup."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            read = json.loads(line)
            if isinstance(read, list) and read[0] == table:
                yield read[1]


ALLOCATION, SEQ, KEY, SUMS = 1, 2, 10, slice(12, 17)  # of an entry


def last_sums(path: Path) -> dict[int, list[int]]:
    """Return the sums after the last entry of each allocation in a backup."""
    return {entry[ALLOCATION]: entry[SUMS] for entry in rows(path, "entry") if entry[ALLOCATION]}


def balances(tables: LedgerTables) -> dict[int, list[int]]:
    names = ("deposited", "charged", "held", "credit_limit", "overrun")
    return {
        row["id"]: [row[name] for name in names] for row in tables.rows("SELECT * FROM allocation")
    }


def check_restored(url: str, record: BackupRecord) -> int:
    """Check that the restored ledger is that of one time during the backup; return its number of
    entries.
    """
    tables = LedgerTables(url)
    assert findings(url) == ()
    assert balances(tables) == last_sums(record.path)
    keys = {row["key"] for row in tables.rows("SELECT key FROM journal WHERE key IS NOT NULL")}
    assert record.before <= keys <= record.requests
    return len(tables.rows("SELECT id FROM journal"))


def expected_balances(path: Path) -> dict[int, tuple[str, int]]:
    """Return the account and the available credit of each allocation in a backup, as a server
    should answer.
    """
    accounts = {row["id"]: row["account"] for row in rows(path, "project")}
    left = {
        journal: sums[0] + sums[3] - sums[1] - sums[2] for journal, sums in last_sums(path).items()
    }
    return {
        row["id"]: (accounts[row["terms"]["project"]], left[row["id"]])
        for row in rows(path, "allocation")
    }


async def check_accepts_runs(server: FairbankServer) -> None:
    """Check that the restored bank accepts a run and gives it a new number."""
    wire = Wire(server.socket)
    (last,) = LedgerTables(server.store).rows("SELECT max(id) AS id FROM journal")
    facts = {"submitted": int(time.time()), "owner": 7}
    deposit = {"amount": 100 * SU, "comment": "after the restore"}
    assert (await wire.ask("POST", "/alloc/1/deposit", deposit)).data
    held = await wire.ask("POST", "/job", report("hold", "physics", 99, amount=SU, **facts))
    assert held.data["entry"] > last["id"]
    ended = await wire.ask("POST", "/job", report("complete", "physics", 99, amount=7, **facts))
    assert (ended.data["run"], ended.data["amount"]) == (held.data["run"], 7)
