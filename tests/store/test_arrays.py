"""Columns on their way to PostgreSQL arrive as they were, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.store.postgres_batch import _array, _hexadecimal
from tests.support.postgres import PostgresServer

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
odd = st.text(st.sampled_from("\\\"'{},nN uUlL\n\t\b\x1f/u0x%$1"), max_size=8)


@pytest.fixture(scope="module")
def cursor(postgres18: PostgresServer) -> Iterator[psycopg.RawCursor[Any]]:
    with postgres18.fresh_database() as name, psycopg.connect(postgres18.conninfo(name), autocommit=True) as connection:
        yield psycopg.RawCursor(connection)


def sent(cursor: psycopg.RawCursor[Any], kind: str, column: list[Any]) -> list[Any]:
    return [value for (value,) in cursor.execute(f"SELECT * FROM unnest($1::{kind}[])", [_array(column)])]


@given(column=st.lists(st.none() | texts | odd | st.sampled_from(["NULL", "null", "", "\\", '\\"', "\\n", "\\\\n"]), max_size=8))
@example(column=["\n", "\\n", "\\\n", '"\n"', None])
def test_texts(cursor: psycopg.RawCursor[Any], column: list[str | None]) -> None:
    assert sent(cursor, "text", column) == column


@given(column=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_numbers(cursor: psycopg.RawCursor[Any], column: list[int | None]) -> None:
    assert sent(cursor, "bigint", column) == column


@given(column=st.lists(st.none() | st.binary(max_size=8), max_size=8))
def test_bytes(cursor: psycopg.RawCursor[Any], column: list[bytes | None]) -> None:
    found = cursor.execute("SELECT * FROM unnest($1::bytea[])", [_array(_hexadecimal(column))])
    assert [value for (value,) in found] == column
