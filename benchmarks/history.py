"""Long history: the cost of a balance, a statement page and an audit over millions of entries."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import msgspec
import psycopg

from benchmarks.bank import postgres_server, sqlite_folder
from benchmarks.history_data import HistorySize, fill_store
from benchmarks.measure import Figure, Say, Table, Target, at_least, at_most, percentile, to_stderr
from fairbank.service.ops.audit_processes import verify
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.support.server import run_bank

PAGE = 100
BALANCE_MS, STATEMENT_MS, VERIFIED = 5, 100, 100_000


class Scale(msgspec.Struct, frozen=True):
    """Number of `rounds`, of `requests` in each, and of `audits` of all journals."""

    past: HistorySize
    rounds: int
    requests: int
    audits: int


LONG = Scale(HistorySize(allocations=10_000, jobs_each=499), rounds=5, requests=1_000, audits=1)
SHORT = Scale(HistorySize(allocations=1_000, jobs_each=99), rounds=2, requests=200, audits=1)


def measure(*, short: bool, say: Say) -> list[Table]:
    scale = SHORT if short else LONG
    with ExitStack() as stack:
        folder = stack.enter_context(sqlite_folder())
        server, _ = stack.enter_context(postgres_server())
        name = stack.enter_context(server.fresh_database())
        urls = {"SQLite": f"sqlite:///{folder}/past.sqlite", "PostgreSQL": server.url(name)}
        filled = fill_databases(urls, scale.past)
        with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")  # as PostgreSQL itself does within minutes
        return [
            _table(database, url, filled[database], scale, partial(_saying, say, database))
            for database, url in urls.items()
        ]


def _saying(say: Say, database: str, what: str) -> None:
    say(f"{database}: {what}")


# --- filling, both databases in parallel ---


def fill_databases(urls: dict[str, str], past: HistorySize) -> dict[str, float]:
    """Fill each database and return the entries per second."""
    with ProcessPoolExecutor(len(urls), mp_context=get_context("spawn")) as workers:
        waiting = {
            database: workers.submit(_fill_database, database, url, past)
            for database, url in urls.items()
        }
        return {database: future.result() for database, future in waiting.items()}


def _fill_database(database: str, url: str, past: HistorySize) -> float:
    migrate(url)
    store = open_store(url)
    begun = time.perf_counter()
    fill_store(store, past, partial(_saying, to_stderr, database))
    store.close()
    return past.entries / (time.perf_counter() - begun)


# --- measuring ---


def _table(database: str, url: str, filled: float, scale: Scale, say: Say) -> Table:
    audit = _audit(url, scale, say)
    with run_bank(url) as bank, _connected(bank.socket) as connection:
        balance = _time_requests(
            "the balance of one account", connection, _balances(scale.past), scale, say
        )
        statement = _time_requests(
            f"a page of a statement, {PAGE} entries", connection, _pages(scale.past), scale, say
        )
    past = scale.past
    about = (
        f"{past.entries:,} entries of {past.allocations:,} allocations, each with {past.jobs_each} "
        "jobs in a year. Balances and pages are requested at random places over the socket of "
        "`fairbank serve`, one after the other; the audit reads every entry and compares every row."
    )
    filling = Figure("filling an empty store, indexes and all", "entries/s", (filled,))
    figures = (audit, *balance, *statement, filling)
    return Table(
        f"A long history on {database}", about, figures, tuple(_promises(audit, balance, statement))
    )


def _promises(
    audit: Figure, balance: tuple[Figure, Figure], statement: tuple[Figure, Figure]
) -> Iterator[Target]:
    yield at_least("audit verify", audit, VERIFIED)
    yield at_most("a balance, 99 of 100", balance[1], BALANCE_MS)
    yield at_most("a page of a statement, 99 of 100", statement[1], STATEMENT_MS)


def _audit(url: str, scale: Scale, say: Say) -> Figure:
    rates = []
    store = open_store(url)
    for _ in range(scale.audits):
        say("audit verify")
        begun = time.perf_counter()
        verdict = verify(store, partial(open_store, url), {})
        rates.append(verdict.entries / (time.perf_counter() - begun))
        if verdict.findings:
            raise RuntimeError(f"the audit found: {verdict.findings[0]}")
    store.close()
    return Figure("audit verify", "entries/s", tuple(rates))


def _balances(past: HistorySize) -> Callable[[random.Random], str]:
    return lambda chance: f"/balance?account=p{chance.randrange(past.allocations)}"


def _pages(past: HistorySize) -> Callable[[random.Random], str]:
    last = max(0, 2 * past.jobs_each - PAGE)
    return lambda chance: (
        f"/alloc/{chance.randint(1, past.allocations)}/statement"
        f"?limit={PAGE}&all=true&order=oldest&after={chance.randint(0, last)}"
    )


def _time_requests(
    what: str,
    connection: socket.socket,
    path: Callable[[random.Random], str],
    scale: Scale,
    say: Say,
) -> tuple[Figure, Figure]:
    """Return the median and the 99th percentile of the time of a request."""
    say(what)
    chance = random.Random(7)
    middle, slow = [], []
    for _ in range(scale.rounds):
        taken = [_exchange(connection, path(chance)) * 1_000 for _ in range(scale.requests)]
        middle.append(percentile(taken, 0.5))
        slow.append(percentile(taken, 0.99))
    return Figure(f"{what}, p50", "ms", tuple(middle)), Figure(f"{what}, p99", "ms", tuple(slow))


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(path))
        yield connection


def _exchange(connection: socket.socket, path: str) -> float:
    """Request `path`, read the whole response, and return the seconds that it took."""
    begun = time.perf_counter()
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: bank\r\n\r\n".encode("ascii"))
    received = bytearray()
    while (head := received.find(b"\r\n\r\n")) < 0:
        received += connection.recv(1 << 16)
    length = int(received[:head].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    while len(received) < head + 4 + length:
        received += connection.recv(1 << 16)
    if received[9:12] != b"200":
        raise RuntimeError(received.decode(errors="replace")[:2_000])
    return time.perf_counter() - begun
