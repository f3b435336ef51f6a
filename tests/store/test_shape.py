"""Removed guards and forged views are detected, on each database."""

from __future__ import annotations

import pytest

from fairbank.service.ops.doctor import check_schema
from fairbank.store.sql.schema_check import SchemaDifference, SchemaFault, schema_differences
from tests.contracts.databases import Place
from tests.contracts.small_site import fill


def test_untouched_schema_has_no_differences(sql_place: Place) -> None:
    fill(sql_place.open())
    sql_place.run("CREATE VIEW our_report AS SELECT account FROM project")
    assert schema_differences(sql_place.url) == []
    assert [(check.what, check.ok) for check in check_schema(sql_place.url)] == [
        ("the guards and views are as Fairbank made them", True)
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
