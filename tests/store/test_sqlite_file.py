"""File of the embedded store: its modes, its journal, and concurrent users."""

from __future__ import annotations

import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from urllib.parse import quote

import pytest

from fairbank.bank.requests import Deposit
from fairbank.cli.framework.error_exit import exit_code
from fairbank.core.errors import Busy, Corrupt, Forbidden, InvalidInput, NotFound, Unavailable
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Contention, Store
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from fairbank.store.sqlite import store as sqlite
from fairbank.store.sqlite.driver import VERSION, driver, is_wal_safe
from fairbank.store.sqlite.store import SqliteStore
from tests.contracts.small_site import contents, fill, granted, hold
from tests.support.account import Account
from tests.support.small_disk import small_disk

WITH_THE_BUG = (3, 40, 1)
WAL = 2  # in bytes 18 and 19 of the file's head

needs_wal = pytest.mark.skipif(
    not is_wal_safe(VERSION), reason=f"SQLite {VERSION} must not use a write-ahead log"
)


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def pragma(path: Path, name: str) -> object:
    connection = driver.connect(str(path))
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


def test_new_file_is_readable_by_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "fairbank.sqlite"
    migrate(url(path))
    store = open_store(url(path))
    fill(store)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    assert modes["fairbank.sqlite"] == 0o600
    assert set(modes.values()) == {0o600}


def test_unusual_file_names_work(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=memory#%41é.sqlite"
    migrate(f"sqlite:///{quote(str(path))}")
    store = open_store(f"sqlite:///{quote(str(path))}")
    fill(store)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "fairbank.sqlite"
    for attempt in (migrate, open_store):
        with pytest.raises(NotFound) as raised:
            attempt(url(missing))
        assert "mkdir -p" in str(raised.value.remedy)


def test_missing_database_names_init(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as raised:
        open_store(url(tmp_path / "fairbank.sqlite"))
    assert raised.value.remedy == "fairbank init"
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(NotFound) as raised:
        open_store(url(tmp_path / "empty.sqlite"))
    assert raised.value.remedy == "fairbank init"
    assert not (tmp_path / "fairbank.sqlite").exists()


def test_invalid_database_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "fairbank.sqlite"
    path.write_bytes(b"these are no books at all, whatever the name says" * 100)
    for attempt in (migrate, open_store):
        with pytest.raises(Corrupt, match="damaged"):
            attempt(url(path))


@needs_wal
def test_wal_is_used_and_every_commit_is_synced(file: Path) -> None:
    store = SqliteStore(file)
    with store.write_transaction() as connection:
        facts = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint")
        }
    store.close()
    assert facts == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "wal_autocheckpoint": 4_000,
    }


def test_faulty_sqlite_refuses_wal(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "VERSION", WITH_THE_BUG)
    for attempt in (migrate, open_store):
        with pytest.raises(InvalidInput, match=r"3\.40\.1") as raised:
            attempt(url(file), journal="wal")
        assert raised.value.field == "store.journal"
        assert "pysqlite3" in str(raised.value.remedy)
        assert 'store.journal = "truncate"' in str(raised.value.remedy)


@pytest.mark.parametrize("journal", ["truncate", None])
def test_faulty_sqlite_uses_rollback_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str | None
) -> None:
    """Also by default: a new bank is not refused because the machine's library is old."""
    monkeypatch.setattr(sqlite, "VERSION", WITH_THE_BUG)
    path = tmp_path / "fairbank.sqlite"
    migrate(url(path), journal=journal)
    store = open_store(url(path), journal=journal)
    fill(store)
    granted(store, hold(1, 5))
    assert contents(store)[2][0].held == 5
    store.close()
    assert pragma(path, "journal_mode") != "wal"


@needs_wal
def test_unshared_wal_file_is_converted(file: Path) -> None:
    store = open_store(url(file))
    fill(store)
    before = contents(store)
    assert file.read_bytes()[18] == WAL
    with pytest.raises(InvalidInput, match="cannot be given the journal"):
        SqliteStore(file, journal="truncate", timeout_seconds=0.1).check(lambda connection: None)
    store.close()
    converted = open_store(url(file), journal="truncate")
    assert contents(converted) == before
    granted(converted, hold(1, 5))
    converted.close()
    assert file.read_bytes()[18] != WAL
    back = open_store(url(file))
    assert contents(back)[2][0].held == 5
    back.close()


@needs_wal
def test_migration_waits_for_another_writer_of_the_file(tmp_path: Path) -> None:
    """SQLite itself does not wait when it changes the journal of a file."""
    path = tmp_path / "fairbank.sqlite"
    path.touch()
    other = driver.connect(str(path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(InvalidInput, match="cannot be given the journal 'wal': database is locked"):
        SqliteStore(path, timeout_seconds=0.1).check(lambda connection: None)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(migrate, url(path))
        assert wait([made], timeout=0.3).not_done == {made}
        other.execute("COMMIT")
        assert made.result() is True
    other.close()
    assert path.read_bytes()[18] == WAL


def test_two_processes_share_file_with_rollback_journal(file: Path) -> None:
    one, two = open_store(url(file), journal="truncate"), open_store(url(file), journal="truncate")
    fill(one)
    granted(two, hold(1, 5))
    granted(one, hold(2, 5))
    assert contents(two)[2][0].held == 10
    one.close()
    two.close()


def test_unknown_journal_mode_is_reported(file: Path) -> None:
    with pytest.raises(InvalidInput, match="'off' is not a journal") as raised:
        open_store(url(file), journal="off")
    assert raised.value.remedy == "one of wal, truncate"


def test_foreign_lock_held_too_long_is_contention(file: Path) -> None:
    store = SqliteStore(file, timeout_seconds=0.1)
    other = driver.connect(str(file), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Contention, match="locked"), store.transaction():
        pytest.fail("the file is locked")
    other.execute("ROLLBACK")
    fill(store)
    other.close()
    store.close()


def test_locked_file_can_be_opened_and_read(file: Path) -> None:
    """Audits, backups and the doctor run beside a busy server."""
    fill(open_store(url(file)))
    other = driver.connect(str(file), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = open_store(url(file))
    assert [content.id for content in contents(store)[2]][:1] == [1]
    other.close()
    store.close()


def test_all_readers_in_use_is_busy(file: Path) -> None:
    store = SqliteStore(file, readers=1, timeout_seconds=0.1)
    with store.reading(), pytest.raises(Busy), store.reading():
        pytest.fail("there is one reader only")
    store.close()


def test_reader_cannot_write(file: Path) -> None:
    store = SqliteStore(file)
    with pytest.raises(Unavailable, match="readonly"), store.reading() as reader:
        reader.connection.exec_driver_sql("DELETE FROM nonce")  # type: ignore[attr-defined]
    store.close()


def test_damaged_page_is_reported(file: Path) -> None:
    store = open_store(url(file))
    fill(store)
    granted(store, *(hold(number, 1) for number in range(1, 200)))
    store.close()
    pages = bytearray(file.read_bytes())
    for place in range(4096 * 2, len(pages), 4096):
        pages[place : place + 200] = b"\xa5" * 200
    file.write_bytes(pages)
    with pytest.raises(Corrupt, match="damaged"):
        contents(open_store(url(file)))


@pytest.mark.parametrize("closed", ["folder", "file"])
def test_foreign_database_file_is_reported(closed: str) -> None:
    folder, ourselves, nobody = (
        Account.ourselves().own_folder("fb-own-", 0o755),
        os.geteuid(),
        Account.nobody(),
    )
    try:
        migrate(url(folder / "fairbank.sqlite"))
        (folder if closed == "folder" else folder / "fairbank.sqlite").chmod(0o000)
        os.seteuid(nobody.uid)
        try:
            with pytest.raises(Forbidden) as no:
                open_store(url(folder / "fairbank.sqlite"))
        finally:
            os.seteuid(ourselves)
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
    assert (no.value.field, exit_code(no.value)) == ("store.url", 4)


def test_folder_is_refused_as_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a file"):
        open_store(url(tmp_path))


def test_full_check_reports_progress_until_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PROGRESS_STEPS", 100)
    path = tmp_path / "fairbank.sqlite"
    migrate(url(path))
    store = open_store(url(path))
    fill(store)
    signs: list[None] = []
    assert store.integrity_errors(at_work=lambda: signs.append(None)) == []
    during = len(signs)
    assert during > 2, "one at its beginning, the others while it goes on"
    contents(store)
    assert store.integrity_errors() == []
    assert len(signs) == during, "the same connection is asked again, by somebody who does not wait"
    store.close()


@needs_wal
def test_full_disk_recovers_once_there_is_space(tmp_path: Path) -> None:
    """The log fills the disk before it has the length at which SQLite moves it into the file."""
    with small_disk(tmp_path / "disk", "8m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(2 << 20))
        path = disk / "fairbank.sqlite"
        migrate(url(path))
        store = open_store(url(path))
        fill(store)
        with pytest.raises(Unavailable, match="disk is full") as full:
            granted_one_by_one(store, range(4_000))
        assert "at least 20 MiB" in str(full.value.remedy)
        ballast.unlink()
        granted_one_by_one(store, range(4_000, 4_300))
        store.close()


def granted_one_by_one(store: Store, numbers: range) -> None:
    for number in numbers:
        granted(
            store, Deposit(allocation=1, amount=SuMinutes(1), key=f"d{number}", comment="x" * 400)
        )
