"""Restore while a server runs: it continues with the restored ledger, and no client sees a
failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.faults.answer_log import PAUSE_SECONDS, AnswerLog
from tests.faults.contention import Contention
from tests.faults.in_process import findings
from tests.faults.ledger_tables import LedgerTables
from tests.faults.load_backups import CLIENTS, check_accepts_runs, expected_balances
from tests.faults.nemesis import report_until, wait_for
from tests.faults.site import SU, create_project
from tests.support.figures import LogFigure
from tests.support.server import FairbankServer, run_bank
from tests.support.wire import Wire, run

Rounds = Callable[[int, int], int]

NAMES_SECONDS = 10  # the project cache is refreshed after 5


async def served_balances(wire: Wire) -> dict[int, tuple[str, int]]:
    """Return the account and the available credit of each allocation, as the server answers."""
    return {
        row["id"]: (row["account"], row["available"])
        for row in (await wire.ask("GET", "/balance?all=true&limit=1000")).data
    }


async def check_restored_balances(wire: Wire, expected: dict[int, tuple[str, int]]) -> None:
    """Check that amounts are the restored ones at once, and names after a few seconds."""
    balances = await served_balances(wire)
    assert {number: left for number, (_, left) in balances.items()} == {
        number: left for number, (_, left) in expected.items()
    }
    deadline = time.monotonic() + NAMES_SECONDS
    while await served_balances(wire) != expected:
        assert time.monotonic() < deadline, f"{balances} instead of {expected}"
        await asyncio.sleep(PAUSE_SECONDS)


async def create_other_projects(wire: Wire) -> None:
    """Create projects with the names of the backup but other numbers, and one that the backup does
    not have.
    """
    for number, name in enumerate(["chemistry", "physics", "history"]):
        await create_project(wire, name, 7_000 + number, credit=100_000 * SU)


async def restore_when_idle(server: FairbankServer, backup: Path) -> None:
    wire = Wire(server.socket)
    await create_other_projects(wire)
    assert {account for account, _ in (await served_balances(wire)).values()} == {
        "chemistry",
        "physics",
        "history",
    }
    done = await asyncio.to_thread(server.command, "restore", str(backup), "--replace", "--yes")
    assert done.returncode == 0, done.stderr
    await check_restored_balances(wire, expected_balances(backup))
    await check_accepts_runs(server)


async def check_never_empty(wire: Wire, over: asyncio.Event) -> None:
    """Check that a reader sees the old data or the new, never none, until the restore is done."""
    while not over.is_set():
        assert len(await served_balances(wire)) >= 2


async def restore_under_load(
    server: FairbankServer, backups: Sequence[Path], seed: int
) -> AnswerLog:
    """Restore backups while clients work; return their answers, none of which is a failure."""
    answer_log, over = AnswerLog(replaced=True), asyncio.Event()
    wire = Wire(server.socket)
    await create_other_projects(wire)
    contention = Contention(CLIENTS, 0, seed)
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(
                report_until(over, contention.client(number, [server.socket], answer_log))
            )
        tasks.create_task(check_never_empty(wire, over))
        for backup in backups:
            seen = len(answer_log.latencies)

            await wait_for(answer_log.has_latencies(seen + 201), "clients at work")
            done = await asyncio.to_thread(
                server.command, "restore", str(backup), "--replace", "--yes"
            )
            assert done.returncode == 0, done.stderr
        seen = len(answer_log.latencies)
        await wait_for(
            lambda: len(answer_log.latencies) > seen + 200, "the clients to be at work again"
        )
        over.set()
    return answer_log


@pytest.mark.slow
def test_running_server_answers_from_the_restored_database(database: str, backup: Path) -> None:
    with run_bank(database) as server:
        run(restore_when_idle(server, backup))
    assert findings(database) == ()


@pytest.mark.campaign
def test_running_server_on_sqlite_answers_from_the_restored_database(backup: Path) -> None:
    with run_bank() as server:
        run(restore_when_idle(server, backup))
        assert findings(server.store) == ()


@pytest.mark.campaign
def test_restore_under_a_running_server_repeatedly(
    running_bank: FairbankServer, backup: Path, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    tables = LedgerTables(running_bank.store)
    answer_log = run(restore_under_load(running_bank, [backup] * rounds(20, 2), seed))
    assert findings(running_bank.store) == ()
    deadlocks = 0 if tables.is_sqlite else tables.deadlocks()
    log_figure(f"{answer_log.summary()}; deadlocks {deadlocks}")
    assert deadlocks == 0
