"""Damaged backups, and killed backups, restores and inits: nothing is half done."""

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
from tests.faults.in_process import findings, heads, restore
from tests.faults.nemesis import wait_until_answering
from tests.faults.sample import write_sample
from tests.faults.site import SU, create_project
from tests.support.figures import LogFigure
from tests.support.server import FairbankServer, create_bank
from tests.support.wire import Wire, run

Rounds = Callable[[int, int], int]


def damaged_copies(backup: Path, rng: random.Random, times: int) -> Iterator[tuple[str, bytes]]:
    """Yield the backup truncated, with a flipped bit, and with altered, lost or doubled rows
    compressed again.
    """
    packed = backup.read_bytes()
    lines = gzip.decompress(packed).splitlines(keepends=True)
    for _ in range(times):
        yield "cut short", packed[: rng.randrange(len(packed))]
        place = rng.randrange(
            10, len(packed)
        )  # earlier bytes are the time and flags of gzip, which no reader checks
        yield (
            f"a bit of byte {place}",
            packed[:place] + bytes([packed[place] ^ 1 << rng.randrange(8)]) + packed[place + 1 :],
        )
        row = rng.randrange(1, len(lines) - 1)
        yield f"row {row} lost", repack([*lines[:row], *lines[row + 1 :]])
        yield f"row {row} doubled", repack([*lines[:row], lines[row], *lines[row:]])
        yield (
            f"row {row} altered",
            repack([*lines[:row], alter_digit(lines[row], rng), *lines[row + 1 :]]),
        )
        yield "rows lost at the end", repack(lines[:row])
    yield "a row after the end", repack([*lines, lines[1]])
    yield "an empty file", b""
    yield "another file", b"fairbank\n"


def repack(lines: list[bytes]) -> bytes:
    return gzip.compress(b"".join(lines), compresslevel=1)


def alter_digit(line: bytes, rng: random.Random) -> bytes:
    """Return the line with one digit changed."""
    places = [place for place, byte in enumerate(line) if 48 <= byte <= 57]
    place = rng.choice(places)
    return line[:place] + bytes([48 + (line[place] - 47) % 10]) + line[place + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_damaged_backup_changes_nothing(
    place: str, request: pytest.FixtureRequest, backup: Path, tmp_path: Path, log_figure: LogFigure
) -> None:
    with create_bank(
        request.getfixturevalue("database") if place == "postgresql" else None
    ) as bank:
        write_sample(bank.store)
        before, path, count = heads(bank.store), tmp_path / "damaged.fbk", 0
        for what, content in damaged_copies(backup, random.Random(1), 2):
            path.write_bytes(content)
            with pytest.raises(FairbankError):
                restore(bank.store, path, replace=True)
            assert heads(bank.store) == before, what
            count += 1
        done = bank.command("restore", str(path), "--replace", "--yes")
        assert (done.returncode, heads(bank.store)) == (8, before), done.stderr
        assert findings(bank.store) == ()
    log_figure(f"{count} damaged backups refused")


@pytest.mark.campaign
def test_many_damaged_backups_are_refused(
    backup: Path, tmp_path: Path, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    url, path, count = f"sqlite:///{tmp_path}/fairbank.sqlite", tmp_path / "damaged.fbk", 0
    restore(url, backup)
    before = heads(url)
    for what, content in damaged_copies(backup, random.Random(seed), rounds(200, 8)):
        path.write_bytes(content)
        with pytest.raises(FairbankError):
            restore(url, path, replace=True)
        assert heads(url) == before, what
        count += 1
    log_figure(f"{count} damaged backups refused")


# --- killed commands ---


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill the process after some seconds; return False if it ended before."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


@pytest.mark.campaign
def test_killed_restore_changes_everything_or_nothing(
    running_bank: FairbankServer, backup: Path, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    rng, kills = random.Random(seed), 0
    run(create_project(Wire(running_bank.socket), "physics", 4_000, credit=10 * SU))
    old = heads(running_bank.store)
    begun = time.monotonic()
    assert running_bank.command("restore", str(backup), "--replace", "--yes").returncode == 0
    longest = time.monotonic() - begun
    new = heads(running_bank.store)
    for _ in range(rounds(40, 3)):
        before = heads(running_bank.store)
        kills += kill_after(
            running_bank.begin("restore", str(backup), "--replace", "--yes"),
            rng.uniform(longest / 3, longest),
        )
        assert heads(running_bank.store) in (before, new)
        assert findings(running_bank.store) == ()
        run(wait_until_answering(running_bank))
        run(one_more_deposit(running_bank))
    assert old != new
    log_figure(f"{kills} restores of about {longest:.1f} s killed")


async def one_more_deposit(server: FairbankServer) -> None:
    deposit = {"amount": 1, "comment": "not the backup any more"}
    answer = await Wire(server.socket).ask("POST", "/alloc/1/deposit", deposit)
    assert answer.status == 201, answer.body


@pytest.mark.campaign
def test_killed_backup_keeps_the_previous_backup(
    running_bank: FairbankServer,
    backup: Path,
    tmp_path: Path,
    rounds: Rounds,
    seed: int,
    log_figure: LogFigure,
) -> None:
    rng, kills, path = random.Random(seed), 0, tmp_path / "nightly.fbk"
    restore(running_bank.store, backup, replace=True)
    begun = time.monotonic()
    assert running_bank.command("backup", "create", str(path)).returncode == 0
    longest = time.monotonic() - begun
    for _ in range(rounds(40, 3)):
        kills += kill_after(
            running_bank.begin("backup", "create", str(path)), rng.uniform(longest / 3, longest)
        )
        assert verify_file(path) > 0
    log_figure(f"{kills} backups of about {longest:.1f} s killed")


@pytest.mark.campaign
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_killed_init_can_be_run_again(
    place: str,
    new_database: Callable[[], str],
    tmp_path: Path,
    rounds: Rounds,
    seed: int,
    log_figure: LogFigure,
) -> None:
    rng, kills = random.Random(seed), 0
    with create_bank() as other:
        begun = time.monotonic()
        assert other.command("init", str(tmp_path / "whole")).returncode == 0
        longest = time.monotonic() - begun
        for number in range(rounds(20, 2)):
            folder = str(tmp_path / str(number))
            words = ["init", folder]
            if place == "postgresql":
                words += ["--store", new_database()]
            kills += kill_after(other.begin(*words), rng.uniform(longest / 3, longest))
            done = other.command(*words)
            assert done.returncode in (0, 7), (
                done.stderr
            )  # 7: the first command ended before the kill
            audit = other.command("audit", "verify", "--config", f"{folder}/fairbank.toml")
            assert audit.returncode == 0, audit.stderr
    log_figure(f"{kills} inits of about {longest:.1f} s killed")
