"""Backups: allowed paths, and rows that are refused."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from fairbank.bank.project import Project
from fairbank.cluster.share import ShareRecord
from fairbank.core.errors import Conflict, Corrupt, FairbankError, InvalidInput, NotFound
from fairbank.core.time import Instant
from fairbank.service.ops import backup_file
from fairbank.service.ops.backup import Backups
from fairbank.service.ops.backup_file import verify_file
from fairbank.store.memory.store import MemoryStore
from tests.contracts.small_site import fill_with_runs, granted, project
from tests.support.clock import ManualClock


@pytest.fixture
def backups() -> Backups:
    return Backups(MemoryStore(), ManualClock(Instant(0)))


def test_existing_file_is_replaced_only_if_requested(backups: Backups, tmp_path: Path) -> None:
    file = tmp_path / "monday.fbk"
    file.write_text("of last week")
    with pytest.raises(Conflict, match="already") as error:
        backups.create(file)
    assert (error.value.field, "--force" in str(error.value.remedy)) == ("FILE", True)
    assert file.read_text() == "of last week"
    assert backups.create(file, replace=True) == verify_file(file)
    assert [*tmp_path.iterdir()] == [file]


def test_file_created_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    file, store = tmp_path / "monday.fbk", MemoryStore()
    granted(store, project("physics", 100))

    def create_meanwhile(done: int, of: int) -> None:
        file.write_text("of somebody else")

    with pytest.raises(Conflict, match="already"):
        Backups(store, ManualClock(Instant(0))).create(file, create_meanwhile)
    assert file.read_text() == "of somebody else"
    assert [*tmp_path.iterdir()] == [file]


def test_progress_reaches_the_total_only_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_file, "ROWS_AT_ONCE", 1)
    file, store, output = tmp_path / "monday.fbk", MemoryStore(), list[tuple[int, int]]()
    granted(store, *(project(f"group{number}", number) for number in range(1, 11)))
    backups = Backups(store, ManualClock(Instant(0)))
    backups.create(file, lambda done, of: output.append((done, of)))
    assert [done for done, _ in output] == [*[0] * 10, *range(1, 11), 10, 10]
    assert {of for _, of in output} == {10}

    output.clear()
    rows = verify_file(file, lambda done, of: output.append((done, of)))
    assert output == sorted(output)
    assert (len(output), output[-1]) == (rows + 1, (file.stat().st_size, file.stat().st_size))


def test_missing_directory_is_reported_with_the_mkdir_command(
    backups: Backups, tmp_path: Path
) -> None:
    with pytest.raises(NotFound) as error:
        backups.create(tmp_path / "no such" / "monday.fbk")
    assert (error.value.field, error.value.remedy) == (
        "FILE",
        f"make it first: mkdir -p '{tmp_path}/no such'",
    )


def test_directory_is_refused(backups: Backups, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a directory"):
        backups.create(tmp_path, replace=True)


def test_backup_replaces_only_regular_files(backups: Backups, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInput, match="is not a regular file"):
        backups.create(pipe, replace=True)
    assert pipe.is_fifo()


def test_disk_error_is_reported_with_the_file(backups: Backups, tmp_path: Path) -> None:
    with pytest.raises(FairbankError, match="File name too long") as error:
        backups.create(tmp_path / ("x" * 250))
    assert error.value.field == "FILE"


def test_backup_name_is_on_disk_before_it_is_reported(
    backups: Backups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, bool]] = []
    flush = os.fsync

    def record_fsync(file: int) -> None:
        synced.append((os.fstat(file).st_ino, (tmp_path / "a.fbk").exists()))
        flush(file)

    monkeypatch.setattr(os, "fsync", record_fsync)
    backups.create(tmp_path / "a.fbk")
    assert synced == [((tmp_path / "a.fbk").stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def edited(path: Path, kind: str, change: Callable[[bytes], bytes]) -> Path:
    """Change the first row of a kind in a backup, and correct the checksum."""
    with gzip.open(path) as file:
        head, *rows, _ = file.read().splitlines(keepends=True)
    place = next(n for n, row in enumerate(rows) if row.startswith(f'["{kind}",'.encode()))
    rows[place] = change(rows[place])
    tail = {"rows": len(rows), "sha256": hashlib.sha256(b"".join(rows)).hexdigest()}
    path.write_bytes(gzip.compress(b"".join([head, *rows, msgspec.json.encode(tail), b"\n"])))
    return path


@pytest.mark.parametrize("kind", ["project", "allocation", "user", "run", "entry", "registry"])
def test_row_with_an_unknown_key_is_refused(tmp_path: Path, kind: str) -> None:
    store = MemoryStore()
    fill_with_runs(store)
    backups = Backups(store, ManualClock(Instant(0)))
    backups.create(tmp_path / "a.fbk")
    more = {b"}": b',"colour":1}]\n', b"]": b",1]]\n"}
    file = edited(tmp_path / "a.fbk", kind, lambda row: row[:-3] + more[row[-3:-2]])
    empty = MemoryStore()
    with pytest.raises(Corrupt, match=f"a row of {kind} cannot be read"):
        Backups(empty, ManualClock(Instant(0))).restore(file)
    with empty.reading() as reader:
        assert [*reader.scan(Project)] == []


def test_share_without_one_of_its_values_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    store.add_share_records([ShareRecord("bio", cluster="lab", day=0, at=Instant(60))])
    backups = Backups(store, ManualClock(Instant(0)))
    for change in (
        lambda row: row.replace(b",60]]", b"]]"),
        lambda row: row.replace(b",60]]", b",60,1]]"),
        lambda row: row.replace(b'"",', b"", 1),
    ):
        backups.create(tmp_path / "a.fbk", replace=True)
        file = edited(tmp_path / "a.fbk", "share", change)
        with pytest.raises(Corrupt, match="a row of share cannot be read"):
            Backups(MemoryStore(), ManualClock(Instant(0))).restore(file)


@pytest.mark.parametrize("kind", ["project", "entry"])
def test_row_with_deep_nesting_is_refused(tmp_path: Path, kind: str) -> None:
    store = MemoryStore()
    granted(store, project("physics", 100))
    backups = Backups(store, ManualClock(Instant(0)))
    backups.create(tmp_path / "a.fbk")
    nested = b"[" * 100_000 + b"]" * 100_000
    for change in (
        lambda row: f'["{kind}",'.encode() + nested + b"]\n",
        lambda row: row[:-3] + b',"x":' + nested + b"}]\n",
    ):
        file = edited(tmp_path / "a.fbk", kind, change)
        with pytest.raises(Corrupt):
            Backups(MemoryStore(), ManualClock(Instant(0))).restore(file)
