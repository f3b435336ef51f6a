"""Kills at random times under load: every acknowledged request is stored once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from tests.faults.answer_log import AnswerLog, check_ledger
from tests.faults.contention import Contention, watch
from tests.faults.ledger_tables import LedgerTables
from tests.faults.nemesis import Nemesis, Victim, report_until
from tests.support.conditions import wait_until
from tests.support.figures import LogFigure
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, run_bank, run_two_banks
from tests.support.supervisor import children
from tests.support.wire import run

Rounds = Callable[[int, int], int]

CLIENTS = 24
RECOVERY_SECONDS = 30  # a busy machine may start two servers and a database at once


class SingleProcess:
    """Server or, with `child`, its write queue process: killed alone, after which the other ends by
    itself.
    """

    def __init__(self, server: FairbankServer, *, child: bool) -> None:
        self._server, self._child = server, child

    def kill(self) -> None:
        if self._server.running:
            with suppress(ProcessLookupError):
                os.kill(
                    children(self._server.pid)[0] if self._child else self._server.pid,
                    signal.SIGKILL,
                )
        wait_until(lambda: not self._server.running, "both to end")

    def start(self) -> None:
        self._server.restart()


async def kill_under_load(
    banks: Sequence[FairbankServer],
    victims: dict[str, Victim],
    kills: int,
    seed: int,
    log_figure: LogFigure,
) -> AnswerLog:
    """Run clients on `banks` during `kills` kills. Return their answers."""
    answer_log, over = AnswerLog(), asyncio.Event()
    sockets = [bank.socket for bank in banks]
    contention = Contention(CLIENTS, 0, seed)
    staff = await contention.open(sockets, answer_log)
    nemesis = Nemesis(banks, victims, answer_log, random.Random(f"{seed}:nemesis"))
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(report_until(over, contention.client(number, sockets, answer_log)))
        tasks.create_task(staff.adjust_credit(over))
        tasks.create_task(watch(sockets[0], staff.allocation, answer_log, over))
        await nemesis.strike(kills)
        over.set()
    log_figure(answer_log.summary())
    log_figure(nemesis.summary())
    assert nemesis.kills.total() >= kills
    assert max(nemesis.recoveries) < RECOVERY_SECONDS
    return answer_log


def campaign(
    banks: Sequence[FairbankServer],
    victims: dict[str, Victim],
    kills: int,
    seed: int,
    log_figure: LogFigure,
) -> None:
    """Kill processes under load, then check the ledger: no lost or doubled entry, and open holds
    only of runs without end.
    """
    answer_log = run(kill_under_load(banks, victims, kills, seed, log_figure))
    figures = check_ledger(answer_log, LedgerTables(banks[0].store))
    audit = banks[0].command("audit", "verify")
    log_figure(f"{figures}; {audit.stdout.strip()}")
    assert audit.returncode == 0, audit.stdout


@pytest.mark.campaign
def test_two_servers_and_postgresql_recover_from_kills_in_any_order(
    postgres: PostgresServer, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with postgres.fresh_database() as name, run_two_banks(postgres.url(name)) as (first, second):
        campaign(
            [first, second],
            {"first": first, "second": second, "postgres": postgres},
            rounds(100, 8),
            seed,
            log_figure,
        )


@pytest.mark.campaign
def test_server_on_sqlite_recovers_from_kills(
    rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with run_bank() as server:
        campaign([server], {"server": server}, rounds(40, 4), seed, log_figure)


@pytest.mark.campaign
@pytest.mark.parametrize("child", [False, True], ids=["server", "counter"])
def test_server_and_its_write_queue_process_recover_from_kills(
    database: str, child: bool, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with run_bank(database, server='write_queue = "process"') as server:
        campaign(
            [server],
            {"counter" if child else "server": SingleProcess(server, child=child)},
            rounds(20, 4),
            seed,
            log_figure,
        )


@pytest.mark.slow
def test_server_and_database_recover_from_one_kill_each(
    postgres18: PostgresServer, database: str, log_figure: LogFigure
) -> None:
    with run_bank(database) as server:
        campaign([server], {"server": server, "postgres": postgres18}, 2, 3, log_figure)


@pytest.mark.slow
def test_server_on_sqlite_recovers_from_one_kill(log_figure: LogFigure) -> None:
    with run_bank() as server:
        campaign([server], {"server": server}, 1, 1, log_figure)
