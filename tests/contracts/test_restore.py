"""Restore of a store from a backup: all or nothing. Afterwards the bank continues where the backup
ended.
"""

from __future__ import annotations

import pytest

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.project import Member, Project
from fairbank.bank.query import UserRow
from fairbank.bank.requests import AmendProject, Deposit, RevokeToken
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.core.errors import Conflict
from fairbank.core.units import SuMinutes
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from tests.contracts.databases import Place
from tests.contracts.small_site import (
    START,
    allocation,
    charge,
    contents,
    copy_ledger,
    fill,
    granted,
    hold,
    late_charge,
    project,
    token,
)


@pytest.fixture
def backup() -> Store:
    """Return the rows of a ledger as a backup has them."""
    store = MemoryStore()
    fill(store)
    granted(
        store,
        project("optics", 101, parent=1),
        hold(1, 100),
        hold(2, 50, key='odd\\"key', comment='a\\"b'),
        late_charge(3, 7),
    )
    granted(store, charge(1, 55))
    granted(store, token(), token("phone"), RevokeToken(token=2))
    granted(
        store, AmendProject(project=1, parent=2)
    )  # a parent with a greater number than its child's
    return store


def test_restored_store_equals_backup(store: Store, backup: Store) -> None:
    with store.restoring(replace=False) as filling:
        projects, members, allocations, users, runs, entries, (registry,), tokens = contents(backup)
        filling.insert(Project, projects[:1])
        filling.insert(Project, projects[1:])
        filling.insert(Member, members)
        filling.insert(Allocation, allocations)
        filling.insert(UserRow, users)
        filling.insert(RunRecord, runs)
        filling.insert(Entry, entries[:3])
        filling.insert(Entry, entries[3:])
        filling.insert(Entry, [])
        filling.registry(registry)
        filling.insert(Token, tokens)
    assert contents(store) == contents(backup)
    assert Audit(store).verify().findings == ()


def test_numbers_continue_after_restore(place: Place, backup: Store) -> None:
    one, two = place.open(), place.open()
    copy_ledger(backup, one)
    granted(two, project("biology", 300), allocation(1, 5, resource="gpu"), hold(9, 1))
    granted(one, project("geology", 400), allocation(2, 5, resource="gpu"), late_charge(10, 1))
    assert [outcome.token for outcome in granted(two, token("tablet"))] == [3]
    projects, _, allocations, _, runs, entries, *_ = contents(one)
    for rows, before in ((projects, 3), (allocations, 2), (runs, 3)):
        assert len({row.id for row in rows}) == len(rows) == before + 2
    assert len({entry.id for entry in entries}) == len(entries)
    assert Audit(one).verify().findings == ()


def test_restore_into_used_store_is_refused(store: Store, backup: Store) -> None:
    granted(store, project("physics", 100))
    before = contents(store)
    with pytest.raises(Conflict, match="not empty"), store.restoring(replace=False):
        pytest.fail("there is nothing to be filled here")
    assert contents(store) == before


def test_store_with_only_a_token_is_not_empty(store: Store) -> None:
    granted(store, token())
    with pytest.raises(Conflict), store.restoring(replace=False):
        pytest.fail("there is nothing to be filled here")


def test_restore_with_replace_deletes_old_rows(store: Store, backup: Store) -> None:
    granted(store, project("mistake", 666), allocation(1, 9), hold(77, 1), late_charge(78, 1))
    copy_ledger(backup, store)
    assert contents(store) == contents(backup)
    granted(store, Deposit(allocation=1, amount=SuMinutes(1)))
    assert Audit(store).verify().findings == ()


def test_restore_fills_columns_by_name(sql_place: Place, backup: Store) -> None:
    """A store can have additional columns, and columns in another order."""
    sql_place.run("ALTER TABLE member ADD COLUMN gift bigint")
    sql_place.run("ALTER TABLE member ADD COLUMN other_role text NOT NULL DEFAULT 'member'")
    sql_place.run("ALTER TABLE member DROP COLUMN role")
    sql_place.run("ALTER TABLE member RENAME COLUMN other_role TO role")
    store = sql_place.open()
    copy_ledger(backup, store)
    assert contents(store) == contents(backup)


@pytest.mark.parametrize("replace", [False, True])
def test_failed_restore_changes_nothing(store: Store, backup: Store, replace: bool) -> None:
    if replace:
        fill(store)
    before = contents(store)
    with pytest.raises(ZeroDivisionError), store.restoring(replace=replace) as filling:
        filling.insert(Project, [*contents(backup)[0]][:0] if replace else contents(backup)[0])
        _ = 1 / 0
    assert contents(store) == before
    granted(store, project("biology", 300), at=START + 1)


def test_restore_reports_revoked_tokens(store: Store) -> None:
    granted(store, token(), token("phone"), RevokeToken(token=2), at=START)
    with store.restoring(replace=True) as filling:
        assert filling.revoked_tokens() == {token("phone").grant.digest: START}
    with store.restoring(replace=False) as filling:
        assert filling.revoked_tokens() == {}


def test_restore_runs_beside_readers_and_writers(sql_place: Place, backup: Store) -> None:
    """Another server that drew numbers before the restore continues after it."""
    one, two = sql_place.open(), sql_place.open()
    fill(two)
    granted(two, hold(50, 1))
    copy_ledger(backup, one)
    for number in range(60, 70):
        granted(two, hold(number, 1))
        granted(one, hold(number + 10, 1))
    assert Audit(two).verify().findings == ()
