"""Membership by Unix group: looked up again after a while, even if the wall clock was changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.core.time import Instant
from fairbank.service.access.identity import Staff
from fairbank.service.access.memberships import GROUPS_TTL_SECONDS, Memberships
from fairbank.service.services import services
from fairbank.store.contract import Reader
from fairbank.store.memory.store import MemoryStore
from tests.contracts.small_site import ALICE, granted, project
from tests.support.clock import ManualClock
from tests.support.ticks import Ticks


class SnapshotStore(MemoryStore):
    """Store that knows if a snapshot is open."""

    is_open = False

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        with super().reading() as reader:
            self.is_open = True
            yield reader
            self.is_open = False


def test_groups_are_looked_up_outside_of_snapshots() -> None:
    """A directory service may be slow, and a snapshot keeps a connection and, on SQLite, the end of
    the log.
    """
    store, snapshots = SnapshotStore(), []
    granted(store, project("physics", 100))

    def groups_of(uid: int) -> frozenset[int]:
        snapshots.append(store.is_open)
        return frozenset({100})

    assert Memberships(store, groups_of).roles(ALICE) == {1: Role.MEMBER}
    assert snapshots == [False]


def test_removed_group_member_loses_access_even_if_clock_is_set_back() -> None:
    store, wall, ticks, groups = (
        MemoryStore(),
        ManualClock(10_000),
        Ticks(),
        {ALICE: frozenset({100})},
    )
    granted(store, project("physics", 100))
    bank = services(
        store,
        clock=wall,
        staff=Staff(),
        clusters={},
        policy=Policy(),
        key=b"k" * 32,
        groups_of=lambda uid: groups[uid],
        monotonic=ticks,
    )
    try:
        assert bank.memberships.roles(ALICE) == {1: Role.MEMBER}
        groups[ALICE] = frozenset()
        wall.at = Instant(wall.at - 3_600)
        ticks.at += GROUPS_TTL_SECONDS - 1
        assert bank.memberships.roles(ALICE) == {1: Role.MEMBER}, "not looked up for each request"
        ticks.at += 1
        assert bank.memberships.roles(ALICE) == {}
    finally:
        bank.close()
