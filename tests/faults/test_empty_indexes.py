"""Indexes of an SQLite file that lack their rows while their definitions stay: nothing is taken for
sound that is read through them.
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
from tests.support.server import FairbankServer, made


def deposit(store: Store, key: str) -> Done:
    request = Deposit(allocation=1, amount=SuMinutes(60), key=key)
    (outcome,) = Ledger(store, Policy()).apply(
        [SubmittedRequest(request, Instant(BEGIN + 10**6), 0)]
    )
    assert isinstance(outcome, Done)
    return outcome


@pytest.fixture
def bank() -> Iterator[FairbankServer]:
    """Sample books and a deposit under a key; the keys and the runs of projects are then in no
    index any more.
    """
    with made() as bank:
        write_sample(bank.store)
        with closing(open_store(bank.store)) as store:
            deposit(store, "march")
        hollow(bank.folder / "fairbank.sqlite", "journal_key", "run_project")
        yield bank


def test_the_audit_tells_them_before_anything_else(bank: FairbankServer) -> None:
    said = bank.command("audit", "verify", "--progress", "plain")
    assert said.returncode == 8, said.stdout
    first, second, *_ = sorted(said.stdout.splitlines()[:2])
    assert first.startswith("x the store: the index journal_key lacks ")
    assert second.startswith("x the store: the index run_project lacks ")
    assert said.stderr.startswith("audit: every journal, and the store as a whole")


def test_the_doctor_tells_them_with_what_helps(bank: FairbankServer) -> None:
    said = bank.command("doctor")
    assert said.returncode == 8
    assert "x   the index journal_key lacks " in said.stdout
    assert "sqlite3 FILE REINDEX" in said.stdout


def test_no_backup_is_made_of_them(bank: FairbankServer) -> None:
    said = bank.command("backup", "create", str(bank.folder / "a.fbk"))
    assert (
        said.returncode,
        "the ledger is damaged" in said.stderr,
        list(bank.folder.glob("*.fbk")),
    ) == (8, True, []), said.stderr


@pytest.mark.parametrize("entries_min", [1, 100_000])
def test_a_key_that_was_used_twice_is_found_though_its_index_has_neither(
    bank: FairbankServer, entries_min: int
) -> None:
    """However many processes read the books."""
    with closing(open_store(bank.store)) as store:
        assert not deposit(store, "march").again
        hollow(bank.folder / "fairbank.sqlite", "journal_key")
    with closing(open_store(bank.store)) as store:
        found = verify(store, Opened(bank.store), {}, jobs=2, entries_min=entries_min).findings
        assert found == Audit(store).verify().findings
        (twice,) = (each.what for each in found if "under one key" in each.what)
    assert "'march', which may be used once" in twice


class Opened:
    """Opens a store in another process."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self) -> Store:
        return open_store(self.url)
