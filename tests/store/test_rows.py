"""Invalid rows are reported, not guessed."""

from __future__ import annotations

from base64 import b64encode

import pytest
from msgspec import convert, to_builtins

from fairbank.bank.entry import Entry
from fairbank.bank.project import Role
from fairbank.bank.requests import SetMember
from fairbank.bank.run import RunRecord
from fairbank.core.errors import Corrupt
from fairbank.rest.schemas.job import job_row
from fairbank.service.ops.audit import Audit
from fairbank.store.sql.rows import entry_of, entry_row
from tests.contracts.databases import Place
from tests.contracts.small_site import ALICE, charge, contents, fill, granted, hold


@pytest.fixture
def filled(sql_place: Place) -> Place:
    store = sql_place.open()
    fill(store)
    granted(store, hold(1, 100), SetMember(project=1, uid=ALICE, role=Role.PI))
    granted(store, charge(1, 55))
    return sql_place


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE allocation SET state = 'resting'", "'resting' is not a state of an allocation"),
        ("UPDATE run SET state = 'Charged'", "'Charged' is not a state of a run"),
        ("UPDATE member SET role = ''", "'' is not a role"),
    ],
)
def test_unknown_enum_value_is_an_error(filled: Place, statement: str, expected: str) -> None:
    filled.run(statement)
    with pytest.raises(Corrupt, match=expected) as trouble:
        contents(filled.open())
    assert trouble.value.remedy == "fairbank audit verify"


@pytest.mark.parametrize("cell", ["X''", "'no'", "7", "0.5"])
def test_invalid_boolean_is_an_error(file_place: Place, cell: str) -> None:
    """SQLite stores any value; PostgreSQL refuses it."""
    fill(file_place.open())
    file_place.run(f"UPDATE allocation SET shared = {cell}")
    with pytest.raises(Corrupt, match="neither true nor false"):
        contents(file_place.open())


@pytest.mark.parametrize("column", [11, 19], ids=["digest", "link"])
def test_text_instead_of_bytes_is_an_error(filled: Place, column: int) -> None:
    """Also if the text has the same bytes: the cell was not written so."""
    with filled.open().reading() as reader:
        entry = next(iter(reader.scan(Entry)))
    row = list(entry_row(entry))
    assert entry_of(row) == entry
    row[column] = b64encode(entry.link).decode()
    with pytest.raises(Corrupt, match="its digest or its link is text"):
        entry_of(row)


@pytest.mark.parametrize("column", ["outcome", "elapsed_seconds"])
def test_edited_row_that_lacks_a_part_of_its_end_is_shown_and_found(
    file_place: Place, column: str
) -> None:
    """It can be listed and kept in a backup, and the audit names it."""
    store = file_place.open()
    fill(store)
    granted(store, hold(1, 100))
    granted(store, charge(1, 55))
    file_place.run(f"UPDATE run SET {column} = NULL")
    (run,) = contents(store)[4]
    assert convert(to_builtins(run), RunRecord) == run
    assert job_row(run, "physics", "cpu").charged == 55
    (finding,) = Audit(store).verify().findings
    assert "the row of run darwin/1@900.0 was altered" in finding.what
