"""Backups: taken while clients work, and read with nothing of the product."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.audit_runs import findings
from tests.faults.nemesis import until, work_until
from tests.faults.site import SU, filled, report
from tests.faults.storm import Storm
from tests.faults.tables import Books
from tests.faults.witness import Witness, entry_of
from tests.support.server import FairbankServer
from tests.support.wire import Wire

CLIENTS = 16


@dataclass(frozen=True)
class Taken:
    """A backup, what had been acknowledged when it was begun, and what had been asked when it was
    done.
    """

    path: Path
    before: frozenset[str]
    asked: frozenset[str]


async def taken_in_a_storm(
    server: FairbankServer, backups: int, seed: int, folder: Path, *, thousands: int
) -> tuple[list[Taken], Witness]:
    """Backup after backup while clients work, of books that have so many thousand runs already."""
    witness, over = Witness(), asyncio.Event()
    storm = Storm(CLIENTS, 0, seed)
    staff = await storm.open([server.socket], witness)
    await filled(Wire(server.socket), thousands)
    taken = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(work_until(over, storm.client(number, [server.socket], witness)))
        tasks.create_task(staff.go_on(over))
        for number in range(backups):
            seen = len(witness.told)

            await until(lambda: len(witness.told) >= seen + 200, "200 more operations")  # noqa: B023
            before = frozenset(
                key for key, answer in witness.told.items() if entry_of(answer) is not None
            )
            path = folder / f"{number}.fbk"
            done = await asyncio.to_thread(server.command, "backup", "create", str(path))
            assert done.returncode == 0, done.stderr
            taken.append(Taken(path, before, frozenset(witness.asked)))
        over.set()
    return taken, witness


def rows(path: Path, table: str) -> Iterator[Any]:
    """The rows of one table in a backup."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            read = json.loads(line)
            if isinstance(read, list) and read[0] == table:
                yield read[1]


BOOK, SEQ, KEY, SUMS = 1, 2, 10, slice(12, 17)  # of an entry


def last_sums(path: Path) -> dict[int, list[int]]:
    """The sums after each book's last entry in a backup."""
    return {entry[BOOK]: entry[SUMS] for entry in rows(path, "entry") if entry[BOOK]}


def balances(books: Books) -> dict[int, list[int]]:
    names = ("deposited", "charged", "held", "credit_limit", "overrun")
    return {
        row["id"]: [row[name] for name in names] for row in books.rows("SELECT * FROM allocation")
    }


def check_restored(url: str, taken: Taken) -> int:
    """The restored books are those of one moment between the begin and the end of the backup. How
    many entries.
    """
    books = Books(url)
    assert findings(url) == ()
    assert balances(books) == last_sums(taken.path)
    keys = {row["key"] for row in books.rows("SELECT key FROM journal WHERE key IS NOT NULL")}
    assert taken.before <= keys <= taken.asked
    return len(books.rows("SELECT id FROM journal"))


def entries_of_runs(path: Path) -> dict[int, tuple[str, int]]:
    """Return the account and the available credit of each allocation in a backup, as a server
    should answer.
    """
    accounts = {row["id"]: row["account"] for row in rows(path, "project")}
    left = {book: sums[0] + sums[3] - sums[1] - sums[2] for book, sums in last_sums(path).items()}
    return {
        row["id"]: (accounts[row["project"]], left[row["id"]]) for row in rows(path, "allocation")
    }


async def works(server: FairbankServer) -> None:
    """The restored bank takes a run, and numbers it after what is there."""
    wire = Wire(server.socket)
    (last,) = Books(server.store).rows("SELECT max(id) AS id FROM journal")
    facts = {"submitted": int(time.time()), "owner": 7}
    deposit = {"amount": 100 * SU, "comment": "after the restore"}
    assert (await wire.ask("POST", "/alloc/1/deposit", deposit)).data
    held = await wire.ask("POST", "/job", report("hold", "physics", 99, amount=SU, **facts))
    assert held.data["entry"] > last["id"]
    ended = await wire.ask("POST", "/job", report("complete", "physics", 99, amount=7, **facts))
    assert (ended.data["run"], ended.data["amount"]) == (held.data["run"], 7)
