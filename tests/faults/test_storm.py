"""Two hundred clients against one allocation: no client gets what is not there, and everybody gets
an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.faults.storm import Storm
from tests.faults.tables import Books
from tests.faults.witness import AWAY, Witness, check_books
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, banking, banking_twice
from tests.support.wire import run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]


def weather(storm: Storm, servers: Sequence[FairbankServer], tell: Tell) -> Witness:
    """Let it blow over the servers, then read the books. Returns their answers."""
    witness = Witness()
    run(storm.blow([each.socket for each in servers], witness, tell))
    figures = check_books(witness, Books(servers[0].store))
    assert figures["refusal"] > 0, "this was no storm: everybody was paid"
    audit = servers[0].command("audit", "verify")
    tell(f"{figures}; {audit.stdout.strip()}")
    assert audit.returncode == 0, audit.stdout
    return witness


@contextmanager
def no_deadlocks(url: str, tell: Tell) -> Iterator[None]:
    """PostgreSQL sees none in this database. It counts a session's when that ends, so the servers
    must be gone by then.
    """
    books = Books(url)
    before = books.deadlocks()
    yield
    seen = books.deadlocks() - before
    tell(f"deadlocks: {seen}")
    assert seen == 0


@pytest.mark.campaign
@pytest.mark.parametrize("count", [1, 2])
def test_two_hundred_clients_on_postgresql(
    postgres: PostgresServer, count: int, rounds: Rounds, seed: int, tell: Tell
) -> None:
    storm = Storm(clients=200, runs=rounds(60, 8), seed=seed)
    with postgres.fresh_database() as name, no_deadlocks(postgres.url(name), tell):
        if count == 1:
            with banking(postgres.url(name)) as server:
                weather(storm, [server], tell)
        else:
            with banking_twice(postgres.url(name)) as servers:
                weather(storm, servers, tell)


@pytest.mark.campaign
def test_two_hundred_clients_on_sqlite(rounds: Rounds, seed: int, tell: Tell) -> None:
    with banking() as server:
        weather(Storm(clients=200, runs=rounds(60, 8), seed=seed), [server], tell)


@pytest.mark.campaign
def test_a_bank_with_little_room_sends_clients_away_and_forgets_nothing(
    database: str, rounds: Rounds, seed: int, tell: Tell
) -> None:
    with banking(database, server="waiting_max = 20") as server:
        witness = weather(Storm(clients=200, runs=rounds(20, 3), seed=seed), [server], tell)
    assert witness.statuses[AWAY] > 100


@pytest.mark.slow
def test_a_small_storm_over_two_servers(database: str, tell: Tell) -> None:
    with banking_twice(database) as servers:
        weather(Storm(clients=60, runs=4, seed=1), servers, tell)


@pytest.mark.slow
def test_a_small_storm_on_sqlite(tell: Tell) -> None:
    with banking() as server:
        weather(Storm(clients=60, runs=4, seed=1), [server], tell)
