"""kill -9 at random times under load: what a client got confirmed is done, once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from tests.faults.nemesis import Nemesis, Victim, work_until
from tests.faults.storm import Storm, watch
from tests.faults.tables import Books
from tests.faults.witness import Witness, check_books
from tests.support.conditions import wait_until
from tests.support.keeper import children
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, banking, banking_twice
from tests.support.wire import run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]

CLIENTS = 24
RECOVERY_SECONDS = 30  # of a noisy machine that starts two servers and a database at once


class Alone:
    """A server or, with `child`, its counter's process, killed without the other, which is to end
    by itself.
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


async def struck(
    banks: Sequence[FairbankServer], victims: dict[str, Victim], kills: int, seed: int, tell: Tell
) -> Witness:
    """Run clients on `banks` while processes are killed so often. Return their answers."""
    witness, over = Witness(), asyncio.Event()
    sockets = [each.socket for each in banks]
    storm = Storm(CLIENTS, 0, seed)
    staff = await storm.open(sockets, witness)
    nemesis = Nemesis(banks, victims, witness, random.Random(f"{seed}:nemesis"))
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(work_until(over, storm.client(number, sockets, witness)))
        tasks.create_task(staff.go_on(over))
        tasks.create_task(watch(sockets[0], staff.allocation, witness, over))
        await nemesis.strike(kills)
        over.set()
    tell(witness.summary())
    tell(nemesis.summary())
    assert nemesis.kills.total() >= kills
    assert max(nemesis.recoveries) < RECOVERY_SECONDS
    return witness


def campaign(
    banks: Sequence[FairbankServer], victims: dict[str, Victim], kills: int, seed: int, tell: Tell
) -> None:
    """Strike, then read the books: nothing lost, nothing twice, no hold but those of runs that
    no report ended.
    """
    witness = run(struck(banks, victims, kills, seed, tell))
    figures = check_books(witness, Books(banks[0].store))
    audit = banks[0].command("audit", "verify")
    tell(f"{figures}; {audit.stdout.strip()}")
    assert audit.returncode == 0, audit.stdout


@pytest.mark.campaign
def test_two_servers_and_postgresql_are_killed_in_any_order(
    postgres: PostgresServer, rounds: Rounds, seed: int, tell: Tell
) -> None:
    with postgres.fresh_database() as name, banking_twice(postgres.url(name)) as (one, two):
        campaign(
            [one, two], {"one": one, "two": two, "postgres": postgres}, rounds(100, 8), seed, tell
        )


@pytest.mark.campaign
def test_a_server_on_sqlite_is_killed(rounds: Rounds, seed: int, tell: Tell) -> None:
    with banking() as server:
        campaign([server], {"server": server}, rounds(40, 4), seed, tell)


@pytest.mark.campaign
@pytest.mark.parametrize("child", [False, True], ids=["server", "counter"])
def test_a_server_or_its_counter_in_a_process_of_its_own_is_killed(
    database: str, child: bool, rounds: Rounds, seed: int, tell: Tell
) -> None:
    with banking(database, server='write_queue = "process"') as server:
        campaign(
            [server],
            {"counter" if child else "server": Alone(server, child=child)},
            rounds(20, 4),
            seed,
            tell,
        )


@pytest.mark.slow
def test_a_server_and_its_database_survive_a_kill_each(
    postgres18: PostgresServer, database: str, tell: Tell
) -> None:
    with banking(database) as server:
        campaign([server], {"server": server, "postgres": postgres18}, 2, 3, tell)


@pytest.mark.slow
def test_a_server_on_sqlite_survives_a_kill(tell: Tell) -> None:
    with banking() as server:
        campaign([server], {"server": server}, 1, 1, tell)
