"""A backup that replaces the books of a running server: the server goes on in the restored ones,
and no client sees a failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.faults.audit_runs import findings
from tests.faults.backups import CLIENTS, entries_of_runs, works
from tests.faults.nemesis import until, work_until
from tests.faults.site import SU, found
from tests.faults.storm import Storm
from tests.faults.tables import Books
from tests.faults.witness import PAUSE_SECONDS, Witness
from tests.support.server import FairbankServer, banking
from tests.support.wire import Wire, run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]

NAMES_SECONDS = 10  # service.directory looks again after 5


async def answered(wire: Wire) -> dict[int, tuple[str, int]]:
    """Return the account and the available credit of each allocation, as the server answers."""
    return {
        row["id"]: (row["account"], row["available"])
        for row in (await wire.ask("GET", "/balance?all=true&limit=1000")).data
    }


async def tells_of(wire: Wire, due: dict[int, tuple[str, int]]) -> None:
    """The figures are the restored ones at once; names may be a few seconds old."""
    result = await answered(wire)
    assert {number: left for number, (_, left) in result.items()} == {
        number: left for number, (_, left) in due.items()
    }
    deadline = time.monotonic() + NAMES_SECONDS
    while await answered(wire) != due:
        assert time.monotonic() < deadline, f"{result} instead of {due}"
        await asyncio.sleep(PAUSE_SECONDS)


async def other_books(wire: Wire) -> None:
    """Projects of the same names as in the backup, numbered otherwise, and one that it does not
    have.
    """
    for number, name in enumerate(["chemistry", "physics", "history"]):
        await found(wire, name, 7_000 + number, credit=100_000 * SU)


async def replaced_at_rest(server: FairbankServer, backup: Path) -> None:
    wire = Wire(server.socket)
    await other_books(wire)
    assert {account for account, _ in (await answered(wire)).values()} == {
        "chemistry",
        "physics",
        "history",
    }
    done = await asyncio.to_thread(server.command, "restore", str(backup), "--replace")
    assert done.returncode == 0, done.stderr
    await tells_of(wire, entries_of_runs(backup))
    await works(server)


async def never_empty(wire: Wire, over: asyncio.Event) -> None:
    """Check that a reader sees the old data or the new, never none, until the restore is over."""
    while not over.is_set():
        assert len(await answered(wire)) >= 2


async def replaced_at_work(server: FairbankServer, backups: Sequence[Path], seed: int) -> Witness:
    """Clients at work while the books of their bank are replaced: none sees a failure, and
    they go on in the new ones.
    """
    witness, over = Witness(forgetful=True), asyncio.Event()
    wire = Wire(server.socket)
    await other_books(wire)
    storm = Storm(CLIENTS, 0, seed)
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(work_until(over, storm.client(number, [server.socket], witness)))
        tasks.create_task(never_empty(wire, over))
        for backup in backups:
            seen = len(witness.waits)

            await until(lambda: len(witness.waits) > seen + 200, "clients at work")  # noqa: B023
            done = await asyncio.to_thread(server.command, "restore", str(backup), "--replace")
            assert done.returncode == 0, done.stderr
        seen = len(witness.waits)
        await until(lambda: len(witness.waits) > seen + 200, "the clients to be at work again")
        over.set()
    return witness


@pytest.mark.slow
def test_running_server_answers_from_the_restored_database(database: str, backup: Path) -> None:
    with banking(database) as server:
        run(replaced_at_rest(server, backup))
    assert findings(database) == ()


@pytest.mark.campaign
def test_so_does_one_on_sqlite(backup: Path) -> None:
    with banking() as server:
        run(replaced_at_rest(server, backup))
        assert findings(server.store) == ()


@pytest.mark.campaign
def test_restore_under_a_running_server_repeatedly(
    serving: FairbankServer, backup: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    books = Books(serving.store)
    witness = run(replaced_at_work(serving, [backup] * rounds(20, 2), seed))
    assert findings(serving.store) == ()
    deadlocks = 0 if books.is_sqlite else books.deadlocks()
    tell(f"{witness.summary()}; deadlocks {deadlocks}")
    assert deadlocks == 0
