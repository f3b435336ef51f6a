"""Input of a step, on its way from an srun to the tasks."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Callable

from fairbank.wlm.stepd.poller import WRITE, Poller

_CHUNK = 32 * 1024


class TaskInput:
    """Input of the tasks. Each byte is kept until all of them have taken it.

    Invariant: `_positions` has what each task has taken, by its descriptor, since the first byte
    of all; `_start` is the position of the first byte that is kept. `_is_over`: no more comes.
    `_may_drop`: all tasks are there.
    """

    def __init__(self, poller: Poller, on_taken: Callable[[int], None]) -> None:
        """Begin without tasks. `on_taken` gets the number of bytes that all tasks have taken."""
        self._poller, self._on_taken = poller, on_taken
        self._positions: dict[int, int] = {}
        self._data = bytearray()
        self._start = 0
        self._terminal: int | None = None
        self._is_over = self._may_drop = False

    @property
    def takes_more(self) -> bool:
        """True if input is not over. That of a terminal never is."""
        return not self._is_over or self._terminal is not None

    def add_task(self, descriptor: int, *, is_terminal: bool) -> None:
        """Add a task by the descriptor to which its input is written."""
        os.set_blocking(descriptor, False)
        self._positions[descriptor] = 0
        if is_terminal:
            self._terminal = descriptor
        if self._data or self._is_over:
            self._write(descriptor)

    def end_starts(self) -> None:
        """Note that all tasks are added."""
        self._may_drop = True
        self._drop()

    def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size, if there is one."""
        if self._terminal is not None:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def take(self, data: bytes) -> None:
        """Take input; none: it is over."""
        self._data += data
        self._is_over = self._is_over or not data
        for descriptor in list(self._positions):
            self._write(descriptor)
        self._drop()

    def _write(self, descriptor: int) -> None:
        """Write to a task as far as it takes it."""
        at = self._positions[descriptor] - self._start
        try:
            while at < len(self._data):
                at += os.write(descriptor, memoryview(self._data)[at : at + _CHUNK])
        except BlockingIOError:
            pass
        except OSError:  # the task has closed it, or has ended
            self._close(descriptor)
            return
        self._positions[descriptor] = self._start + at
        if at < len(self._data):
            self._poller.register(descriptor, lambda: self._go_on(descriptor), WRITE)
        elif self._is_over and descriptor != self._terminal:
            self._close(descriptor)
        else:
            self._poller.unregister(descriptor)

    def _go_on(self, descriptor: int) -> None:
        self._write(descriptor)
        self._drop()

    def _close(self, descriptor: int) -> None:
        self._poller.unregister(descriptor)
        del self._positions[descriptor]
        os.close(descriptor)

    def _drop(self) -> None:
        """Drop what all tasks have taken."""
        if not self._may_drop:
            return
        end = self._start + len(self._data)
        count = min(self._positions.values(), default=end) - self._start
        if count > 0:
            del self._data[:count]
            self._start += count
            self._on_taken(count)
