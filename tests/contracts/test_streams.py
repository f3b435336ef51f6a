"""Long tables are read in constant memory."""

from __future__ import annotations

import tracemalloc
from collections import deque

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.query import ALL_JOURNALS, JournalRange, UserRow
from fairbank.bank.requests import Deposit
from fairbank.bank.run import RunRecord
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Store
from tests.contracts.databases import Place
from tests.contracts.small_site import BOB, contents, fill, granted, hold

ENTRIES = 20_000


def test_journal_is_read_in_pieces(sql_place: Place) -> None:
    store = sql_place.open()
    _fill_journal(store)
    with store.reading() as reader:
        deque(reader.scan(Entry), maxlen=0)
        tracemalloc.start()
        try:
            deque(reader.scan(Entry), maxlen=0)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 6_000_000, f"{peak} bytes for a journal that has about {ENTRIES * 900}"


def test_stream_may_be_abandoned(sql_place: Place) -> None:
    store = sql_place.open()
    _fill_journal(store)
    with store.reading() as reader:
        stream = reader.scan(Entry)
        assert set(next(stream).comment or "") == {"x"}
    with store.reading() as reader:
        assert reader.count_entries() == ENTRIES


def test_range_of_journal_entries_can_be_read(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 60), hold(2, 30, project=2, owner=BOB))
    with store.reading() as reader:
        for journals in (
            JournalRange(end=1),
            JournalRange(1, 2),
            JournalRange(2),
            JournalRange(1, 1),
            ALL_JOURNALS,
        ):
            assert [row.allocation for row in reader.scan(Entry, journals)] == [
                row.allocation for row in reader.scan(Entry) if row.allocation in journals
            ]
            assert [row.id for row in reader.scan(Allocation, journals)] == [
                journal for journal in (1, 2) if journal in journals
            ]
            assert [row.allocation for row in reader.scan(RunRecord, journals)] == [
                journal for journal in (1, 2) if journal in journals
            ]
            assert [row.allocation for row in reader.scan(UserRow, journals)] == [
                journal for journal in (1, 2) if journal in journals
            ]


def _fill_journal(store: Store) -> None:
    """Copy one deposit many times: not a chain that would pass an audit, but as long as one."""
    fill(store)
    granted(store, Deposit(allocation=1, amount=SuMinutes(1), comment="x" * 400))
    (last,) = (entry for entry in contents(store)[5] if entry.comment)
    copies = [
        msgspec.structs.replace(last, id=last.id + number, seq=last.seq + number, key=None)
        for number in range(ENTRIES)
    ]
    with store.restoring(replace=True) as filling:
        filling.insert(Entry, copies)
