"""Round trips of a batch to PostgreSQL: at each, the writer thread releases the interpreter's lock
and must get it back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import pq
from sqlalchemy import Pool, event

from fairbank.bank.requests import Request
from fairbank.store.postgres.store import PostgresStore
from tests.contracts.databases import Place
from tests.contracts.small_site import charge, deposits, fill, granted, hold
from tests.support.postgres import PostgresServer

_WAITED_FOR = ("Query", "Sync")
"""Messages of the driver after which it waits until the database is ready for more."""


@pytest.fixture(params=["18", "15"])
def store(request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    server: PostgresServer = request.getfixturevalue(f"postgres{request.param}")
    with (
        server.fresh_database(request.getfixturevalue(f"template{request.param}")) as name,
        Place(server.url(name)) as place,
    ):
        store = place.open()
        assert isinstance(store, PostgresStore)
        yield store


def round_trips(store: PostgresStore, *requests: Request) -> int:
    """Return the number of round trips of a batch, once its statements are prepared."""
    with tempfile.TemporaryFile("w+") as messages:

        def trace(connection: Any, *_: object) -> None:
            connection.pgconn.trace(messages.fileno())
            connection.pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)

        def untrace(connection: Any, *_: object) -> None:
            connection.pgconn.untrace()

        event.listen(Pool, "checkout", trace)
        event.listen(Pool, "checkin", untrace)
        granted(store, *requests)
        event.remove(Pool, "checkout", trace)
        event.remove(Pool, "checkin", untrace)
        messages.seek(0)
        return sum(
            line.startswith("F\t") and line.split("\t")[2].strip() in _WAITED_FOR
            for line in messages
        )


def test_batch_of_reports_takes_four_round_trips(store: PostgresStore) -> None:
    """For its locks, its runs, its users' sums, and the commit: BEGIN is sent with the first, the
    new rows with the last.
    """
    fill(store)
    waits = [
        (
            round_trips(store, *(hold(job, 1) for job in jobs)),
            round_trips(store, *(charge(job, 1) for job in jobs)),
        )
        for jobs in (range(1, 31), range(31, 61))
    ]
    assert waits[-1] == (4, 4)  # before, the statements were prepared


def test_other_requests_have_a_separate_begin(store: PostgresStore) -> None:
    """If nothing else is sent before the rules run, the database must still measure the idle time:
    BEGIN, the allocation, its project (which may be removed), the new rows, COMMIT.
    """
    fill(store)
    two = deposits(2)
    assert [round_trips(store, request) for request in two][-1] == 5
