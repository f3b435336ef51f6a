"""Bits of an SQLite file flip: the audit finds it, or the database does, or nothing of the books
has changed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairbank.core.errors import FairbankError
from tests.faults.audit_runs import findings
from tests.faults.forgeries import KEYS
from tests.faults.sample import write_sample
from tests.faults.tables import Books
from tests.support.server import made

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]


ORDER = {"journal": "book, seq", "run": "allocation, id"}
"""As the bank and its audit read the tables: what an index has is read from there, and a flip in
the table itself is not seen.
"""


def rows(url: str) -> dict[str, list[list[object]]]:
    """Everything that the books say."""
    found = {
        table: Books(url).rows(
            f"SELECT * FROM {table} ORDER BY {ORDER.get(table, ', '.join(KEYS[table]))}"
        )
        for table in KEYS
    }
    return {table: [list(row.values()) for row in lines] for table, lines in found.items()}


def flipped(folder: Path, times: int, rng: random.Random) -> Counter[str]:
    """Flip so many bits, one at a time, and count the results."""
    sound, url = folder / "sound.sqlite", f"sqlite:///{folder}/rotten.sqlite"
    write_sample(f"sqlite:///{sound}")
    due, content = rows(f"sqlite:///{sound}"), sound.read_bytes()
    written = [
        place for place, byte in enumerate(content) if byte
    ]  # most of so small a file is empty
    tally: Counter[str] = Counter()
    for _ in range(times):
        place = rng.choice(written)
        (folder / "rotten.sqlite").write_bytes(
            content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
        )
        try:
            found = "found by the audit" if findings(url) else "not in the books"
        except FairbankError as trouble:
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
def test_the_command_says_so_too_and_its_remedy_helps(
    backup: Path, rounds: Rounds, seed: int
) -> None:
    """Exit code 8, or 7 where the schema's version is spoilt; never "this should not have
    happened".
    """
    rng = random.Random(seed)
    with made() as bank:
        write_sample(bank.store)
        file = bank.folder / "fairbank.sqlite"
        content = file.read_bytes()
        for _ in range(rounds(60, 3)):
            spoilt = bytearray(content)
            for _ in range(200):
                spoilt[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(spoilt)
            done = bank.command("audit", "verify")
            assert done.returncode in (7, 8), done.stdout + done.stderr
        for each in bank.folder.glob("fairbank.sqlite*"):
            each.rename(each.with_name(f"damaged-{each.name}"))
        for words in (["init", str(bank.folder)], ["restore", str(backup)], ["audit", "verify"]):
            done = bank.command(*words)
            assert done.returncode == 0, done.stderr
