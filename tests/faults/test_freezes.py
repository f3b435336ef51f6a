"""One of two servers stands still in the middle of its work, as a paused machine does: the other
goes on, and both agree afterwards.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable

import pytest

from tests.faults.nemesis import until, work_until
from tests.faults.storm import Storm
from tests.faults.tables import Books
from tests.faults.witness import Witness, check_books
from tests.support.server import FairbankServer, banking_twice
from tests.support.wire import run

Tell = Callable[[str], None]

CLIENTS = 24
# the database ends a transaction that stands still for half a minute; a machine of the tests is
# slow
STANDSTILL_SECONDS = 75


async def frozen(
    one: FairbankServer, two: FairbankServer, times: int, seed: int
) -> tuple[Witness, list[float]]:
    """Clients of each server; now and then the first stands still until the other's have got on.
    The seconds that took.
    """
    witnesses, over, rng = (Witness(), Witness()), asyncio.Event(), random.Random(seed)
    storm = Storm(CLIENTS, 0, seed)
    staff = await storm.open([two.socket], witnesses[1])
    seconds = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            server, witness = ((one, witnesses[0]), (two, witnesses[1]))[number % 2]
            tasks.create_task(work_until(over, storm.client(number, [server.socket], witness)))
        tasks.create_task(staff.go_on(over))
        for _ in range(times):
            await until(more(witnesses[0], rng.randrange(1, 80)), "the first server to work")
            os.kill(one.pid, signal.SIGSTOP)
            begun = asyncio.get_running_loop().time()
            await until(more(witnesses[1], 200), "the other server to go on")
            seconds.append(asyncio.get_running_loop().time() - begun)
            os.kill(one.pid, signal.SIGCONT)
        await until(more(witnesses[0], 50), "the first server to work again")
        over.set()
    return witnesses[0] | witnesses[1], seconds


def more(witness: Witness, answers: int) -> Callable[[], bool]:
    due = len(witness.waits) + answers
    return lambda: len(witness.waits) >= due


@pytest.mark.campaign
@pytest.mark.usefixtures("at_length")
def test_a_server_that_stands_still_does_not_stop_the_other(
    database: str, seed: int, tell: Tell
) -> None:
    """Each standstill may take a minute."""
    with banking_twice(database) as (one, two):
        witness, seconds = run(frozen(one, two, 8, seed))
        figures = check_books(witness, Books(database))
        tell(
            f"{len(seconds)} standstills; the other server needed {max(seconds):.1f} s at most for"
            f" 200 answers; {witness.summary()}"
        )
        tell(str(figures))
        assert max(seconds) < STANDSTILL_SECONDS
        assert one.command("audit", "verify").returncode == 0
