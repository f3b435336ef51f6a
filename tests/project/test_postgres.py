"""PostgreSQL servers of the tests: real, killable, and able to refuse overlapping
allocations.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import create_engine, text

from tests.contracts.databases import ReusedDatabases
from tests.support.postgres import PostgresServer

ALLOCATIONS = """
CREATE EXTENSION btree_gist;
CREATE TABLE allocation (
    project_id bigint, resource text, start_at bigint, end_at bigint,
    CONSTRAINT one_at_a_time EXCLUDE USING gist
        (project_id WITH =, resource WITH =, int8range(start_at, end_at) WITH &&)
)
"""


def test_postgres18_has_version_18(postgres18: PostgresServer) -> None:
    with psycopg.connect(postgres18.conninfo("postgres")) as connection:
        assert connection.info.server_version // 10_000 == 18


def test_postgres15_has_version_15(postgres15: PostgresServer) -> None:
    with psycopg.connect(postgres15.conninfo("postgres")) as connection:
        assert connection.info.server_version // 10_000 == 15


def test_commit_is_written_before_it_is_confirmed(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.conninfo("postgres")) as connection:
        settings = [
            connection.execute(f"SHOW {name}").fetchone()
            for name in ("synchronous_commit", "full_page_writes")
        ]
    assert settings == [("on",)] * 2


def test_overlapping_allocations_are_refused(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    insert = text("INSERT INTO allocation VALUES (:project, :resource, :start, :end)")
    try:
        with engine.begin() as connection:
            connection.execute(text(ALLOCATIONS))
            connection.execute(insert, {"project": 1, "resource": "cpu", "start": 0, "end": 100})
            connection.execute(insert, {"project": 1, "resource": "cpu", "start": 100, "end": 200})
            connection.execute(insert, {"project": 1, "resource": "gpu", "start": 50, "end": 150})
        with (
            pytest.raises(Exception, match="one_at_a_time") as refused,
            engine.begin() as connection,
        ):
            connection.execute(insert, {"project": 1, "resource": "cpu", "start": 199, "end": 300})
    finally:
        engine.dispose()
    assert isinstance(refused.value.__cause__, errors.ExclusionViolation)


def test_databases_of_tests_are_separate(postgres18: PostgresServer) -> None:
    with postgres18.fresh_database() as first, postgres18.fresh_database() as second:
        with psycopg.connect(postgres18.conninfo(first)) as connection:
            connection.execute("CREATE TABLE mine ()")
        with psycopg.connect(postgres18.conninfo(second)) as connection:
            assert connection.execute("SELECT to_regclass('mine')").fetchone() == (None,)


@pytest.mark.parametrize("alters", [False, True])
def test_next_test_finds_the_rows_of_the_template(postgres18: PostgresServer, alters: bool) -> None:
    """In the same database, even if a session was left open; in another one if it was altered."""
    with postgres18.fresh_database() as template:
        with psycopg.connect(postgres18.conninfo(template)) as connection:
            connection.execute("CREATE TABLE head (id bigserial PRIMARY KEY, size bigint)")
            connection.execute("INSERT INTO head VALUES (0, 7)")
        with closing(ReusedDatabases(postgres18, template)) as databases:
            with databases.database() as first:
                forgotten = psycopg.connect(postgres18.conninfo(first))
                forgotten.execute("UPDATE head SET size = 8")
                forgotten.execute("INSERT INTO head (size) VALUES (9)")
                forgotten.commit()
                forgotten.execute("LOCK head")
                if alters:
                    forgotten.execute("ALTER TABLE head ADD CHECK (size < 10)")
                    forgotten.commit()
            forgotten.close()
            with (
                databases.database() as second,
                psycopg.connect(postgres18.conninfo(second)) as connection,
            ):
                assert (second == first) != alters
                assert connection.execute("TABLE head").fetchall() == [(0, 7)]
                number = connection.execute("INSERT INTO head VALUES (DEFAULT, 1) RETURNING id")
                assert number.fetchone() == (1,)


def test_database_is_dropped_after_a_server_crash_with_open_sessions(
    postgres18: PostgresServer,
) -> None:
    with postgres18.fresh_database() as name:
        forgotten = psycopg.connect(postgres18.conninfo(name))
        postgres18.kill()
    forgotten.close()
    with psycopg.connect(postgres18.conninfo("postgres")) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_database WHERE datname = %s", [name]
        ).fetchone() == (0,)


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_committed_rows_survive_kill_9(
    postgres_server: PostgresServer, rounds: Callable[[int, int], int]
) -> None:
    """The bank's own fault campaigns depend on this: numbers are written one by one, and every
    confirmed number must survive.
    """
    with postgres_server.fresh_database() as name:
        with psycopg.connect(postgres_server.conninfo(name)) as connection:
            connection.execute("CREATE TABLE written (number bigint PRIMARY KEY)")
        confirmed: list[int] = []
        for _ in range(rounds(50, 3)):
            enough = threading.Event()
            writer = threading.Thread(
                target=_write_until_killed, args=(postgres_server.conninfo(name), confirmed, enough)
            )
            writer.start()
            assert enough.wait(30)
            postgres_server.kill()
            writer.join()
            postgres_server.start()
            with psycopg.connect(postgres_server.conninfo(name)) as connection:
                survived = {
                    number for (number,) in connection.execute("SELECT number FROM written")
                }
            assert survived >= set(confirmed)


def _write_until_killed(conninfo: str, confirmed: list[int], enough: threading.Event) -> None:
    """Commit one number after the other, and announce every fifty."""
    first = (
        confirmed[-1] if confirmed else 0
    ) + 2  # the last unconfirmed one may have been committed, or not
    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            for number in range(first, first + 1_000_000):
                connection.execute("INSERT INTO written VALUES (%s)", [number])
                confirmed.append(number)
                if number == first + 50:
                    enough.set()
    except psycopg.OperationalError:
        return  # the server was killed
