"""Tokens after a restore: revoked tokens stay revoked, and a token without an entry stays
invalid.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.project import Member, Project
from fairbank.bank.query import Page, UserRow
from fairbank.bank.requests import RevokeToken
from fairbank.bank.rules.registry import RESTORED
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.backup import Backups
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from tests.contracts.small_site import START, SnapshotReader, contents, fill, granted, token
from tests.support.clock import ManualClock

RESTORED_AT = ManualClock(5_000)


def token_facts(store: Store) -> list[tuple[str | None, int, int | None]]:
    """Return comment, number and revocation of each entry about a token."""
    entries = [row for row in contents(store)[5] if row.kind is Kind.TOKEN]
    facts = [json.loads(entry.details) for entry in entries]
    return [
        (entry.comment, fact["token"], fact["revoked"])
        for entry, fact in zip(entries, facts, strict=True)
    ]


def revocations(store: Store) -> list[int | None]:
    return [row.revoked for row in SnapshotReader(store).tokens(None, Page())]


@pytest.fixture
def backup(store: Store, tmp_path: Path) -> Path:
    """Return the backup of a ledger with three tokens, the last of them revoked."""
    fill(store)
    granted(store, token("laptop"), token("phone"), token("tablet"), RevokeToken(token=3))
    Backups(store, RESTORED_AT).create(tmp_path / "monday.fbk")
    return tmp_path / "monday.fbk"


def test_tokens_revoked_since_the_backup_stay_revoked(store: Store, backup: Path) -> None:
    granted(store, RevokeToken(token=2), token("portal"), at=START + 7)
    Backups(store, RESTORED_AT).restore(backup, replace=True)
    assert revocations(store) == [None, START + 7, START]
    assert token_facts(store)[-1] == (RESTORED, 2, START + 7)
    assert SnapshotReader(store).token(token("portal").grant.digest) is None
    assert Audit(store).verify().findings == ()
    granted(store, token("portal"))
    assert Audit(store).verify().findings == ()


def test_restored_tokens_are_matched_by_digest(store: Store, backup: Path) -> None:
    with store.restoring(replace=True):
        pass
    granted(store, token("other"), token("laptop"), RevokeToken(token=2), at=START + 7)
    Backups(store, RESTORED_AT).restore(backup, replace=True)
    assert revocations(store) == [START + 7, None, START]


def test_restore_into_empty_store_revokes_no_token(store: Store, backup: Path) -> None:
    granted(store, RevokeToken(token=2), at=START + 7)
    new = MemoryStore()
    Backups(new, RESTORED_AT).restore(backup)
    assert revocations(new) == [None, None, START]
    assert Audit(new).verify().findings == ()


def test_backup_with_token_without_entry_is_not_repaired(store: Store, backup: Path) -> None:
    """Otherwise a forged row would only have to wait for the next restore."""
    forged = MemoryStore()
    *rows, tokens = contents(store)
    projects, members, allocations, users, runs, entries, (registry,) = rows
    with forged.restoring(replace=True) as filling:
        filling.insert(Project, projects)
        filling.insert(Member, members)
        filling.insert(Allocation, allocations)
        filling.insert(UserRow, users)
        filling.insert(RunRecord, runs)
        filling.insert(Entry, entries[:-4])
        filling.registry(registry)
        filling.insert(Token, tokens)
    Backups(forged, RESTORED_AT).create(backup, replace=True)
    Backups(store, RESTORED_AT).restore(backup, replace=True)
    findings = Audit(store).verify().findings
    assert {(finding.journal, finding.what) for finding in findings} == {
        (1, "its row was added: no entry opens it"),
        (2, "its row was added: no entry opens it"),
    }
