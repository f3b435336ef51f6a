"""Removed guards and forged views are detected, on each database."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from fairbank.core.errors import Conflict
from fairbank.service.ops.doctor import check_schema
from fairbank.setup.server import refuse_changed_schema
from fairbank.store.sql.schema_check import SchemaDifference, SchemaFault, schema_differences
from tests.contracts.databases import Place
from tests.contracts.small_site import fill
from tests.support.server import create_bank


def test_untouched_schema_has_no_differences(sql_place: Place) -> None:
    fill(sql_place.open())
    sql_place.run("CREATE VIEW our_report AS SELECT account FROM project")
    assert schema_differences(sql_place.url) == []
    assert [(check.what, check.ok) for check in check_schema(sql_place.url)] == [
        ("the tables, guards and views are as Fairbank made them", True)
    ]


def test_memory_store_has_no_schema_differences() -> None:
    assert schema_differences("memory:") == []


def test_missing_trigger_is_found(sql_place: Place) -> None:
    sql_place.run(
        f"DROP TRIGGER journal_only_grows{' ON journal' if sql_place.is_postgres else ''}"
    )
    assert schema_differences(sql_place.url) == [
        SchemaDifference("trigger", "journal_only_grows", SchemaFault.MISSING)
    ]
    (check,) = check_schema(sql_place.url)
    assert (check.what, check.ok) == ("trigger journal_only_grows is missing", False)
    assert "fairbank audit verify" in str(check.remedy)


def test_changed_view_is_found(sql_place: Place) -> None:
    sql_place.run("DROP VIEW balances")
    columns = (
        "id AS allocation_id, deposited AS credit, held AS predebit, charged AS debit, deposited AS"
        " balance"
    )
    sql_place.run(f"CREATE VIEW balances AS SELECT {columns} FROM allocation")
    assert schema_differences(sql_place.url) == [
        SchemaDifference("view", "balances", SchemaFault.ALTERED)
    ]


def test_missing_index_is_found(sql_place: Place) -> None:
    sql_place.run("DROP INDEX run_open")
    assert schema_differences(sql_place.url) == [
        SchemaDifference("index", "run_open", SchemaFault.MISSING)
    ]


def test_unknown_trigger_is_found(file_place: Place) -> None:
    file_place.run(
        "CREATE TRIGGER gift AFTER INSERT ON run BEGIN UPDATE allocation SET charged = 0; END"
    )
    (check,) = check_schema(file_place.url)
    assert (check.what, check.ok) == ("trigger gift is not Fairbank's", False)


def test_server_refuses_a_changed_schema(sql_place: Place) -> None:
    refuse_changed_schema(sql_place.url)
    sql_place.run("DROP INDEX run_open")
    with pytest.raises(Conflict, match="index run_open is missing") as refused:
        refuse_changed_schema(sql_place.url)
    assert "fairbank doctor" in str(refused.value.remedy)


@pytest.mark.slow
def test_server_command_with_a_changed_schema_names_the_change() -> None:
    with create_bank() as bank:
        path = bank.store.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TRIGGER journal_only_grows")
            connection.commit()
        refused = bank.command("serve")
    assert refused.returncode == 7
    text = " ".join(refused.stderr.split())
    assert text.startswith("fairbank: the schema of the store was changed: trigger"), text
    assert "journal_only_grows is missing" in text
    assert "try: fairbank doctor lists" in text


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["ALTER TABLE run ADD COLUMN gift INTEGER"], [("table", "run", SchemaFault.ALTERED)]),
        (["DROP TABLE share_figure"], [("table", "share_figure", SchemaFault.MISSING)]),
        (
            [
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_master SET sql = replace(sql, 'deposited >= 0 AND ', '')"
                " WHERE name = 'allocation'",
            ],
            [("table", "allocation", SchemaFault.ALTERED)],
        ),
        (["CREATE TABLE own_notes (text)"], []),
    ],
)
def test_sqlite_tables_are_compared(
    file_place: Place, statements: list[str], expected: list[tuple[str, str, SchemaFault]]
) -> None:
    with closing(sqlite3.connect(file_place.url.removeprefix("sqlite:///"))) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    assert schema_differences(file_place.url) == [
        SchemaDifference(*difference) for difference in expected
    ]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ALTER TABLE run ADD COLUMN gift bigint", [("column", "run.gift", SchemaFault.FOREIGN)]),
        (
            "ALTER TABLE allocation ALTER COLUMN held DROP NOT NULL",
            [("column", "allocation.held", SchemaFault.ALTERED)],
        ),
        (
            "ALTER TABLE member ALTER COLUMN role TYPE varchar(9)",
            [("column", "member.role", SchemaFault.ALTERED)],
        ),
        (
            "CREATE RULE gift AS ON INSERT TO token DO INSTEAD NOTHING",
            [("rule", "gift", SchemaFault.FOREIGN)],
        ),
        (
            "ALTER TABLE journal ENABLE ROW LEVEL SECURITY",
            [("table", "journal", SchemaFault.ALTERED)],
        ),
        ("ALTER TABLE nonce SET UNLOGGED", [("table", "nonce", SchemaFault.ALTERED)]),
        ("CREATE TABLE own_notes (text text)", []),
    ],
)
def test_postgres_tables_and_columns_are_compared(
    postgres_place: Place, statement: str, expected: list[tuple[str, str, SchemaFault]]
) -> None:
    postgres_place.run(statement)
    assert schema_differences(postgres_place.url) == [
        SchemaDifference(*difference) for difference in expected
    ]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "ALTER TABLE journal DISABLE TRIGGER journal_only_grows",
            [SchemaDifference("trigger", "journal_only_grows", SchemaFault.ALTERED)],
        ),
        (
            (
                "CREATE OR REPLACE FUNCTION fairbank_refuse() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RETURN NULL; END $$"
            ),
            [SchemaDifference("function", "fairbank_refuse", SchemaFault.ALTERED)],
        ),
        (
            "ALTER TABLE allocation DROP CONSTRAINT allocation_periods_apart",
            [
                SchemaDifference(kind, "allocation_periods_apart", SchemaFault.MISSING)
                for kind in ("constraint", "index")
            ],
        ),
    ],
)
def test_postgres_constraints_are_compared(
    postgres_place: Place, statement: str, expected: list[SchemaDifference]
) -> None:
    postgres_place.run(statement)
    assert schema_differences(postgres_place.url) == expected
    assert postgres_place.run("SELECT 1 FROM pg_namespace WHERE nspname = 'fairbank_doctor'") == []
