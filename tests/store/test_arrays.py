"""Columns sent to PostgreSQL arrive unchanged, for any content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.store.postgres.batch import array_text, hex_texts
from tests.support.postgres import PostgresServer

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
odd = st.text(st.sampled_from("\\\"'{},nN uUlL\n\t\b\x1f/u0x%$1"), max_size=8)


@pytest.fixture(scope="module")
def cursor(postgres18: PostgresServer) -> Iterator[psycopg.RawCursor[Any]]:
    with (
        postgres18.fresh_database() as name,
        psycopg.connect(postgres18.conninfo(name), autocommit=True) as connection,
    ):
        yield psycopg.RawCursor(connection)


def sent(cursor: psycopg.RawCursor[Any], kind: str, column: list[Any]) -> list[Any]:
    """Return the rows read back from a table. A column of None only has the length of the others,
    although it is not sent.
    """
    statement = (
        f"SELECT value FROM unnest($1::bigint[], $2::{kind}[]) AS sent (place, value) ORDER BY"
        " place"
    )
    return [
        value
        for (value,) in cursor.execute(
            statement, [array_text(list(range(len(column)))), array_text(column)]
        )
    ]


@given(
    column=st.lists(
        st.none()
        | texts
        | odd
        | st.sampled_from(["NULL", "null", "", "\\", '\\"', "\\n", "\\\\n"]),
        max_size=8,
    )
)
@example(column=["\n", "\\n", "\\\n", '"\n"', None])
def test_array_of_texts_arrives_unchanged(
    cursor: psycopg.RawCursor[Any], column: list[str | None]
) -> None:
    assert sent(cursor, "text", column) == column


@given(column=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_array_of_numbers_arrives_unchanged(
    cursor: psycopg.RawCursor[Any], column: list[int | None]
) -> None:
    assert sent(cursor, "bigint", column) == column


@given(column=st.lists(st.none() | st.binary(max_size=8), max_size=8))
def test_array_of_bytes_arrives_unchanged(
    cursor: psycopg.RawCursor[Any], column: list[bytes | None]
) -> None:
    assert sent(cursor, "bytea", list(hex_texts(column))) == column


def test_empty_column_sends_nothing() -> None:
    assert array_text([None, None]) == "{}"
    assert array_text([None, 1]) == "{null,1}"
