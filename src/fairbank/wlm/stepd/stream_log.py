"""Log of what a task has written: the newest bytes in memory, older ones in a file."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

FREE_PART, FREE_BYTES = 20, 1 << 30
"""One part in so many of a disk stays free for others, but no more than these bytes."""


class StreamLog:
    """Bytes of one stream, by their position since its start.

    Readers get bytes from `start` to `end`. What is older than the newest `memory_bytes` is kept in
    a file while a reader still needs it.

    Invariants: the bytes from `_memory_start` to `end` are in memory, those from `start` to
    `_memory_start` in the file, which begins with the byte at `_file_start`. No reader needs what
    is before `needed`.
    """

    def __init__(self, path: str, memory_bytes: int) -> None:
        """Begin an empty log. `path` is that of the file, which is created when it is needed."""
        self._path, self._memory_bytes = path, memory_bytes
        self._memory = bytearray()
        self.start = self.needed = self._memory_start = self._file_start = 0
        self._file: int | None = None

    @property
    def end(self) -> int:
        return self._memory_start + len(self._memory)

    @property
    def has_file(self) -> bool:
        return self._file is not None

    def is_full(self, count: int) -> bool:
        """Return True if that many bytes more do not fit in memory."""
        return len(self._memory) + count > self._memory_bytes

    def append(self, data: bytes) -> None:
        """Add bytes at the end. Raises OSError if the file cannot be written; nothing is added."""
        surplus = len(self._memory) + len(data) - self._memory_bytes
        if surplus > 0:
            # Half of the memory at once: few writes, and few moves of bytes.
            self._shorten(min(max(surplus, self._memory_bytes // 2), len(self._memory)))
        self._memory += data

    def _shorten(self, count: int) -> None:
        """Take the oldest bytes from memory, into the file if they are needed."""
        begin = self._memory_start
        if begin + count <= self.needed:
            self.start = begin + count
            self._drop_file()
        else:
            if self._file is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file, self._file_start = os.open(self._path, flags, 0o600), begin
            disk = os.fstatvfs(self._file)
            free = min(disk.f_blocks // FREE_PART, FREE_BYTES // disk.f_frsize)
            if disk.f_bavail - count // disk.f_frsize < free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            part, offset = memoryview(self._memory)[:count], begin - self._file_start
            try:
                while part:
                    written = os.pwrite(self._file, part, offset)
                    part, offset = part[written:], offset + written
            finally:
                part.release()
        del self._memory[:count]
        self._memory_start = begin + count

    def release(self, position: int) -> None:
        """Say that no reader needs bytes before a position."""
        self.needed = max(position, self.needed)
        if self.needed >= self._memory_start:
            self.start = self._memory_start
            self._drop_file()

    def _drop_file(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)
            with suppress(FileNotFoundError):  # the node has forgotten the run
                os.unlink(self._path)

    def read(self, position: int, most: int) -> bytes:
        """Return at most some bytes from a position on; none at the end. Raises OSError."""
        if position < self._memory_start:
            if self._file is None:
                raise ValueError("these bytes are not kept")
            most = min(most, self._memory_start - position)
            return os.pread(self._file, most, position - self._file_start)
        at = position - self._memory_start
        return bytes(self._memory[at : at + most])


class TaskOutput:
    """Output stream of a task.

    `shown` is the position up to which sruns have written everything. `held` is what could not be
    kept yet, on a full disk.
    """

    def __init__(self, kind: int, rank: int, descriptor: int, log: StreamLog) -> None:
        self.kind, self.rank, self.descriptor, self.log = kind, rank, descriptor, log
        self.is_open = True
        self.shown = 0
        self.held = b""
