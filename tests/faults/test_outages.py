"""A database that stops, only reads, lets no client in or keeps a row locked: clients are asked to
come back, and then find everything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import psycopg
import pytest

from tests.faults.nemesis import answers, until
from tests.faults.site import SU, found, report
from tests.faults.tables import Books
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, banking
from tests.support.wire import Answer, Wire, run

Outage = Callable[[], object]


def hold(number: int) -> dict[str, object]:
    return report(
        "hold",
        "physics",
        number,
        amount=SU,
        submitted=int(time.time()),
        owner=7,
        key=f"hold.{number}",
    )


async def away(wire: Wire, body: dict[str, object]) -> Answer:
    """A report in the outage: "not now", and when to come back."""
    answer = await wire.ask("POST", "/job", body)
    assert answer.status == 503, answer.body
    assert int(answer.headers["retry-after"]) > 0
    assert answer.body["remedy"]
    return answer


async def outage(server: FairbankServer, begin: Outage, end: Outage) -> None:
    """One hold before, one that is asked for in the outage and again after it: both are there,
    once.
    """
    wire = Wire(server.socket)
    await found(wire, "physics", 4_000, credit=10 * SU)
    first, second = hold(1), hold(2)
    (await wire.ask("POST", "/job", first)).data  # noqa: B018 (must be good)
    await asyncio.to_thread(begin)
    try:
        await away(wire, second)
    finally:
        await asyncio.to_thread(end)
    await answers(server)
    assert (await wire.ask("POST", "/job", second)).status == 201
    assert (await wire.ask("POST", "/job", first)).status == 200
    assert (await wire.ask("GET", "/balance")).data[0]["held"] == 2 * SU


@pytest.mark.campaign
def test_the_database_is_stopped_and_started(postgres18: PostgresServer, database: str) -> None:
    with banking(database) as server:
        run(outage(server, postgres18.stop, postgres18.start))
        assert server.command("audit", "verify").returncode == 0


@pytest.mark.campaign
def test_the_database_only_reads(database: str) -> None:
    books = Books(database)

    with banking(database) as server:
        run(outage(server, lambda: only_reading(books, "on"), lambda: only_reading(books, "off")))
        assert server.command("audit", "verify").returncode == 0


def only_reading(books: Books, word: str) -> None:
    """From the next sessions on."""
    with psycopg.connect(
        books.conninfo, autocommit=True, options="-c default_transaction_read_only=off"
    ) as connection:
        connection.execute(
            f"ALTER DATABASE {name_of(books)} SET default_transaction_read_only = {word}"
        )
    cut_off(books)


@pytest.mark.campaign
def test_database_without_connections_is_reported(database: str) -> None:
    books = Books(database)
    with banking(database) as server, ExitStack() as crowd:
        run(outage(server, lambda: crowd_in(books, crowd), crowd.close))
        assert server.command("audit", "verify").returncode == 0


def crowd_in(books: Books, crowd: ExitStack) -> None:
    """Take every connection that the database gives, after it has cut everybody else off."""
    cut_off(books)
    while True:
        try:
            crowd.enter_context(psycopg.connect(books.conninfo))
        except psycopg.OperationalError:
            return


def name_of(books: Books) -> str:
    return str(books.rows("SELECT current_database() AS name")[0]["name"])


def cut_off(books: Books) -> None:
    """End all sessions but our own."""
    books.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid()"
    )


# --- a lock that somebody holds ---


@asynccontextmanager
async def locked(books: Books) -> AsyncIterator[None]:
    """A session of another user holds the allocation, as long as the block lasts."""
    with psycopg.connect(books.conninfo) as rogue:
        rogue.execute("SELECT * FROM allocation FOR UPDATE")
        yield


async def wait_behind_a_lock(server: FairbankServer, books: Books) -> None:
    wire = Wire(server.socket)
    await found(wire, "physics", 4_000, credit=10 * SU)
    async with asyncio.TaskGroup() as tasks, locked(books):
        asked = [
            tasks.create_task(Wire(server.socket).ask("POST", "/job", hold(number)))
            for number in range(1, 6)
        ]
        await until(lambda: waiting(books), "the bank to wait for the lock")
        assert (await wire.ask("GET", "/balance")).data[0]["held"] == 0  # readers do not wait
    assert {each.result().status for each in asked} == {201}


def waiting(books: Books) -> bool:
    return bool(books.rows("SELECT pid FROM pg_locks WHERE NOT granted"))


@pytest.mark.campaign
def test_foreign_lock_is_reported_as_busy(database: str) -> None:
    with banking(database) as server:
        run(wait_behind_a_lock(server, Books(database)))
        assert server.command("audit", "verify").returncode == 0
