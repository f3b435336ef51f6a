"""Store without a column of the schema that it names: every command that opens it says so. It calls
no file damaged, and does not advise to try again.
"""

from __future__ import annotations

import pytest

from tests.faults.ledger_tables import LedgerTables
from tests.faults.sample import write_sample
from tests.support.server import create_bank


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_store_without_a_column_is_refused_with_a_remedy_that_works(
    place: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("database") if place == "postgresql" else None
    with create_bank(url) as bank:
        write_sample(bank.store)
        kept = str(bank.folder / "kept.fbk")
        assert bank.command("backup", "create", kept).returncode == 0
        LedgerTables(bank.store).rows("ALTER TABLE run DROP COLUMN occupied")
        for code, *words in (
            (7, "audit", "verify"),
            (7, "backup", "create", str(bank.folder / "a.fbk")),
            (7, "restore", kept, "--replace", "--yes"),
            (7, "serve"),
            (7, "init", str(bank.folder)),
            (8, "doctor"),
        ):
            done = bank.command(*words)
            output = " ".join((done.stdout + done.stderr).split())
            assert done.returncode == code, output
            assert "column run.occupied is missing;" in output, output
            assert "a development version created it, or it was changed later" in output
            assert "then create a new store: fairbank init" in output
            assert "damaged" not in output
            assert "try again" not in output
            assert "schema is current" not in output
        assert [path.name for path in bank.folder.glob("*.fbk")] == ["kept.fbk"]
        if place == "sqlite":
            for path in bank.folder.glob("fairbank.sqlite*"):
                path.rename(path.with_name(f"moved-{path.name}"))
            for words in (["init", str(bank.folder)], ["restore", kept], ["audit", "verify"]):
                done = bank.command(*words)
                assert done.returncode == 0, done.stderr
