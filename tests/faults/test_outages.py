"""Databases that stop, are read-only, refuse connections or lock a row: clients get 503, and retry
with success.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import psycopg
import pytest

from tests.faults.ledger_tables import LedgerTables
from tests.faults.nemesis import wait_for, wait_until_answering
from tests.faults.site import SU, create_project, report
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, run_bank
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


async def report_in_outage(wire: Wire, body: dict[str, object]) -> Answer:
    """Send a report in the outage and check that the answer is 503 with Retry-After."""
    answer = await wire.ask("POST", "/job", body)
    assert answer.status == 503, answer.body
    assert int(answer.headers["retry-after"]) > 0
    assert answer.body["remedy"]
    return answer


async def check_outage(server: FairbankServer, begin: Outage, end: Outage) -> None:
    """Send one hold before the outage, and one in it and again after it; check that both are stored
    once.
    """
    wire = Wire(server.socket)
    await create_project(wire, "physics", 4_000, credit=10 * SU)
    first, second = hold(1), hold(2)
    (await wire.ask("POST", "/job", first)).data  # noqa: B018 (must be good)
    await asyncio.to_thread(begin)
    try:
        await report_in_outage(wire, second)
    finally:
        await asyncio.to_thread(end)
    await wait_until_answering(server)
    assert (await wire.ask("POST", "/job", second)).status == 201
    assert (await wire.ask("POST", "/job", first)).status == 200
    assert (await wire.ask("GET", "/balance")).data[0]["held"] == 2 * SU


@pytest.mark.campaign
def test_stopped_database_is_reported_as_unavailable(
    postgres18: PostgresServer, database: str
) -> None:
    with run_bank(database) as server:
        run(check_outage(server, postgres18.stop, postgres18.start))
        assert server.command("audit", "verify").returncode == 0


@pytest.mark.campaign
def test_read_only_database_is_reported_as_unavailable(database: str) -> None:
    tables = LedgerTables(database)

    with run_bank(database) as server:
        run(
            check_outage(
                server, lambda: set_read_only(tables, "on"), lambda: set_read_only(tables, "off")
            )
        )
        assert server.command("audit", "verify").returncode == 0


def set_read_only(tables: LedgerTables, value: str) -> None:
    """Make new sessions read-only, and end the existing ones."""
    with psycopg.connect(
        tables.conninfo, autocommit=True, options="-c default_transaction_read_only=off"
    ) as connection:
        connection.execute(
            f"ALTER DATABASE {name_of(tables)} SET default_transaction_read_only = {value}"
        )
    end_other_sessions(tables)


@pytest.mark.campaign
def test_database_without_connections_is_reported(database: str) -> None:
    tables = LedgerTables(database)
    with run_bank(database) as server, ExitStack() as connections:
        run(
            check_outage(
                server, lambda: take_all_connections(tables, connections), connections.close
            )
        )
        assert server.command("audit", "verify").returncode == 0


def take_all_connections(tables: LedgerTables, connections: ExitStack) -> None:
    """End all other sessions and take every connection of the database."""
    end_other_sessions(tables)
    while True:
        try:
            connections.enter_context(psycopg.connect(tables.conninfo))
        except psycopg.OperationalError:
            return


def name_of(tables: LedgerTables) -> str:
    return str(tables.rows("SELECT current_database() AS name")[0]["name"])


def end_other_sessions(tables: LedgerTables) -> None:
    """End all sessions except this one."""
    tables.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid()"
    )


# --- locks of other sessions ---


@asynccontextmanager
async def locked(tables: LedgerTables) -> AsyncIterator[None]:
    """Lock the allocation in a session of another client during the block."""
    with psycopg.connect(tables.conninfo) as rogue:
        rogue.execute("SELECT * FROM allocation FOR UPDATE")
        yield


async def wait_behind_a_lock(server: FairbankServer, tables: LedgerTables) -> None:
    wire = Wire(server.socket)
    await create_project(wire, "physics", 4_000, credit=10 * SU)
    async with asyncio.TaskGroup() as tasks, locked(tables):
        requests = [
            tasks.create_task(Wire(server.socket).ask("POST", "/job", hold(number)))
            for number in range(1, 6)
        ]
        await wait_for(lambda: waiting(tables), "the bank to wait for the lock")
        assert (await wire.ask("GET", "/balance")).data[0]["held"] == 0  # readers do not wait
    assert {task.result().status for task in requests} == {201}


def waiting(tables: LedgerTables) -> bool:
    return bool(tables.rows("SELECT pid FROM pg_locks WHERE NOT granted"))


@pytest.mark.campaign
def test_foreign_lock_is_reported_as_busy(database: str) -> None:
    with run_bank(database) as server:
        run(wait_behind_a_lock(server, LedgerTables(database)))
        assert server.command("audit", "verify").returncode == 0
