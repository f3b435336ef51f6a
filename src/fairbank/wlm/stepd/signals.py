"""Signals of a process that was forked, by the part of `signal` in C.

`signal` turns all numbers into members of an enumeration, which takes most of the time of a call.
"""

from __future__ import annotations

from _signal import (  # type: ignore[import-not-found]  # mypy does not know it
    SIG_BLOCK,
    SIG_DFL,
    SIG_SETMASK,
    SIGKILL,
    SIGSTOP,
    pthread_sigmask,
    signal,
    valid_signals,
)
from collections.abc import Iterable
from contextlib import suppress

NUMBERS: frozenset[int] = frozenset(valid_signals())
"""Numbers of all signals."""


def reset_signals() -> None:
    """Give all signals their defaults, and let them come."""
    set_default_signals()
    # After the defaults: a pending signal would be ignored, and so lost.
    set_blocked(())


def set_default_signals() -> None:
    """Give all signals their defaults: Python ignores SIGPIPE, for example, and children would."""
    for number in NUMBERS - {SIGKILL, SIGSTOP}:
        with suppress(OSError):  # some numbers belong to the C library
            signal(number, SIG_DFL)


def block_all() -> set[int]:
    """Block all signals, and return those that were blocked before."""
    before: set[int] = pthread_sigmask(SIG_BLOCK, NUMBERS)
    return before


def set_blocked(numbers: Iterable[int]) -> None:
    """Block these signals, and no others."""
    pthread_sigmask(SIG_SETMASK, numbers)
