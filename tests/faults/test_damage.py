"""A damaged backup changes nothing; neither does a backup, a restore or an init that is killed on
its way.
"""

from __future__ import annotations

import gzip
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairbank.core.errors import FairbankError
from fairbank.service.ops.backup_file import verify_file
from tests.faults.audit_runs import findings, heads, restore
from tests.faults.nemesis import answers
from tests.faults.sample import write_sample
from tests.faults.site import SU, found
from tests.support.server import FairbankServer, made
from tests.support.wire import Wire, run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]


def damaged(backup: Path, rng: random.Random, times: int) -> Iterator[tuple[str, bytes]]:
    """The file cut short, with a bit flipped, and with its rows altered, lost, doubled or swapped
    and packed again.
    """
    packed = backup.read_bytes()
    lines = gzip.decompress(packed).splitlines(keepends=True)
    for _ in range(times):
        yield "cut short", packed[: rng.randrange(len(packed))]
        place = rng.randrange(
            10, len(packed)
        )  # before: the time and the like, which no reader minds
        yield (
            f"a bit of byte {place}",
            packed[:place] + bytes([packed[place] ^ 1 << rng.randrange(8)]) + packed[place + 1 :],
        )
        row = rng.randrange(1, len(lines) - 1)
        yield f"row {row} lost", repacked([*lines[:row], *lines[row + 1 :]])
        yield f"row {row} doubled", repacked([*lines[:row], lines[row], *lines[row:]])
        yield (
            f"row {row} altered",
            repacked([*lines[:row], altered(lines[row], rng), *lines[row + 1 :]]),
        )
        yield "rows lost at the end", repacked(lines[:row])
    yield "something behind the end", repacked([*lines, lines[1]])
    yield "nothing at all", b""
    yield "another file", b"fairbank\n"


def repacked(lines: list[bytes]) -> bytes:
    return gzip.compress(b"".join(lines), compresslevel=1)


def altered(line: bytes, rng: random.Random) -> bytes:
    """One digit of it is another."""
    places = [place for place, byte in enumerate(line) if 48 <= byte <= 57]
    place = rng.choice(places)
    return line[:place] + bytes([48 + (line[place] - 47) % 10]) + line[place + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_a_damaged_backup_changes_nothing(
    place: str, request: pytest.FixtureRequest, backup: Path, tmp_path: Path, tell: Tell
) -> None:
    with made(request.getfixturevalue("database") if place == "postgresql" else None) as bank:
        write_sample(bank.store)
        before, path, count = heads(bank.store), tmp_path / "damaged.fbk", 0
        for what, content in damaged(backup, random.Random(1), 2):
            path.write_bytes(content)
            with pytest.raises(FairbankError):
                restore(bank.store, path, replace=True)
            assert heads(bank.store) == before, what
            count += 1
        done = bank.command("restore", str(path), "--replace")
        assert (done.returncode, heads(bank.store)) == (8, before), done.stderr
        assert findings(bank.store) == ()
    tell(f"{count} damaged backups refused")


@pytest.mark.campaign
def test_very_many_damaged_backups_are_found_out(
    backup: Path, tmp_path: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    url, path, count = f"sqlite:///{tmp_path}/fairbank.sqlite", tmp_path / "damaged.fbk", 0
    restore(url, backup)
    before = heads(url)
    for what, content in damaged(backup, random.Random(seed), rounds(200, 8)):
        path.write_bytes(content)
        with pytest.raises(FairbankError):
            restore(url, path, replace=True)
        assert heads(url) == before, what
        count += 1
    tell(f"{count} damaged backups refused")


# --- killed on their way ---


def killed(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """kill -9 after so many seconds; False when it was quicker."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


@pytest.mark.campaign
def test_a_restore_that_is_killed_has_changed_everything_or_nothing(
    serving: FairbankServer, backup: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    rng, kills = random.Random(seed), 0
    run(found(Wire(serving.socket), "physics", 4_000, credit=10 * SU))
    old = heads(serving.store)
    begun = time.monotonic()
    assert serving.command("restore", str(backup), "--replace").returncode == 0
    longest = time.monotonic() - begun
    new = heads(serving.store)
    for _ in range(rounds(40, 3)):
        before = heads(serving.store)
        kills += killed(
            serving.begin("restore", str(backup), "--replace"), rng.uniform(longest / 3, longest)
        )
        assert heads(serving.store) in (before, new)
        assert findings(serving.store) == ()
        run(answers(serving))
        run(one_more_deposit(serving))
    assert old != new
    tell(f"{kills} restores of about {longest:.1f} s killed")


async def one_more_deposit(server: FairbankServer) -> None:
    deposit = {"amount": 1, "comment": "not the backup any more"}
    answer = await Wire(server.socket).ask("POST", "/alloc/1/deposit", deposit)
    assert answer.status == 201, answer.body


@pytest.mark.campaign
def test_a_backup_that_is_killed_leaves_the_one_before(
    serving: FairbankServer, backup: Path, tmp_path: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    rng, kills, path = random.Random(seed), 0, tmp_path / "nightly.fbk"
    restore(serving.store, backup, replace=True)
    begun = time.monotonic()
    assert serving.command("backup", "create", str(path)).returncode == 0
    longest = time.monotonic() - begun
    for _ in range(rounds(40, 3)):
        kills += killed(
            serving.begin("backup", "create", str(path)), rng.uniform(longest / 3, longest)
        )
        assert verify_file(path) > 0
    tell(f"{kills} backups of about {longest:.1f} s killed")


@pytest.mark.campaign
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_killed_init_can_be_run_again(
    place: str, fresh: Callable[[], str], tmp_path: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    rng, kills = random.Random(seed), 0
    with made() as other:
        begun = time.monotonic()
        assert other.command("init", str(tmp_path / "whole")).returncode == 0
        longest = time.monotonic() - begun
        for number in range(rounds(20, 2)):
            folder = str(tmp_path / str(number))
            words = ["init", folder]
            if place == "postgresql":
                words += ["--store", fresh()]
            kills += killed(other.begin(*words), rng.uniform(longest / 3, longest))
            done = other.command(*words)
            assert done.returncode in (0, 7), done.stderr  # 7: the first one was quicker
            audit = other.command("audit", "verify", "--config", f"{folder}/fairbank.toml")
            assert audit.returncode == 0, audit.stderr
    tell(f"{kills} inits of about {longest:.1f} s killed")
