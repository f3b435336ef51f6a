"""Terminal of srun: its size, and its raw mode."""

from __future__ import annotations

import os
from typing import Any


def terminal_size() -> tuple[int, int]:
    """Return rows and columns."""
    try:
        columns, rows = os.get_terminal_size(0)
    except OSError:
        return 24, 80
    return rows, columns


class RawTerminal:
    """Terminal of standard input in raw mode, as the program on the other end has it."""

    def __init__(self, *, is_raw: bool) -> None:
        """Take the terminal later; it stays as it is unless `is_raw`."""
        self._is_raw = is_raw
        self._before: list[Any] | None = None

    def __enter__(self) -> None:
        if self._is_raw and os.isatty(0):
            import termios
            import tty

            self._before = termios.tcgetattr(0)
            tty.setraw(0)

    def __exit__(self, *_: object) -> None:
        if self._before is not None and os.isatty(0):
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, self._before)
