"""A restore does not give back what was revoked, and a backup from before tokens were in the journal is none the worse for it."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.ledger.tokens import ADOPTED, RESTORED
from fairbank.bank.wish import Note, RevokeToken
from fairbank.service.audit import Audit
from fairbank.service.backup import Backups
from fairbank.store.contract import Store
from fairbank.store.memory import MemoryStore
from fairbank.values.time import StoppedClock
from tests.contracts.centre import START, Look, contents, fill, granted, token

RESTORED_AT = StoppedClock(5_000)


def told_of_tokens(store: Store) -> list[tuple[str | None, int, int | None]]:
    """Comment, number and revocation of each entry about a token."""
    entries = [each for each in contents(store)[5] if each.kind is Kind.TOKEN]
    facts = [json.loads(each.details) for each in entries]
    return [(each.comment, fact["token"], fact["revoked"]) for each, fact in zip(entries, facts, strict=True)]


def revocations(store: Store) -> list[int | None]:
    return [each.revoked for each in Look(store).tokens(None)]


@pytest.fixture
def backup(store: Store, tmp_path: Path) -> Path:
    """Of books with three tokens, the last of them revoked."""
    fill(store)
    granted(store, token("laptop"), token("phone"), token("tablet"), RevokeToken(token=3))
    Backups(store, RESTORED_AT).create(tmp_path / "monday.fbk")
    return tmp_path / "monday.fbk"


def test_what_was_revoked_since_stays_revoked_when_books_are_replaced(store: Store, backup: Path) -> None:
    granted(store, RevokeToken(token=2), token("portal"), at=START + 7)
    Backups(store, RESTORED_AT).restore(backup, replace=True)
    assert revocations(store) == [None, START + 7, START]
    assert told_of_tokens(store)[-1] == (RESTORED, 2, START + 7)
    assert Look(store).token(token("portal").digest) is None
    assert Audit(store).verify().findings == ()
    granted(store, token("portal"))
    assert Audit(store).verify().findings == ()


def test_tokens_are_known_by_their_secrets_not_by_their_numbers(store: Store, backup: Path) -> None:
    with store.filling(replace=True):
        pass
    granted(store, token("other"), token("laptop"), RevokeToken(token=2), at=START + 7)
    Backups(store, RESTORED_AT).restore(backup, replace=True)
    assert revocations(store) == [START + 7, None, START]


def test_into_an_empty_store_a_backup_brings_what_it_has(store: Store, backup: Path) -> None:
    granted(store, RevokeToken(token=2), at=START + 7)
    new = MemoryStore()
    Backups(new, RESTORED_AT).restore(backup)
    assert revocations(new) == [None, None, START]
    assert Audit(new).verify().findings == ()


def as_of_old(path: Path) -> None:
    """The backup as Fairbank wrote it when making a token was but a note."""
    with gzip.open(path, "rb") as stream:
        _, *lines, _ = stream.read().splitlines(keepends=True)
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    with gzip.open(path, "wb") as stream:
        stream.write(b'{"format":"fairbank.backup/1","at":"2026-11-21T12:00:00Z"}\n')
        stream.writelines(lines)
        stream.write(json.dumps({"rows": len(lines), "sha256": digest}).encode() + b"\n")


def test_tokens_of_an_old_backup_are_adopted_as_they_are(store: Store, tmp_path: Path) -> None:
    kept = MemoryStore()
    fill(kept)
    granted(kept, token("laptop"), token("phone"), RevokeToken(token=2))
    tokens = Look(kept).tokens(None)
    old = MemoryStore()
    fill(old)
    granted(old, Note(details="token 1 made: 'laptop' of user 1001, read, until 1970-04-15T04:00:00Z"))
    *rows, _ = contents(old)
    projects, members, allocations, users, runs, entries, (office,) = rows
    with old.filling(replace=True) as filling:
        filling.projects(projects)
        filling.members(members)
        filling.allocations(allocations)
        filling.users(users)
        filling.runs(runs)
        filling.entries(entries)
        filling.office(office)
        filling.tokens(tokens)
    Backups(old, RESTORED_AT).create(tmp_path / "old.fbk")
    assert len(Audit(old).verify().findings) == 2
    as_of_old(tmp_path / "old.fbk")
    granted(store, token("laptop"), RevokeToken(token=1), at=START + 7)
    Backups(store, RESTORED_AT).restore(tmp_path / "old.fbk", replace=True)
    assert told_of_tokens(store) == [(ADOPTED, 1, START + 7), (ADOPTED, 2, START)]
    assert Audit(store).verify().findings == ()


def test_a_new_backup_with_a_token_that_no_entry_made_is_not_put_right(store: Store, backup: Path) -> None:
    """Else a forged row would only have to wait for the next restore."""
    forged = MemoryStore()
    *rows, tokens = contents(store)
    projects, members, allocations, users, runs, entries, (office,) = rows
    with forged.filling(replace=True) as filling:
        filling.projects(projects)
        filling.members(members)
        filling.allocations(allocations)
        filling.users(users)
        filling.runs(runs)
        filling.entries(entries[:-4])
        filling.office(office)
        filling.tokens(tokens)
    Backups(forged, RESTORED_AT).create(backup, replace=True)
    Backups(store, RESTORED_AT).restore(backup, replace=True)
    assert Audit(store).verify().findings
