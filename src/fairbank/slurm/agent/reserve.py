"""Room on the outbox's disk that nobody else gets: with none at all, not even what is done with could be thrown away."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

RESERVE_BYTES, LEAST_BYTES = 1 << 20, 1 << 17
"""As much as it takes to bring in the write-ahead log and to delete some letters; and what is not worth keeping."""


class Reserve:
    """A file of nothing beside the outbox, as large as there is room for. Neither call raises: it is a help and no need."""

    def __init__(self, outbox: Path) -> None:
        self._path = outbox.with_name(f"{outbox.name}.reserve")
        self._size = 0

    @property
    def is_whole(self) -> bool:
        return self._size == RESERVE_BYTES

    def keep(self) -> None:
        """Take the room, or half of it, and so on."""
        wanted = RESERVE_BYTES
        with contextlib.suppress(OSError):
            file = os.open(
                self._path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            try:
                while wanted >= LEAST_BYTES and not _allocated(file, wanted):
                    os.ftruncate(file, 0)
                    wanted //= 2
                self._size = os.fstat(file).st_size
            finally:
                os.close(file)

    def give(self) -> None:
        """Let go of it."""
        self._size = 0
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def _allocated(file: int, size: int) -> bool:
    try:
        os.posix_fallocate(file, 0, size)
    except OSError:
        return False
    return True
