"""Sessions that end during a commit. Before COMMIT was sent, nothing is applied and the client gets
an error. Afterwards the result is unknown.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.requests import Deposit, SubmittedRequest
from fairbank.bank.rules import Done, apply
from fairbank.cluster.share import ShareRecord
from fairbank.core.errors import Unavailable
from fairbank.core.units import SuMinutes
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from fairbank.store.migration import migrate
from fairbank.store.sql.store import SqlStore
from tests.contracts.databases import Place
from tests.contracts.small_site import CLERK, START, ask, contents, fill, granted
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer

NOT_CARRIED_OUT = "does not answer any more, and this was not carried out"
NOT_KNOWN = "whether this was carried out is not known"
Cut = Callable[[PostgresServer], None]


def gift(number: int) -> Deposit:
    return Deposit(allocation=1, amount=SuMinutes(7), key=f"gift{number}")


def figure(day: int) -> ShareRecord:
    return ShareRecord("physics", shares=1, norm_shares=1.0, cluster="darwin", day=day, at=START)


def by_an_administrator(server: PostgresServer) -> None:
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as administrator:
        ended = (
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name ="
            " 'fairbank' AND xact_start IS NOT NULL"
        )
        assert administrator.execute(ended).fetchall() == [(True,)]


def by_a_crash(server: PostgresServer) -> None:
    server.kill()


@pytest.fixture(params=[by_an_administrator, by_a_crash])
def cut(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[Cut]:
    """End the session in each way; afterwards the server runs again."""
    yield request.param
    postgres_server.start()


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """Yield a store with two projects and an allocation each."""
    migrate(postgres_url)
    with Place(postgres_url) as place:
        store = place.open()
        fill(store)
        yield store


@contextmanager
def commits_wait(server: PostgresServer) -> Iterator[Callable[[], None]]:
    """Let COMMIT be applied and then wait for a standby that never answers, so that the client gets
    no result. Yields a function that waits for the first such commit.
    """
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as administrator:
        is_waiting_for_lock = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        _demand_standby(administrator, "nobody")
        yield lambda: wait_until(
            lambda: administrator.execute(is_waiting_for_lock).fetchone(), "a COMMIT to wait"
        )
    server.start()
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as administrator:
        _demand_standby(administrator, "")


def _demand_standby(administrator: psycopg.Connection[Any], name: str) -> None:
    """Demand a synchronous standby; the server applies the setting after a moment."""
    administrator.execute(
        f"ALTER SYSTEM SET synchronous_standby_names = '{name}'"
    )  # a setting takes no parameters
    administrator.execute("SELECT pg_reload_conf()")


def send_one_by_one(do: Callable[[int], object], done: list[int]) -> None:
    """Send the requests one by one until one raises; `done` has the completed ones."""
    for number in itertools.count():
        do(number)
        done.append(number)


def test_connection_cut_before_commit_applies_nothing(
    store: Store, postgres_server: PostgresServer, cut: Cut
) -> None:
    before = contents(store)
    batch = [SubmittedRequest(gift(0), START, CLERK)]
    with (
        pytest.raises(Unavailable, match=NOT_CARRIED_OUT) as raised,
        store.transaction() as transaction,
    ):
        work = transaction.load(lock_set_of(batch))
        assert isinstance(apply(work, batch[0], Policy()), Done)
        transaction.write(work)
        cut(postgres_server)
    assert raised.value.remedy == "try again"
    postgres_server.start()
    assert contents(store) == before
    assert not granted(store, gift(0))[0].again


def test_connection_cut_after_commit_is_uncertain_and_key_counts_once(
    store: Store, postgres_server: PostgresServer, cut: Cut
) -> None:
    before, output = len(contents(store)[5]), list[int]()
    with commits_wait(postgres_server) as wait_for_one, ThreadPoolExecutor(1) as pool:
        asking = pool.submit(send_one_by_one, lambda number: ask(store, gift(number)), output)
        wait_for_one()
        cut(postgres_server)
        with pytest.raises(Unavailable, match=NOT_KNOWN) as untold:
            asking.result()
    assert (
        untold.value.remedy
        == "ask again with the same key: it counts once; without a key look into the statement"
        " first"
    )
    assert len(contents(store)[5]) == before + len(output) + 1, "the database had carried it out"
    assert granted(store, gift(len(output)))[0].again
    assert Audit(store).verify().findings == ()


def test_lost_connection_outside_a_batch_is_reported_the_same_way(
    store: Store, postgres_server: PostgresServer, cut: Cut
) -> None:
    assert isinstance(store, SqlStore)
    output = list[int]()
    with pytest.raises(Unavailable, match=NOT_CARRIED_OUT), store.write_transaction():
        cut(postgres_server)
    postgres_server.start()
    with commits_wait(postgres_server) as wait_for_one, ThreadPoolExecutor(1) as pool:
        keeping = pool.submit(
            send_one_by_one, lambda day: store.add_share_records([figure(day)]), output
        )
        wait_for_one()
        cut(postgres_server)
        with pytest.raises(Unavailable, match=NOT_KNOWN):
            keeping.result()
    assert not store.add_share_records([figure(len(output))]), "they are there"
