"""Retries of the ledger: they end at the deadline, by the clock and not by their number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairbank.bank.policy import Policy
from fairbank.core.errors import Busy
from fairbank.service.ledger import Ledger, RetryPolicy
from fairbank.store.contract import Contention, Transaction
from fairbank.store.memory.store import MemoryStore
from tests.service.gated_bank import count_entries, note_requests
from tests.support.ticks import Ticks


class ContendedStore(MemoryStore):
    """Store that other writers lock for a number of attempts, each of which takes a second."""

    def __init__(self, clock: Ticks, tries: int) -> None:
        super().__init__()
        self.clock, self.left, self.tried = clock, tries, 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.tried += 1
        self.clock.at += 1
        if self.tried <= self.left:
            raise Contention("somebody else's lock")
        with super().transaction() as transaction:
            yield transaction


def test_retries_end_at_the_deadline_and_not_before() -> None:
    clock = Ticks()
    store = ContendedStore(clock, tries=1_000)
    with pytest.raises(Busy, match="held the locks"):
        Ledger(store, Policy(), RetryPolicy(30, clock)).apply(note_requests("late"))
    assert (store.tried, clock.at) == (30, Ticks().at + 30)
    assert count_entries(store) == 0


def test_request_is_applied_once_when_the_lock_is_released_in_time() -> None:
    clock = Ticks()
    store = ContendedStore(clock, tries=28)
    assert len(Ledger(store, Policy(), RetryPolicy(30, clock)).apply(note_requests("in time"))) == 1
    assert (store.tried, count_entries(store)) == (29, 1)
