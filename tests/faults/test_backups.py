"""Backups taken in the middle of a storm are those of one moment; restored into another kind of
store, the bank goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.audit_runs import heads, restore
from tests.faults.backups import check_restored, taken_in_a_storm, works
from tests.faults.nemesis import answers
from tests.support.server import FairbankServer, banking
from tests.support.wire import run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]


def there_and_back(
    server: FairbankServer,
    elsewhere: Callable[[], str],
    backups: int,
    seed: int,
    folder: Path,
    tell: Tell,
) -> None:
    """Backups of a storm into the other kind of store; that one works; its own backup comes back
    into a store of the first kind.
    """
    taken, witness = run(taken_in_a_storm(server, backups, seed, folder, thousands=5 * backups))
    counts = []
    for backup in taken:
        other = elsewhere()
        restore(other, backup.path)
        counts.append(check_restored(other, backup))
    tell(f"{len(taken)} backups of {counts} entries, of {len(witness.told)} in the end")
    with banking(other) as restored:
        run(works(restored))
        again = folder / "again.fbk"
        assert restored.command("backup", "create", str(again)).returncode == 0
        assert restored.command("audit", "verify").returncode == 0
    back = server.command(
        "restore", str(again), "--replace"
    )  # into the store of the server that still runs
    assert back.returncode == 0, back.stderr
    assert heads(server.store) == heads(other)
    assert server.command("audit", "verify").returncode == 0
    run(answers(server))


@pytest.mark.campaign
def test_backups_in_a_storm_go_from_sqlite_to_postgresql_and_back(
    fresh: Callable[[], str], tmp_path: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    with banking() as server:
        there_and_back(server, fresh, rounds(10, 2), seed, tmp_path, tell)


@pytest.mark.campaign
def test_backups_in_a_storm_go_from_postgresql_to_sqlite_and_back(
    database: str, tmp_path: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    files = (f"sqlite:///{tmp_path}/{number}.sqlite" for number in range(100))
    with banking(database) as server:
        there_and_back(server, lambda: next(files), rounds(10, 2), seed, tmp_path, tell)
