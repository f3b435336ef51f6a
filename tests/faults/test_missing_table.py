"""Ledger without a table: reported as damaged, and no client is asked to retry."""

from __future__ import annotations

import pytest

from tests.faults.ledger_tables import LedgerTables
from tests.faults.sample import write_sample
from tests.support.server import create_bank


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_database_without_a_table_is_reported_as_damaged(
    place: str, request: pytest.FixtureRequest
) -> None:
    with create_bank(
        request.getfixturevalue("database") if place == "postgresql" else None
    ) as bank:
        write_sample(bank.store)
        LedgerTables(bank.store).rows(
            "DROP TABLE run" if place == "sqlite" else "DROP TABLE run CASCADE"
        )
        for words in (
            ["audit", "verify"],
            ["doctor"],
            ["backup", "create", str(bank.folder / "a.fbk")],
        ):
            done = bank.command(*words)
            output = done.stdout + done.stderr
            assert (done.returncode, "try again" in output) == (8, False), output
            assert "no such table: run" in output or 'relation "run" does not exist' in output
        assert list(bank.folder.glob("*.fbk")) == []
