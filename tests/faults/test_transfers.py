"""The bank test: credit moves between allocations, through two servers at once, and a reader
always sees the same total.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.faults.nemesis import Nemesis
from tests.faults.site import SU, found
from tests.faults.tables import Books
from tests.faults.witness import AWAY, PAUSE_SECONDS, Witness, check_books
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, banking, banking_twice
from tests.support.wire import Lost, Wire, run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]

Enough = Callable[[int], bool]
Strike = Callable[[], Awaitable[None]]

ALLOCATIONS = 24
EACH = 100 * SU
READERS, MOVERS = 4, 40


async def move(
    mover: int,
    banks: Sequence[FairbankServer],
    numbers: list[int],
    witness: Witness,
    seed: int,
    enough: Enough,
) -> None:
    """Transfers between any two, many of them for more than there is."""
    rng, wires = random.Random(f"{seed}:{mover}"), [Wire(each.socket) for each in banks]
    for step in itertools.count():
        if enough(step):
            return
        source, target = rng.sample(numbers, 2)
        body = {"to": target, "amount": rng.randrange(1, EACH), "comment": "bank test"}
        await witness.hear(wires, rng, f"/alloc/{source}/transfer", body, f"{mover}.{step}")


async def look(bank: FairbankServer, over: asyncio.Event, witness: Witness) -> int:
    """Add up all balances, again and again. How often."""
    wire, looks = Wire(bank.socket), 0
    while not over.is_set():
        try:
            answer = await wire.ask("GET", "/balance?limit=1000")
        except Lost:
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        witness.heard(answer)
        if answer.status == AWAY:
            continue
        left = [row["available"] for row in answer.data]
        assert (len(left), sum(left)) == (ALLOCATIONS, ALLOCATIONS * EACH)
        assert min(left) >= 0
        looks += 1
    return looks


async def bank_test(
    banks: Sequence[FairbankServer],
    witness: Witness,
    seed: int,
    tell: Tell,
    enough: Enough,
    strike: Strike,
) -> None:
    """Movers and readers at work until it is enough, and until `strike` has done what it wants to
    do meanwhile.
    """
    wire, over = Wire(banks[0].socket), asyncio.Event()
    numbers = [
        await found(wire, f"p{each}", 6_000 + each, credit=EACH) for each in range(ALLOCATIONS)
    ]
    begun = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        looking = [
            tasks.create_task(look(banks[each % len(banks)], over, witness))
            for each in range(READERS)
        ]
        async with asyncio.TaskGroup() as moving:
            for mover in range(MOVERS):
                moving.create_task(move(mover, banks, numbers, witness, seed, enough))
            await strike()
        over.set()
    moved = sum(answer.status == 201 for answer in witness.told.values())
    looks = sum(each.result() for each in looking)
    tell(
        f"{moved:,} transfers, {looks:,} looks at the total, {time.monotonic() - begun:.1f} s;"
        f" {witness.summary()}"
    )


def check(banks: Sequence[FairbankServer], witness: Witness) -> None:
    figures = check_books(witness, Books(banks[0].store))
    assert figures["transfer-out"] == figures["transfer-in"]
    assert banks[0].command("audit", "verify").returncode == 0


def campaign(banks: Sequence[FairbankServer], times: int, seed: int, tell: Tell) -> None:
    """So many transfers of each mover, and nothing happens meanwhile."""
    books, witness = Books(banks[0].store), Witness()
    before = 0 if books.is_sqlite else books.deadlocks()
    run(bank_test(banks, witness, seed, tell, lambda step: step >= times, peace))
    check(banks, witness)
    assert books.is_sqlite or books.deadlocks() == before


async def peace() -> None:
    """No strike."""


@pytest.mark.campaign
def test_the_total_never_changes_while_servers_and_database_are_killed(
    postgres18: PostgresServer, database: str, rounds: Rounds, seed: int, tell: Tell
) -> None:
    kills, witness, done = rounds(40, 2), Witness(), asyncio.Event()
    with banking_twice(database) as (one, two):
        nemesis = Nemesis(
            [one, two],
            {"one": one, "two": two, "postgres": postgres18},
            witness,
            random.Random(seed),
        )

        async def strike() -> None:
            await nemesis.strike(kills)
            done.set()

        run(bank_test([one, two], witness, seed, tell, lambda step: done.is_set(), strike))
        tell(nemesis.summary())
        check([one, two], witness)


@pytest.mark.campaign
def test_the_total_never_changes_on_postgresql(
    postgres: PostgresServer, rounds: Rounds, seed: int, tell: Tell
) -> None:
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
