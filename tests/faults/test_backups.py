"""Backups under load are consistent, and the bank continues with them in the other kind of
store.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.in_process import heads, restore
from tests.faults.load_backups import back_up_under_load, check_accepts_runs, check_restored
from tests.faults.nemesis import wait_until_answering
from tests.support.figures import LogFigure
from tests.support.server import FairbankServer, run_bank
from tests.support.wire import run

Rounds = Callable[[int, int], int]


def check_backups_in_other_store(
    server: FairbankServer,
    new_store: Callable[[], str],
    backups: int,
    seed: int,
    folder: Path,
    log_figure: LogFigure,
) -> None:
    """Restore backups into the other kind of store, use the bank there, and restore its backup into
    the first store.
    """
    records, answer_log = run(
        back_up_under_load(server, backups, seed, folder, thousands=5 * backups)
    )
    counts = []
    for backup in records:
        target = new_store()
        restore(target, backup.path)
        counts.append(check_restored(target, backup))
    log_figure(
        f"{len(records)} backups of {counts} entries, of {len(answer_log.answers)} in the end"
    )
    with run_bank(target) as restored:
        run(check_accepts_runs(restored))
        second_backup = folder / "again.fbk"
        assert restored.command("backup", "create", str(second_backup)).returncode == 0
        assert restored.command("audit", "verify").returncode == 0
    restored_back = server.command(
        "restore", str(second_backup), "--replace", "--yes"
    )  # into the store of the running server
    assert restored_back.returncode == 0, restored_back.stderr
    assert heads(server.store) == heads(target)
    assert server.command("audit", "verify").returncode == 0
    run(wait_until_answering(server))


@pytest.mark.campaign
def test_backups_under_load_are_restored_from_sqlite_to_postgresql_and_back(
    new_database: Callable[[], str],
    tmp_path: Path,
    rounds: Rounds,
    seed: int,
    log_figure: LogFigure,
) -> None:
    with run_bank() as server:
        check_backups_in_other_store(
            server, new_database, rounds(10, 2), seed, tmp_path, log_figure
        )


@pytest.mark.campaign
def test_backups_under_load_are_restored_from_postgresql_to_sqlite_and_back(
    database: str, tmp_path: Path, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    files = (f"sqlite:///{tmp_path}/{number}.sqlite" for number in range(100))
    with run_bank(database) as server:
        check_backups_in_other_store(
            server, lambda: next(files), rounds(10, 2), seed, tmp_path, log_figure
        )
