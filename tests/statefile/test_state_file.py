"""State file on disk: transactions are complete or absent, for one daemon at a time."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import pytest

from fairbank.core.errors import Conflict, Corrupt, Forbidden
from fairbank.statefile.state_file import (
    DELETED_ROWS,
    SqlStatement,
    StateChanges,
    StateFile,
    StateFormat,
)
from tests.support.small_disk import fill, small_disk

PUT, DELETE = "INSERT INTO notes VALUES (?, ?)", "DELETE FROM notes WHERE id = ?"
NOTES = StateFormat(
    application_id=0x46624E4F,
    version=3,
    schema="CREATE TABLE notes (id INTEGER PRIMARY KEY, body BLOB); CREATE TABLE other (id)",
    article="a",
    noun="notebook",
    owner="writer",
    setting="notes.path",
    recovery="the writer knows what was in it",
)


def put(*ids: int, size: int = 100) -> StateChanges:
    statement = SqlStatement(PUT, [(number, b"x" * size) for number in ids])
    return StateChanges([statement], (size + 100) * len(ids))


def delete_and_put(gone: Sequence[int], *ids: int) -> StateChanges:
    """Return changes whose deletions may be made before the rest."""
    rows = [(number,) for number in gone]

    def deletions() -> Iterator[SqlStatement]:
        for first in range(0, len(rows), DELETED_ROWS):
            yield SqlStatement(DELETE, rows[first : first + DELETED_ROWS])

    changes = put(*ids)
    return StateChanges([SqlStatement(DELETE, rows), *changes.statements], changes.size, deletions)


def ids_in(file: StateFile) -> list[int]:
    return [number for (number,) in file.query("SELECT id FROM notes ORDER BY id")]


def test_next_daemon_reads_what_was_written(tmp_path: Path) -> None:
    first = StateFile(tmp_path / "notes", NOTES)
    first.write(put(1, 2, 3))
    first.write(delete_and_put([2], 4))
    first.close()
    assert ids_in(StateFile(tmp_path / "notes", NOTES)) == [1, 3, 4]


@pytest.mark.parametrize("unstorable", [(2, object()), (2**63, b"")])
def test_failed_transaction_writes_nothing(tmp_path: Path, unstorable: tuple[object, ...]) -> None:
    file = StateFile(tmp_path / "notes", NOTES)
    with pytest.raises((sqlite3.Error, OverflowError)):
        file.write(StateChanges([SqlStatement(PUT, [(1, b""), unstorable])], 0))
    file.write(put(3))
    assert ids_in(file) == [3]


def test_file_that_cannot_be_opened_is_not_kept_locked(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE strange (id)")
    with pytest.raises(Corrupt) as error:
        StateFile(path, NOTES)
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("DROP TABLE strange")
    assert isinstance(error.value.__cause__, sqlite3.DatabaseError)


@pytest.mark.parametrize("size", ["512k", "2m", "6m"])
def test_rows_are_deleted_on_a_full_disk(tmp_path: Path, size: str) -> None:
    """Delete rows though SQLite alone could not: that needs space in its log."""
    with small_disk(tmp_path / "disk", size) as disk:
        file = StateFile(disk / "notes", NOTES)
        filled = fill_with_rows(file)
        assert (filled >= 100, (disk / "notes.reserve").exists()) == (True, True)
        filler = fill(disk)
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="full"):
                file.write(put(9_999, size=50_000))
        file.write(delete_and_put(range(1, filled), filled + 1))
        assert ids_in(file) == [filled, filled + 1]
        filler.unlink()
        more = fill_with_rows(file, filled + 2)
        assert more > filled * 0.8, "the space that they had is used again"
        file.close()
        second = StateFile(disk / "notes", NOTES)
        assert ids_in(second)[:2] == [filled, filled + 1]
        second.close()


def fill_with_rows(file: StateFile, first: int = 1) -> int:
    """Fill the disk with rows; return their number."""
    ids = count(first)
    with contextlib.suppress(sqlite3.OperationalError):
        while True:
            file.write(put(*islice(ids, 20), size=700))
    return len(ids_in(file))


def test_only_one_daemon_at_a_time(tmp_path: Path) -> None:
    first = StateFile(tmp_path / "notes", NOTES)
    with pytest.raises(Conflict, match="another writer uses the notebook"):
        StateFile(tmp_path / "notes", NOTES)
    first.close()
    StateFile(tmp_path / "notes", NOTES).close()


def test_file_of_another_program_is_not_changed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    text = b"some other file, long enough to be read as a page of a database    " * 20
    other.write_bytes(text)
    with pytest.raises(Corrupt, match="is not a notebook of this release"):
        StateFile(other, NOTES)
    assert other.read_bytes() == text
    with pytest.raises(Forbidden, match="cannot use the notebook"):
        StateFile(tmp_path, NOTES)


@pytest.mark.parametrize(("version", "reason"), [(2, "of version 2, not 3"), (4, "of version 4")])
def test_file_of_another_version_is_refused(tmp_path: Path, version: int, reason: str) -> None:
    StateFile(tmp_path / "notes", NOTES._replace(version=version)).close()
    with pytest.raises(Corrupt, match=reason) as refusal:
        StateFile(tmp_path / "notes", NOTES)
    assert refusal.value.field == "notes.path"
    assert "the writer knows what was in it" in str(refusal.value.remedy)


def test_state_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    StateFile(tmp_path / "folder" / "notes", NOTES).close()
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "folder" / "notes").stat().st_mode & 0o777 == 0o600
