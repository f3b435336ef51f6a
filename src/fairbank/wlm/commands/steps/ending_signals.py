"""Signals that end srun, salloc and sattach wherever they wait."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT

Handler = Callable[[int, FrameType | None], object]


@contextmanager
def handled_signals(
    numbers: Iterable[int], handler: Handler | signal.Handlers, *, also_ignored: bool = False
) -> Iterator[None]:
    """Handle signals in a block. Those that were ignored, as with nohup, may stay so."""
    before = {
        number: signal.signal(number, handler)
        for number in numbers
        if also_ignored or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def held_signals() -> Iterator[None]:
    """Hold back a signal that would end this process to the end of a block: the controller may do
    what it was asked. A second signal breaks the block.
    """
    held: list[int] = []

    def hold(number: int, _: FrameType | None) -> None:
        if held:
            interrupt(number)
        held.append(number)

    try:
        with handled_signals(ENDING, hold):
            yield
    finally:
        if held:
            interrupt(held[0])


def interrupt(number: int, _: FrameType | None = None) -> None:
    """Break any wait: handler that raises KeyboardInterrupt with the number of the signal."""
    raise KeyboardInterrupt(number)
