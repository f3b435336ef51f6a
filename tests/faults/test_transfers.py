"""Transfers between allocations through two servers at once: the total never changes for any
reader.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.faults.answer_log import PAUSE_SECONDS, UNAVAILABLE, AnswerLog, check_ledger
from tests.faults.ledger_tables import LedgerTables
from tests.faults.nemesis import Nemesis
from tests.faults.site import SU, create_project
from tests.support.figures import LogFigure
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, run_bank, run_two_banks
from tests.support.wire import ResponseLost, Wire, run

Rounds = Callable[[int, int], int]

Enough = Callable[[int], bool]
Strike = Callable[[], Awaitable[None]]

ALLOCATIONS = 24
INITIAL_CREDIT = 100 * SU
READERS, MOVERS = 4, 40


async def transfer_at_random(
    mover: int,
    banks: Sequence[FairbankServer],
    numbers: list[int],
    answer_log: AnswerLog,
    seed: int,
    enough: Enough,
) -> None:
    """Transfer credit between random allocations; many requests exceed the available credit."""
    rng, wires = random.Random(f"{seed}:{mover}"), [Wire(bank.socket) for bank in banks]
    for step in itertools.count():
        if enough(step):
            return
        source, target = rng.sample(numbers, 2)
        body = {"to": target, "amount": rng.randrange(1, INITIAL_CREDIT), "comment": "bank test"}
        await answer_log.request(wires, rng, f"/alloc/{source}/transfer", body, f"{mover}.{step}")


async def watch_total(bank: FairbankServer, over: asyncio.Event, answer_log: AnswerLog) -> int:
    """Check the sum of all balances repeatedly; return the number of reads."""
    wire, reads = Wire(bank.socket), 0
    while not over.is_set():
        try:
            answer = await wire.ask("GET", "/balance?limit=1000")
        except ResponseLost:
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        answer_log.check_answer(answer)
        if answer.status == UNAVAILABLE:
            continue
        left = [row["available"] for row in answer.data]
        assert (len(left), sum(left)) == (ALLOCATIONS, ALLOCATIONS * INITIAL_CREDIT)
        assert min(left) >= 0
        reads += 1
    return reads


async def transfer_and_watch(
    banks: Sequence[FairbankServer],
    answer_log: AnswerLog,
    seed: int,
    log_figure: LogFigure,
    enough: Enough,
    strike: Strike,
) -> None:
    """Run transfers and readers until `enough` is true and `strike` has returned."""
    wire, over = Wire(banks[0].socket), asyncio.Event()
    numbers = [
        await create_project(wire, f"p{number}", 6_000 + number, credit=INITIAL_CREDIT)
        for number in range(ALLOCATIONS)
    ]
    begun = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        readers = [
            tasks.create_task(watch_total(banks[number % len(banks)], over, answer_log))
            for number in range(READERS)
        ]
        async with asyncio.TaskGroup() as group:
            for mover in range(MOVERS):
                group.create_task(
                    transfer_at_random(mover, banks, numbers, answer_log, seed, enough)
                )
            await strike()
        over.set()
    moved = sum(answer.status == 201 for answer in answer_log.answers.values())
    reads = sum(task.result() for task in readers)
    log_figure(
        f"{moved:,} transfers, {reads:,} reads of the total, {time.monotonic() - begun:.1f} s;"
        f" {answer_log.summary()}"
    )


def check(banks: Sequence[FairbankServer], answer_log: AnswerLog) -> None:
    figures = check_ledger(answer_log, LedgerTables(banks[0].store))
    assert figures["transfer-out"] == figures["transfer-in"]
    assert banks[0].command("audit", "verify").returncode == 0


def campaign(banks: Sequence[FairbankServer], times: int, seed: int, log_figure: LogFigure) -> None:
    """Run `times` transfers of each client without faults."""
    tables, answer_log = LedgerTables(banks[0].store), AnswerLog()
    before = 0 if tables.is_sqlite else tables.deadlocks()
    run(
        transfer_and_watch(
            banks, answer_log, seed, log_figure, lambda step: step >= times, no_strike
        )
    )
    check(banks, answer_log)
    assert tables.is_sqlite or tables.deadlocks() == before


async def no_strike() -> None:
    """Do nothing."""


@pytest.mark.campaign
def test_transfers_keep_the_total_while_servers_and_database_are_killed(
    postgres18: PostgresServer, database: str, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    kills, answer_log, done = rounds(40, 2), AnswerLog(), asyncio.Event()
    with run_two_banks(database) as (first, second):
        nemesis = Nemesis(
            [first, second],
            {"first": first, "second": second, "postgres": postgres18},
            answer_log,
            random.Random(seed),
        )

        async def strike() -> None:
            await nemesis.strike(kills)
            done.set()

        run(
            transfer_and_watch(
                [first, second], answer_log, seed, log_figure, lambda step: done.is_set(), strike
            )
        )
        log_figure(nemesis.summary())
        check([first, second], answer_log)


@pytest.mark.campaign
def test_transfers_keep_the_total_on_postgresql(
    postgres: PostgresServer, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with postgres.fresh_database() as name, run_two_banks(postgres.url(name)) as servers:
        campaign(servers, rounds(500, 60), seed, log_figure)


@pytest.mark.campaign
def test_transfers_keep_the_total_on_sqlite(
    rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with run_bank() as server:
        campaign([server], rounds(500, 60), seed, log_figure)


@pytest.mark.slow
def test_few_transfers_keep_the_total(database: str, log_figure: LogFigure) -> None:
    with run_two_banks(database) as servers:
        campaign(servers, 6, 1, log_figure)
