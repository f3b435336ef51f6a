"""The bank test: credit moves between allocations, through two servers at once, and whoever looks always sees the same total."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence

import pytest

from tests.faults.books import Books
from tests.faults.centre import SU, found
from tests.faults.witness import Witness, check_books
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, banking, banking_twice
from tests.support.wire import Wire, run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]

ALLOCATIONS = 24
EACH = 100 * SU
READERS, MOVERS = 4, 40


async def move(mover: int, times: int, banks: Sequence[FairbankServer], numbers: list[int], witness: Witness, seed: int) -> None:
    """Transfers between any two, many of them for more than there is."""
    rng = random.Random(f"{seed}:{mover}")
    wires = [Wire(each.socket) for each in banks]
    for step in range(times):
        source, target = rng.sample(numbers, 2)
        body = {"to": target, "amount": rng.randrange(1, EACH), "comment": "bank test"}
        await witness.hear(wires, rng, f"/alloc/{source}/transfer", body, f"{mover}.{step}")


async def look(bank: FairbankServer, over: asyncio.Event, witness: Witness) -> int:
    """Add up all balances, again and again. How often."""
    wire, looks = Wire(bank.socket), 0
    while not over.is_set():
        answer = await wire.ask("GET", "/balance?limit=1000")
        witness.heard(answer)
        left = [row["available"] for row in answer.data]
        assert (len(left), sum(left)) == (ALLOCATIONS, ALLOCATIONS * EACH)
        assert min(left) >= 0
        looks += 1
    return looks


async def bank_test(banks: Sequence[FairbankServer], times: int, seed: int, tell: Tell) -> Witness:
    wire, witness, over = Wire(banks[0].socket), Witness(), asyncio.Event()
    numbers = [await found(wire, f"p{each}", 6_000 + each, credit=EACH) for each in range(ALLOCATIONS)]
    begun = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        looking = [tasks.create_task(look(banks[each % len(banks)], over, witness)) for each in range(READERS)]
        async with asyncio.TaskGroup() as moving:
            for mover in range(MOVERS):
                moving.create_task(move(mover, times, banks, numbers, witness, seed))
        over.set()
    moved = sum(answer.status == 201 for answer in witness.told.values())
    looks = sum(each.result() for each in looking)
    tell(f"{moved:,} transfers, {looks:,} looks at the total, {time.monotonic() - begun:.1f} s; {witness.summary()}")
    return witness


def campaign(banks: Sequence[FairbankServer], times: int, seed: int, tell: Tell) -> None:
    books = Books(banks[0].store)
    before = 0 if books.is_sqlite else books.deadlocks()
    witness = run(bank_test(banks, times, seed, tell))
    figures = check_books(witness, books)
    assert figures["transfer-out"] == figures["transfer-in"]
    assert books.is_sqlite or books.deadlocks() == before
    assert banks[0].command("audit", "verify").returncode == 0


@pytest.mark.campaign
def test_the_total_never_changes_on_postgresql(postgres: PostgresServer, rounds: Rounds, seed: int, tell: Tell) -> None:
    with postgres.fresh_database() as name, banking_twice(postgres.url(name)) as servers:
        campaign(servers, rounds(500, 60), seed, tell)


@pytest.mark.campaign
def test_the_total_never_changes_on_sqlite(rounds: Rounds, seed: int, tell: Tell) -> None:
    with banking() as server:
        campaign([server], rounds(500, 60), seed, tell)


@pytest.mark.slow
def test_the_total_never_changes_in_a_short_while(database: str, tell: Tell) -> None:
    with banking_twice(database) as servers:
        campaign(servers, 6, 1, tell)
