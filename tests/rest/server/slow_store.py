"""Memory store whose writes wait for a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from fairbank.store.contract import Reader, Transaction
from fairbank.store.memory.store import MemoryStore


class SlowStore(MemoryStore):
    """Memory store that writes only while the gate is open.

    `waiting` is True while a write waits at the gate. Reading raises `reading_breaks`, if it is
    set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()
        self.gate.set()
        self.waiting = False
        self.reading_breaks: Exception | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.waiting = not self.gate.is_set()
        self.gate.wait()
        self.waiting = False
        with super().transaction() as transaction:
            yield transaction

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        if self.reading_breaks is not None:
            raise self.reading_breaks
        with super().reading() as reader:
            yield reader


@contextmanager
def closed(store: SlowStore) -> Iterator[None]:
    store.gate.clear()
    try:
        yield
    finally:
        store.gate.set()
