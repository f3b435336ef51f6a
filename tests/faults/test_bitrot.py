"""Bits of an SQLite file flip: the audit finds it, or the database does, or nothing of the books has changed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairbank.values.trouble import Trouble
from tests.faults.auditing import findings
from tests.faults.books import Books, Row
from tests.faults.forging import KEYS
from tests.faults.sample import write_sample
from tests.support.server import made

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]


def rows(url: str) -> dict[str, list[Row]]:
    """Everything that the books say, by a walk through each table."""
    return {table: Books(url).rows(f"SELECT * FROM {table} NOT INDEXED ORDER BY {', '.join(KEYS[table])}") for table in KEYS}


def flipped(folder: Path, times: int, rng: random.Random) -> Counter[str]:
    """What came of so many flips, one at a time."""
    sound, url = folder / "sound.sqlite", f"sqlite:///{folder}/rotten.sqlite"
    write_sample(f"sqlite:///{sound}")
    due, content = rows(f"sqlite:///{sound}"), sound.read_bytes()
    assert not (folder / "sound.sqlite-wal").exists()
    tally: Counter[str] = Counter()
    for _ in range(times):
        place = rng.randrange(len(content))
        (folder / "rotten.sqlite").write_bytes(content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :])
        try:
            found = "found by the audit" if findings(url) else "not in the books"
        except Trouble as trouble:
            found = f"found by the database ({trouble.title})"
        if found == "not in the books":
            assert rows(url) == due, f"byte {place} was altered unseen"
        tally[found] += 1
        for each in folder.glob("rotten.sqlite*"):
            each.unlink()
    return tally


@pytest.mark.slow
def test_a_few_flipped_bits(tmp_path: Path, tell: Tell) -> None:
    tell(str(dict(flipped(tmp_path, 60, random.Random(1)))))


@pytest.mark.campaign
def test_very_many_flipped_bits(tmp_path: Path, rounds: Rounds, seed: int, tell: Tell) -> None:
    tell(str(dict(flipped(tmp_path, rounds(5_000, 200), random.Random(seed)))))


@pytest.mark.campaign
def test_the_command_says_so_too(tmp_path: Path, rounds: Rounds, seed: int) -> None:
    """Exit code 8, or 6 where the file cannot even be opened; never "this should not have happened"."""
    rng = random.Random(seed)
    with made() as bank:
        write_sample(bank.store)
        file = bank.folder / "books.sqlite"
        content = file.read_bytes()
        for _ in range(rounds(60, 3)):
            spoilt = bytearray(content)
            for _ in range(200):
                spoilt[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(spoilt)
            done = bank.command("audit", "verify")
            assert done.returncode in (6, 7, 8), done.stdout + done.stderr
