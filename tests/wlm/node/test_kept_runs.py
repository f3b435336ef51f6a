"""State file of a node of version 1: a change of its records or its table fails here."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairbank.cluster.job import Run
from fairbank.core.errors import Corrupt
from fairbank.wlm.node.run_store import STATE_FILE, RunStore
from tests.support.golden import GOLDEN


def test_kept_runs_are_read_and_stored_again(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / STATE_FILE)) as file:
        file.executescript((GOLDEN / "stores" / "node-1.sql").read_text())
    with closing(RunStore(tmp_path)) as store:
        ended, open_run = runs = store.runs()
        assert ended.end is not None
        assert (ended.run, ended.epilog_status) == (Run("lab", 1, 1_700_000_000), 0)
        assert (ended.end.cause, ended.end.usage.cpu_seconds) == ("exit", 58.25)
        assert (open_run.run, open_run.end) == (Run("lab", 2, 1_700_000_060), None)
        store.put(ended)
        assert store.runs() == runs


def test_row_that_cannot_be_read_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    RunStore(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / STATE_FILE)) as file, file:
        file.execute("INSERT INTO runs VALUES ('lab/1@1.0', x'80')")
    with (
        closing(RunStore(tmp_path)) as store,
        pytest.raises(Corrupt, match="a row that cannot") as e,
    ):
        store.runs()
    assert "move it away" in str(e.value.remedy)
