"""PostgreSQL killed, restarted, slow or full: the store reports the fault and recovers by
itself.
"""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from fairbank.bank.entry import Entry
from fairbank.bank.lock_set import LockSet
from fairbank.bank.requests import Deposit, Request
from fairbank.core.errors import Busy, FairbankError, Unavailable
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.rest.server.log import log_to
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Contention, Reader, Store
from fairbank.store.factory import open_store
from fairbank.store.postgres.store import PostgresStore
from tests.contracts.databases import Place
from tests.contracts.small_site import START, ask, contents, fill, granted, hold
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer

LATER = Instant(START + 1_000)
_IDLE = (
    "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname ="
    " current_database()"
)


@pytest.fixture(params=["18", "15"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """Yield a server that a test may kill; it runs again afterwards."""
    server: PostgresServer = request.getfixturevalue(f"postgres{request.param}")
    yield server
    server.start()


@pytest.fixture
def place(server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Place]:
    template = request.getfixturevalue(f"template{request.node.callspec.params['server']}")
    with server.fresh_database(template) as name, Place(server.url(name)) as place:
        yield place


@pytest.fixture
def impatient(place: Place) -> Iterator[PostgresStore]:
    """Yield a store with very short timeouts."""
    store = PostgresStore(make_url(place.url), readers=1, timeout_seconds=0.3)
    yield store
    store.close()


def test_restart_between_batches_is_transparent(server: PostgresServer, place: Place) -> None:
    store = place.open()
    fill(store)
    store.use_nonce(b"one", 1001, START, LATER)
    server.restart()
    granted(store, hold(1, 5))
    assert contents(store)[2][0].held == 5
    assert not store.use_nonce(b"one", 1001, START, LATER)


def test_dead_server_makes_every_call_unavailable(server: PostgresServer, place: Place) -> None:
    store = place.open()
    fill(store)
    server.kill()
    for attempt in (
        lambda: ask(store, hold(1, 5)),
        lambda: contents(store),
        lambda: store.use_nonce(b"n", 1, START, LATER),
    ):
        with pytest.raises(Unavailable):
            attempt()
    server.start()
    granted(store, hold(1, 5))
    assert Audit(store).verify().findings == ()


def test_server_killed_during_batch_rolls_it_back(server: PostgresServer, place: Place) -> None:
    store = place.open()
    fill(store)
    before = contents(store)
    with pytest.raises(Unavailable), store.transaction() as transaction:
        work = transaction.load(LockSet(allocations={1}, entries=2))
        server.kill()
        transaction.write(work)
        transaction.load(LockSet(allocations={1}, registry=True))
    server.start()
    assert contents(store) == before
    granted(store, hold(1, 5))


def test_server_killed_under_load_keeps_acknowledged_batches(
    server: PostgresServer, place: Place
) -> None:
    store = place.open()
    fill(store)
    for round_ in range(3):
        kept = _ask_until_killed(
            server,
            store,
            [
                Deposit(allocation=1, amount=SuMinutes(1), key=f"d{round_}.{n}")
                for n in range(100_000)
            ],
        )
        server.start()
        keys = {entry.key for entry in contents(store)[5]}
        assert {request.key for request in kept} <= keys
    assert Audit(store).verify().findings == ()
    entries = contents(store)[5]
    assert len({entry.id for entry in entries}) == len(entries)


def _ask_until_killed(
    server: PostgresServer, store: Store, requests: list[Request]
) -> list[Request]:
    """Return the requests that were granted before the server was killed."""
    kept: list[Request] = []

    def kill() -> None:
        wait_until(lambda: len(kept) > 20, "some answers")
        server.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for request in requests:
            granted(store, request)
            kept.append(request)
    except FairbankError as gone:
        assert isinstance(gone, Unavailable)
    killer.join()
    return kept


def test_lost_connections_are_replaced(server: PostgresServer, place: Place) -> None:
    """As after a proxy or an administrator ends them."""
    store = place.open()
    fill(store)
    with store.reading(), store.reading(), store.reading():
        pass
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as administrator:
        administrator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
            " 'fairbank'"
        )
    contents(store)
    granted(store, hold(1, 5))


def test_row_lock_timeout_is_contention(place: Place, impatient: PostgresStore) -> None:
    other = place.open()
    fill(other)
    with other.transaction() as transaction:
        transaction.load(LockSet(allocations={1}))
        with pytest.raises(Contention, match="lock timeout"), impatient.transaction() as blocked:
            blocked.load(LockSet(allocations={1}))
    granted(impatient, hold(1, 5))


def test_deadlock_is_contention(place: Place) -> None:
    """Batches lock in order and never deadlock each other; an administrator may cause one."""
    store = place.open()
    fill(store)
    url = make_url(place.url)
    with psycopg.connect(
        host=str(url.query["host"]), port=5432, user=url.username, dbname=url.database
    ) as administrator:
        administrator.execute("SET deadlock_timeout = '1h'")
        administrator.execute("SELECT 1 FROM registry FOR UPDATE")
        with pytest.raises(Contention, match="deadlock"), store.transaction() as transaction:
            transaction.load(LockSet(allocations={1}))
            crossing = threading.Thread(
                target=administrator.execute,
                args=["SELECT 1 FROM allocation WHERE id = 1 FOR UPDATE"],
            )
            crossing.start()
            wait_until(
                lambda: place.run("SELECT 1 FROM pg_locks WHERE NOT granted"),
                "the administrator to wait",
            )
            transaction.load(LockSet(allocations={1}, registry=True))
        crossing.join()
    granted(store, hold(1, 5))


def test_statement_timeout_is_unavailable(impatient: PostgresStore) -> None:
    with pytest.raises(Unavailable, match="timeout"), impatient.write_transaction() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(30)")


def test_query_timeout_is_unavailable(impatient: PostgresStore) -> None:
    with pytest.raises(Unavailable, match="timeout"), impatient.reading() as reader:
        reader.connection.exec_driver_sql("SELECT pg_sleep(30)")  # type: ignore[attr-defined]


def test_reading_whole_tables_has_no_timeout(impatient: PostgresStore) -> None:
    """Audits and backups have no time limit; the next user of the connection has the limit
    again.
    """
    fill(impatient)
    for read, expected in ((_first_number, 1), (_count_entries, 6)):
        with impatient.reading() as reader:
            assert _limit(reader) == "600ms"
            assert read(reader) == expected
            assert _limit(reader) == "0"


def _count_entries(reader: Reader) -> int:
    return reader.count_entries()


def _first_number(reader: Reader) -> int:
    return next(reader.scan(Entry)).id


def _limit(reader: Reader) -> str:
    connection = reader.connection  # type: ignore[attr-defined]
    return str(connection.exec_driver_sql("SHOW statement_timeout").scalar())


def test_nonce_locked_too_long_is_busy(place: Place, impatient: PostgresStore) -> None:
    url = make_url(place.url)
    with psycopg.connect(
        host=str(url.query["host"]), port=5432, user=url.username, dbname=url.database
    ) as other:
        other.execute("INSERT INTO nonce (nonce, uid, expires_at) VALUES ('one', 1001, 9000000)")
        with pytest.raises(Busy, match="lock timeout"):
            impatient.use_nonce(b"one", 1001, START, LATER)
    assert not impatient.use_nonce(b"one", 1001, START, LATER)


def test_database_opens_while_another_session_writes(place: Place) -> None:
    store = place.open()
    fill(store)
    with store.transaction() as transaction:
        transaction.load(LockSet(allocations={1}))
        assert [content.id for content in contents(place.open())[2]][:1] == [1]


def test_idle_transaction_is_terminated(place: Place, impatient: PostgresStore) -> None:
    """A server that stops in the middle must not block the others."""
    fill(place.open())
    with pytest.raises(Unavailable), impatient.transaction() as transaction:
        transaction.load(LockSet(allocations={1}))
        wait_until(lambda: not place.run(_IDLE), "the server to lose patience")
        transaction.load(LockSet(allocations={1}, registry=True))
    granted(impatient, hold(1, 5))


def test_all_readers_in_use_is_busy(impatient: PostgresStore) -> None:
    with impatient.reading(), pytest.raises(Busy), impatient.reading():
        pytest.fail("there is one reader only")


def test_read_only_database_is_unavailable(place: Place) -> None:
    """A standby after a fail-over, for a while."""
    store = place.open()
    fill(store)
    place.run(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',"
        " current_database()); END $$"
    )
    store.close()
    with pytest.raises(Unavailable, match="read-only"):
        ask(store, hold(1, 5))
    assert contents(store)[2][0].held == 0


def test_commits_are_durable_with_any_database_setting(place: Place) -> None:
    place.run(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off',"
        " current_database()); END $$"
    )
    store = PostgresStore(make_url(place.url))
    with store.write_transaction() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    store.close()


def test_wrong_password_is_not_in_error_message(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as raised:
        open_store(f"postgresql://bank:secret@/books?host={tmp_path}")
    assert "secret" not in str(raised.value)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Yield the log of a server; afterwards records go where they went before."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:], root.level
    root.handlers.clear()
    log_to(stream)
    yield stream
    root.handlers[:], root.level = before


def test_lost_connections_are_logged_without_tracebacks(
    server: PostgresServer, place: Place, log: io.StringIO
) -> None:
    store = place.open()
    fill(store)
    with pytest.raises(KeyError), store.transaction() as transaction:
        transaction.load(LockSet(allocations={1}, entries=2))
        server.kill()
        raise KeyError  # the pool rolls back over the lost connection
    assert "Traceback" not in log.getvalue()
