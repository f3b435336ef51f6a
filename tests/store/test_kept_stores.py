"""Stores of each schema revision, kept as SQL text: this release opens them, and the balances are
unchanged. The revision of an unreleased Fairbank may still change; then run this file with
`WRITE_GOLDEN=1` and read the diff.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from fairbank.bank.query import AllocationQuery, Page, ProjectQuery, RunQuery
from fairbank.core.errors import InvalidInput
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.backup import Backups
from fairbank.setup.bank_settings import SystemClock
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from fairbank.store.schema import REVISIONS
from fairbank.store.sql.schema_check import schema_differences
from tests.contracts.small_site import charge, granted
from tests.faults import sample
from tests.support.golden import GOLDEN
from tests.support.postgres import PostgresServer

STORES = GOLDEN / "stores"
BALANCES = [(1, 600, 5_710, 33, 0), (2, 0, 9_700, 650, 2_705)]
"""Allocation, credit limit, deposited, charged and held, in SU-minutes."""
OPEN_HOLDS = [(1, 1_500), (5, 1_205)]


@pytest.mark.parametrize("revision", REVISIONS)
def test_kept_sqlite_store_has_its_balances(tmp_path: Path, revision: str) -> None:
    kept, path = STORES / f"sqlite-{revision}.sql", tmp_path / "store.sqlite"
    if os.environ.get("WRITE_GOLDEN") and revision == REVISIONS[-1]:
        sample.write_sample(f"sqlite:///{tmp_path}/new.sqlite")
        with closing(sqlite3.connect(tmp_path / "new.sqlite")) as connection:
            kept.write_text("".join(f"{line}\n" for line in connection.iterdump()))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(kept.read_text())
    check_store(f"sqlite:///{path}", is_newest=revision == REVISIONS[-1])


@pytest.mark.parametrize("revision", REVISIONS)
def test_kept_postgres_store_has_its_balances(postgres15: PostgresServer, revision: str) -> None:
    kept = STORES / f"postgres-{revision}.sql"
    if os.environ.get("WRITE_GOLDEN") and revision == REVISIONS[-1]:
        with postgres15.fresh_database() as name:
            sample.write_sample(postgres15.url(name))
            kept.write_text(dump(postgres15.conninfo(name)))
    with postgres15.fresh_database() as name:
        with psycopg.connect(postgres15.conninfo(name)) as connection:
            connection.execute(kept.read_bytes())
        check_store(postgres15.url(name), is_newest=revision == REVISIONS[-1])


def check_store(url: str, *, is_newest: bool) -> None:
    """Check projects, balances, holds and journal; then charge a kept hold."""
    assert migrate(url) is not is_newest
    store = open_store(url)
    with closing(store):
        with store.reading() as reader:
            projects = [row.gname for row in reader.projects(ProjectQuery(), Page())]
            rows = reader.allocations(AllocationQuery(), Page())
            runs = reader.runs(RunQuery(), Page())
        assert projects == ["college", "physics"]
        assert [
            (row.id, row.terms.credit_limit, row.deposited, row.charged, row.held) for row in rows
        ] == BALANCES
        holds = sorted((run.reported.run.job_id, run.held) for run in runs if run.held)
        assert holds == OPEN_HOLDS
        assert Audit(store).verify().findings == ()
        assert schema_differences(url) == []
        # Every kept hold can still be charged: run 5 of 1,205 SU-minutes with 205.
        (hold,) = [run for run in runs if run.reported.run.job_id == 5]
        held = hold.reported
        granted(
            store,
            charge(
                5, 205, run=held.run, project=held.project, owner=hold.owner, ended=held.start + 600
            ),
            at=held.until,
        )
        with store.reading() as reader:
            row = reader.allocations(AllocationQuery(), Page())[1]
        assert (row.charged, row.held) == (650 + 205, 2_705 - 1_205)
        assert Audit(store).verify().findings == ()


@pytest.mark.parametrize(
    ("form", "message", "remedy"),
    [
        ("fairbank.backup/1", "was written by an older version", "create a new bank"),
        ("fairbank.backup/2", "was written by an older version", "create a new bank"),
        ("fairbank.backup/3", "was written by an older version", "create a new bank"),
        ("fairbank.backup/4", "was written by an older version", "create a new bank"),
        ("fairbank.backup/5", "was written by an older version", "create a new bank"),
        ("fairbank.backup/9", "is not a backup of the form", "name a file made by"),
    ],
)
def test_backup_of_another_version_is_refused(
    tmp_path: Path, form: str, message: str, remedy: str
) -> None:
    path = tmp_path / "old.backup"
    header = {"format": form, "at": "2026-01-01T00:00:00Z"}
    path.write_bytes(gzip.compress(f"{json.dumps(header)}\n".encode()))
    with pytest.raises(InvalidInput, match=message) as refused:
        Backups(open_store("memory:"), SystemClock()).restore(path)
    assert str(refused.value.remedy).startswith(remedy)


def dump(conninfo: str) -> str:
    """Return the database as SQL, without comments and commands of psql."""
    done = subprocess.run(
        ["pg_dump", "--inserts", "--no-owner", "--no-privileges", f"--dbname={conninfo}"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    return "".join(f"{line}\n" for line in lines if line and not line.startswith(("--", "\\")))
