"""Long tables are read in constant memory."""

from __future__ import annotations

import tracemalloc
from collections import deque

import msgspec

from fairbank.bank.wish import Deposit
from fairbank.store.contract import Store
from fairbank.values.units import SuMinutes
from tests.contracts.centre import contents, fill, granted
from tests.contracts.places import Place

ENTRIES = 20_000


def test_the_journal_is_read_piece_by_piece(sql_place: Place) -> None:
    store = sql_place.open()
    _fill_journal(store)
    with store.reading() as reader:
        deque(reader.scan_entries(), maxlen=0)
        tracemalloc.start()
        try:
            deque(reader.scan_entries(), maxlen=0)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 6_000_000, f"{peak} bytes for a journal that has about {ENTRIES * 900}"


def test_a_stream_may_be_left_in_the_middle(sql_place: Place) -> None:
    store = sql_place.open()
    _fill_journal(store)
    with store.reading() as reader:
        stream = reader.scan_entries()
        assert next(stream).comment
    with store.reading() as reader:
        assert reader.count_entries() == ENTRIES


def _fill_journal(store: Store) -> None:
    """One deposit, copied many times: not a chain that would pass an audit, but as long as one."""
    fill(store)
    granted(store, Deposit(allocation=1, amount=SuMinutes(1), comment="x" * 400))
    (last,) = (entry for entry in contents(store)[5] if entry.comment)
    copies = [msgspec.structs.replace(last, id=last.id + number, seq=last.seq + number, key=None) for number in range(ENTRIES)]
    with store.filling(replace=True) as filling:
        filling.entries(copies)
