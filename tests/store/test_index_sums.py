"""Comparison of the indexes of a file with its tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from fairbank.store.sqlite.driver import driver
from fairbank.store.sqlite.integrity import index_faults, indexes
from fairbank.store.sqlite.store import reading_engine
from tests.faults.sample import write_sample
from tests.support.indexes import hollow, replant

T = TypeVar("T")


@pytest.fixture
def written(file: Path) -> Path:
    """Return a closed file with a sample ledger."""
    write_sample(f"sqlite:///{file}")
    return file


def looking(path: Path, reader: Callable[[Connection], T]) -> T:
    engine = reading_engine(path)
    try:
        with engine.connect() as connection:
            return reader(connection)
    finally:
        engine.dispose()


def test_every_index_is_compared(written: Path) -> None:
    """Except indexes that are the table itself."""
    with closing(driver.connect(str(written))) as connection:
        every = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        }
    seen = [index for having in looking(written, indexes).values() for index in having]
    assert {index.name for index in seen} == every
    assert {index.name for index in seen if index.where != "TRUE"} >= {"journal_key", "run_open"}


def test_consistent_indexes_have_no_findings(written: Path) -> None:
    assert looking(written, index_faults) == []


def test_empty_index_is_found(written: Path) -> None:
    hollow(written, "run_project")
    (result,) = looking(written, index_faults)
    assert result.message.startswith("the index run_project lacks ")


def test_index_without_one_row_is_found(written: Path) -> None:
    with closing(driver.connect(str(written))) as connection:
        (first,) = connection.execute("SELECT min(id) FROM run").fetchone()
    replant(written, "run_owner", f"CREATE INDEX planted ON run (owner, id) WHERE id <> {first}")
    text = "the index run_owner lacks 1 of the rows of its table, which no query finds through it"
    assert looking(written, index_faults) == [(text, True)]


def test_index_with_wrong_keys_is_found(written: Path) -> None:
    replant(written, "run_owner", "CREATE INDEX planted ON run (project, id)")
    (result,) = looking(written, index_faults)
    assert result.message.startswith("the index run_owner lacks ")
