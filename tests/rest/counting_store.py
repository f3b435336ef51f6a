"""Store in memory that counts how often it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairbank.store.contract import Reader
from fairbank.store.memory.store import MemoryStore


class CountingStore(MemoryStore):
    """Memory store; `reads` is the number of readers opened."""

    reads = 0

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        self.reads += 1
        with super().reading() as reader:
            yield reader
