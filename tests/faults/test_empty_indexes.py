"""Indexes of an SQLite file that have lost their rows: the audit, the doctor and backups report
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.requests import Deposit, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.audit_processes import verify
from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from tests.faults.sample import BEGIN, write_sample
from tests.support.indexes import hollow
from tests.support.server import FairbankServer, create_bank


def deposit(store: Store, key: str) -> Done:
    request = Deposit(allocation=1, amount=SuMinutes(60), key=key)
    (outcome,) = Ledger(store, Policy()).apply(
        [SubmittedRequest(request, Instant(BEGIN + 10**6), 0)]
    )
    assert isinstance(outcome, Done)
    return outcome


@pytest.fixture
def bank() -> Iterator[FairbankServer]:
    """Provide a sample ledger whose indexes of keys and of runs by project are empty."""
    with create_bank() as bank:
        write_sample(bank.store)
        with closing(open_store(bank.store)) as store:
            deposit(store, "march")
        hollow(bank.folder / "fairbank.sqlite", "journal_key", "run_project")
        yield bank


def test_audit_reports_empty_indexes_first(bank: FairbankServer) -> None:
    result = bank.command("audit", "verify", "--progress", "plain")
    assert result.returncode == 8, result.stdout
    first, second, *_ = sorted(result.stdout.splitlines()[:2])
    assert first.startswith("x the store: the index journal_key lacks ")
    assert second.startswith("x the store: the index run_project lacks ")
    assert "\naudit: every journal, and the store as a whole" in result.stderr


def test_doctor_reports_empty_indexes_with_a_remedy(bank: FairbankServer) -> None:
    result = bank.command("doctor")
    assert result.returncode == 8
    assert "x   the index journal_key lacks " in result.stdout
    assert "sqlite3 FILE REINDEX" in result.stdout


def test_backup_with_empty_indexes_is_refused(bank: FairbankServer) -> None:
    result = bank.command("backup", "create", str(bank.folder / "a.fbk"))
    assert (
        result.returncode,
        "the ledger is damaged" in result.stderr,
        list(bank.folder.glob("*.fbk")),
    ) == (8, True, []), result.stderr


@pytest.mark.parametrize("entries_min", [1, 100_000])
def test_key_used_twice_is_found_without_its_index(bank: FairbankServer, entries_min: int) -> None:
    """The result is the same with one process and with several."""
    with closing(open_store(bank.store)) as store:
        assert not deposit(store, "march").again
        hollow(bank.folder / "fairbank.sqlite", "journal_key")
    with closing(open_store(bank.store)) as store:
        result = verify(
            store, StoreOpener(bank.store), {}, jobs=2, entries_min=entries_min
        ).findings
        assert result == Audit(store).verify().findings
        (repeated_key,) = (finding.what for finding in result if "under one key" in finding.what)
    assert "'march', which may be used once" in repeated_key


class StoreOpener:
    """Opens the store in another process."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self) -> Store:
        return open_store(self.url)
