"""The hot statements by their names, and how the databases carry them out."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import make_url

from fairbank.store import schema
from fairbank.store.postgres import PostgresStore
from fairbank.store.queries import queries
from fairbank.store.sqlite import SqliteStore
from fairbank.store.urls import path_of
from tests.contracts.places import Place

POSTGRES, SQLITE = queries("postgres"), queries("sqlite")
LOOK_UPS = ["lock", "runs", "known", "told", "users", "members", "projects"]


def test_statements_have_names_and_no_comments() -> None:
    assert set(POSTGRES) == {*LOOK_UPS, "office", "entry_blocks", "allocation_id", "project_id", "token_id", "write", "spend"}
    assert not [name for name, statement in [*POSTGRES.items(), *SQLITE.items()] if "--" in statement or not statement]


@pytest.mark.parametrize(
    ("name", "table"), [("lock", "allocation"), ("runs", "run"), ("known", "journal"), ("told", "journal"), ("users", "user_sum")]
)
def test_whole_rows_come_in_the_order_of_the_schema(name: str, table: str) -> None:
    for found in (POSTGRES[name], SQLITE["allocations" if name == "lock" else name]):
        listed = found[len("SELECT") : found.index("FROM")].replace(f"{table}.", "")
        assert [column.strip() for column in listed.split(",")] == schema.metadata.tables[table].columns.keys()


@pytest.mark.parametrize(("name", "table"), [("write_new_runs", "run"), ("write_entries", "journal")])
def test_whole_rows_are_written_in_the_order_of_the_schema(name: str, table: str) -> None:
    columns = ", ".join(schema.metadata.tables[table].columns.keys())
    for statement in (POSTGRES["write"], SQLITE[name]):
        assert f"INSERT INTO {table} ({columns})" in " ".join(statement.split())


@pytest.mark.parametrize("name", [*LOOK_UPS, "write"])
def test_postgres_finds_every_row_by_its_key(postgres_place: Place, name: str) -> None:
    """Also in a young database without statistics, where it would rather read whole tables, and go on doing so while these grow."""
    store = PostgresStore(make_url(postgres_place.url))
    nothing = ", ".join("'{}'" for _ in set(re.findall(r"\$\d+", POSTGRES[name])))
    with store._writing() as connection:
        connection.exec_driver_sql(f"PREPARE asked AS {POSTGRES[name]}")
        plan = connection.exec_driver_sql(f"EXPLAIN EXECUTE asked ({nothing})").scalars().all()
    store.close()
    assert not [line for line in plan if "Seq Scan" in line]
    assert [line for line in plan if "Index" in line or "Bitmap" in line or "Conflict" in line]


@pytest.mark.parametrize("name", ["allocations", *LOOK_UPS[1:]])
def test_sqlite_finds_every_row_by_its_key(file_place: Place, name: str) -> None:
    store = SqliteStore(path_of(make_url(file_place.url)))
    with store._writing() as connection:
        wanted = ("[]",) * SQLITE[name].count("?")
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {SQLITE[name]}", wanted)]
    store.close()
    assert not [line for line in plan if line.startswith("SCAN") and "VIRTUAL TABLE" not in line and "json_each" not in line]
