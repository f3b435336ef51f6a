"""A store that counts how often the books are looked into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairbank.store.contract import Reader
from fairbank.store.memory.store import MemoryStore


class Looked(MemoryStore):
    """`looks` is how often."""

    looks = 0

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        self.looks += 1
        with super().reading() as reader:
            yield reader
