"""Flipped bits of an SQLite file: found by the audit or by the database, or without effect on the
ledger.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fairbank.core.errors import FairbankError
from fairbank.store.sqlite.driver import driver
from tests.faults.forgeries import KEYS
from tests.faults.in_process import findings
from tests.faults.ledger_tables import LedgerTables
from tests.faults.sample import write_sample
from tests.support.figures import LogFigure
from tests.support.server import create_bank

Rounds = Callable[[int, int], int]


ORDER = {"journal": "allocation, seq", "run": "allocation, id"}
"""As the bank and its audit read the tables: what an index has is read from there, and a flip in
the table itself is not seen.
"""


def table_rows(url: str) -> dict[str, list[list[object]]]:
    """Return all rows of the ledger."""
    result = {
        table: LedgerTables(url).rows(
            f"SELECT * FROM {table} ORDER BY {ORDER.get(table, ', '.join(KEYS[table]))}"
        )
        for table in KEYS
    }
    return {table: [list(row.values()) for row in lines] for table, lines in result.items()}


def flip_bits(folder: Path, times: int, rng: random.Random) -> Counter[str]:
    """Flip one bit at a time, `times` times, and count the results."""
    intact, url = folder / "sound.sqlite", f"sqlite:///{folder}/rotten.sqlite"
    write_sample(f"sqlite:///{intact}")
    expected, content = table_rows(f"sqlite:///{intact}"), intact.read_bytes()
    written = [
        place for place, byte in enumerate(content) if byte
    ]  # most bytes of such a small file are 0
    tally: Counter[str] = Counter()
    for _ in range(times):
        place = rng.choice(written)
        (folder / "rotten.sqlite").write_bytes(
            content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
        )
        try:
            result = "found by the audit" if findings(url) else "without effect"
        except FairbankError as error:
            result = f"found by the database ({error.title})"
        if result == "without effect":
            assert table_rows(url) == expected, f"byte {place} was altered unseen"
        tally[result] += 1
        for path in folder.glob("rotten.sqlite*"):
            path.unlink()
    return tally


@pytest.mark.slow
def test_some_flipped_bits_are_found(tmp_path: Path, log_figure: LogFigure) -> None:
    log_figure(str(dict(flip_bits(tmp_path, 60, random.Random(1)))))


@pytest.mark.campaign
def test_many_flipped_bits_are_found(
    tmp_path: Path, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    log_figure(str(dict(flip_bits(tmp_path, rounds(5_000, 200), random.Random(seed)))))


@pytest.mark.campaign
def test_audit_command_reports_damage_and_its_remedy_works(
    backup: Path, rounds: Rounds, seed: int
) -> None:
    """The exit code is 8, or 7 if the schema's version is damaged; never that of an internal
    error.
    """
    rng = random.Random(seed)
    with create_bank() as bank:
        write_sample(bank.store)
        file = bank.folder / "fairbank.sqlite"
        content = file.read_bytes()
        for _ in range(rounds(60, 3)):
            damaged_content = bytearray(content)
            for _ in range(200):
                damaged_content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(damaged_content)
            done = bank.command("audit", "verify")
            assert done.returncode in (7, 8), done.stdout + done.stderr
        for path in bank.folder.glob("fairbank.sqlite*"):
            path.rename(path.with_name(f"damaged-{path.name}"))
        for words in (["init", str(bank.folder)], ["restore", str(backup)], ["audit", "verify"]):
            done = bank.command(*words)
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("column", ["name", "tbl_name", "sql"])
def test_name_in_the_schema_that_is_no_text_is_found(tmp_path: Path, column: str) -> None:
    """One flipped bit of the record's header makes a text a blob."""
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    write_sample(url)
    with closing(driver.connect(f"{tmp_path}/ledger.sqlite")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            f"UPDATE sqlite_master SET {column} = CAST({column} AS BLOB) WHERE name = 'journal_key'"
        )
    try:
        (finding, *_) = findings(url)
    except FairbankError:
        return  # the database itself reports it
    assert "not text" in finding.what
