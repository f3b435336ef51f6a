"""Hot statements by name, and their query plans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Select, make_url, select

from fairbank.bank.entry import READ_BY_UNDO, Kind
from fairbank.bank.query import GroupPage, Page, RefusalQuery, UsageQuery, Visibility
from fairbank.core.time import Instant
from fairbank.core.usage_groups import UsageBy
from fairbank.store import schema
from fairbank.store.postgres.store import PostgresStore
from fairbank.store.queries import queries
from fairbank.store.sql import journal_statements, statements
from fairbank.store.sql.usage_statement import usage
from fairbank.store.sql.usage_sums import changed_runs
from fairbank.store.sqlite.store import SqliteStore
from fairbank.store.urls import path_of
from tests.contracts.databases import Place
from tests.support.postgres import ON_POSTGRES, PostgresServer

POSTGRES, SQLITE = queries("postgres"), queries("sqlite")
LOOK_UPS = [
    "lock",
    "runs",
    "entries_by_key",
    "entries_by_id",
    "undoing_entries",
    "entries_of_terms",
    "users",
    "members",
    "projects",
]


def test_statements_have_names_and_no_comments() -> None:
    assert set(POSTGRES) == {
        *LOOK_UPS,
        "registry",
        "entry_ids",
        "next_ids",
        "allocation_id",
        "project_id",
        "token_id",
        "write",
        "spend",
    }
    assert not [
        name
        for name, statement in [*POSTGRES.items(), *SQLITE.items()]
        if "--" in statement or not statement
    ]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("lock", "allocation"),
        ("runs", "run"),
        ("entries_by_key", "journal"),
        ("entries_by_id", "journal"),
        ("undoing_entries", "journal"),
        ("entries_of_terms", "journal"),
        ("users", "user_sum"),
    ],
)
def test_rows_are_read_in_column_order(name: str, table: str) -> None:
    for statement in (POSTGRES[name], SQLITE["allocations" if name == "lock" else name]):
        result = statement.partition("locked AS MATERIALIZED")[2] or statement
        listed = result[result.index("SELECT") + len("SELECT") : result.index("FROM")].replace(
            f"{table}.", ""
        )
        assert [column.strip() for column in listed.split(",")] == schema.metadata.tables[
            table
        ].columns.keys()


@pytest.mark.parametrize(
    ("name", "table"), [("write_new_runs", "run"), ("write_entries", "journal")]
)
def test_rows_are_written_in_column_order(name: str, table: str) -> None:
    columns = ", ".join(schema.metadata.tables[table].columns.keys())
    for statement in (POSTGRES["write"], SQLITE[name]):
        assert f"INSERT INTO {table} ({columns})" in " ".join(statement.split())


@pytest.mark.parametrize("name", ["undoing_entries", "entries_of_terms"])
def test_undo_query_is_the_same_in_all_stores(file_place: Place, name: str) -> None:
    """SQLite uses the index only if the condition is the same text. A kind missing in one of them
    could be undone repeatedly.
    """
    kinds = f"kind IN ({', '.join(repr(kind.value) for kind in READ_BY_UNDO)})"
    assert f"journal.{kinds}" in SQLITE[name]
    assert f"journal.{kinds}" in POSTGRES[name]
    store = SqliteStore(path_of(make_url(file_place.url)))
    with store.write_transaction() as connection:
        (made,) = connection.exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE name = 'journal_undoing'"
        ).scalars()
        plan = [
            row[3]
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {SQLITE[name]}", ("[]",))
        ]
    store.close()
    assert kinds in made
    assert [line for line in plan if "USING INDEX journal_undoing" in line]


@pytest.fixture(scope="module", params=ON_POSTGRES)
def postgres_store(request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    """Yield an empty ledger on each PostgreSQL, for query plans only."""
    server: PostgresServer = request.getfixturevalue(request.param)
    template = request.getfixturevalue(request.param.replace("postgres", "template"))
    with server.fresh_database(template) as name:
        store = PostgresStore(make_url(server.url(name)))
        yield store
        store.close()


@pytest.mark.parametrize("name", [*LOOK_UPS, "write"])
def test_postgres_finds_every_row_by_its_key(postgres_store: PostgresStore, name: str) -> None:
    """Also in a new database without statistics, where it would prefer to scan whole tables and
    continue while these grow.
    """
    nothing = ", ".join("NULL" for _ in set(re.findall(r"\$\d+", POSTGRES[name])))
    with postgres_store.write_transaction() as connection:
        connection.exec_driver_sql(f"PREPARE {name}_plan AS {POSTGRES[name]}")
        plan = (
            connection.exec_driver_sql(f"EXPLAIN EXECUTE {name}_plan ({nothing})").scalars().all()
        )
    assert not [line for line in plan if "Seq Scan" in line]
    assert [line for line in plan if "Index" in line or "Bitmap" in line or "Conflict" in line]


@pytest.mark.parametrize("name", ["allocations", *LOOK_UPS[1:]])
def test_sqlite_finds_every_row_by_its_key(file_place: Place, name: str) -> None:
    store = SqliteStore(path_of(make_url(file_place.url)))
    with store.write_transaction() as connection:
        expected = ("[]",) * SQLITE[name].count("?")
        plan = [
            row[3]
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {SQLITE[name]}", expected)
        ]
    store.close()
    assert not [
        line
        for line in plan
        if line.startswith("SCAN") and "VIRTUAL TABLE" not in line and "json_each" not in line
    ]


def plan_of(store: SqliteStore, query: Select[Any], **values: int) -> list[str]:
    """Return SQLite's query plan, with the values bound as in production."""
    with store.reading() as reader:
        connection = reader.connection  # type: ignore[attr-defined]
        compiled = query.compile(dialect=connection.dialect)
        expanded = compiled.construct_expanded_state({**compiled.params, **values})
        return [
            row[3]
            for row in connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {expanded.statement}", expanded.positional_parameters
            )
        ]


EVERYTHING, MINE = Visibility(everything=True), Visibility(uid=1001)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (RefusalQuery(visibility=EVERYTHING), "journal_refused"),
        (
            RefusalQuery(visibility=EVERYTHING, cluster="darwin", job_id=5, since=Instant(5)),
            "journal_refused",
        ),
        (RefusalQuery(visibility=EVERYTHING, owner=1001), "journal_refusal"),
        (RefusalQuery(visibility=MINE), "journal_refusal"),
    ],
)
@pytest.mark.parametrize("newest_first", [True, False])
def test_refusals_are_found_without_the_rest_of_the_journal(
    file_place: Place, query: RefusalQuery, index: str, newest_first: bool
) -> None:
    store = SqliteStore(path_of(make_url(file_place.url)))
    page = Page(newest_first=newest_first)
    plan = plan_of(store, journal_statements.refusals(query, page))
    store.close()
    assert [line for line in plan if " journal " in line] == plan[:1]
    assert f"USING INDEX {index}" in plan[0]
    assert not [line for line in plan if "TEMP B-TREE" in line]


def test_entries_of_terms_are_found_without_the_rest_of_the_journal(file_place: Place) -> None:
    store = SqliteStore(path_of(make_url(file_place.url)))
    plan = plan_of(store, journal_statements.term_entries(frozenset({1, 2})))
    store.close()
    assert "USING INDEX journal_undoing (allocation=?)" in plan[0]


@pytest.mark.parametrize("by", [UsageBy.PROJECT, UsageBy.MONTH])
def test_usage_reads_no_entry_that_the_sums_contain(file_place: Place, by: UsageBy) -> None:
    store = SqliteStore(path_of(make_url(file_place.url)))
    for plan in (
        plan_of(store, usage(UsageQuery(), by, GroupPage())),
        plan_of(store, select(changed_runs([1, 2]))),
    ):
        (line,) = (line for line in plan if " journal " in line)
        assert "(allocation=? AND seq>?)" in line
    store.close()


def test_open_holds_are_found_without_the_closed_runs(file_place: Place) -> None:
    store = SqliteStore(path_of(make_url(file_place.url)))
    plan = plan_of(store, statements.open_holds(frozenset({1, 2})))
    store.close()
    assert "USING INDEX run_open" in plan[0]


def test_time_cut_uses_index_lookups(file_place: Place) -> None:
    store = SqliteStore(path_of(make_url(file_place.url)))
    plans = [
        plan_of(store, journal_statements.statement(Page()), allocation=1, since=5, until=9),
        plan_of(
            store,
            journal_statements.statement(Page(), frozenset({Kind.HOLD})),
            allocation=1,
            since=5,
            until=9,
        ),
        plan_of(store, journal_statements.BEFORE, allocation=1, at=5),
    ]
    store.close()
    for plan in plans:
        looks = [line for line in plan if "journal" in line or "entry" in line]
        assert len(looks) >= 3
        assert all("(allocation=? AND seq" in line for line in looks)
        assert not [line for line in plan if "TEMP B-TREE" in line]
