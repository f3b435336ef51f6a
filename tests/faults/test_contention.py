"""Many clients on one allocation: it is never overdrawn, and every client gets an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.faults.answer_log import UNAVAILABLE, AnswerLog, check_ledger
from tests.faults.contention import Contention
from tests.faults.ledger_tables import LedgerTables
from tests.support.figures import LogFigure
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, run_bank, run_two_banks
from tests.support.wire import run

Rounds = Callable[[int, int], int]


def run_contention(
    contention: Contention, servers: Sequence[FairbankServer], log_figure: LogFigure
) -> AnswerLog:
    """Run the clients on the servers, then check the ledger. Return the answers."""
    answer_log = AnswerLog()
    run(contention.run_all([server.socket for server in servers], answer_log, log_figure))
    figures = check_ledger(answer_log, LedgerTables(servers[0].store))
    assert figures["refusal"] > 0, "no request was refused, so there was no contention"
    audit = servers[0].command("audit", "verify")
    log_figure(f"{figures}; {audit.stdout.strip()}")
    assert audit.returncode == 0, audit.stdout
    return answer_log


@contextmanager
def check_no_deadlocks(url: str, log_figure: LogFigure) -> Iterator[None]:
    """Check that PostgreSQL counts no deadlock in this database. It counts those of a session when
    that ends, so the servers must have stopped before.
    """
    tables = LedgerTables(url)
    before = tables.deadlocks()
    yield
    deadlocks = tables.deadlocks() - before
    log_figure(f"deadlocks: {deadlocks}")
    assert deadlocks == 0


@pytest.mark.campaign
@pytest.mark.parametrize("count", [1, 2])
def test_two_hundred_clients_on_postgresql_never_overdraw(
    postgres: PostgresServer, count: int, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    contention = Contention(clients=200, runs=rounds(60, 8), seed=seed)
    with postgres.fresh_database() as name, check_no_deadlocks(postgres.url(name), log_figure):
        if count == 1:
            with run_bank(postgres.url(name)) as server:
                run_contention(contention, [server], log_figure)
        else:
            with run_two_banks(postgres.url(name)) as servers:
                run_contention(contention, servers, log_figure)


@pytest.mark.campaign
def test_two_hundred_clients_on_sqlite_never_overdraw(
    rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with run_bank() as server:
        run_contention(Contention(clients=200, runs=rounds(60, 8), seed=seed), [server], log_figure)


@pytest.mark.campaign
def test_full_write_queue_answers_503_and_loses_no_request(
    database: str, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with run_bank(database, server="waiting_max = 20") as server:
        answer_log = run_contention(
            Contention(clients=200, runs=rounds(20, 3), seed=seed), [server], log_figure
        )
    assert answer_log.statuses[UNAVAILABLE] > 100


@pytest.mark.slow
def test_sixty_clients_on_two_servers_never_overdraw(database: str, log_figure: LogFigure) -> None:
    with run_two_banks(database) as servers:
        run_contention(Contention(clients=60, runs=4, seed=1), servers, log_figure)


@pytest.mark.slow
def test_sixty_clients_on_sqlite_never_overdraw(log_figure: LogFigure) -> None:
    with run_bank() as server:
        run_contention(Contention(clients=60, runs=4, seed=1), [server], log_figure)
