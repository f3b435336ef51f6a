"""Wait for descriptors: each has a function that is called when it is ready."""

from __future__ import annotations

import select
from collections.abc import Callable

READ, WRITE = select.EPOLLIN, select.EPOLLOUT


class Poller:
    """Descriptors and the functions that are called when they are ready, closed or broken."""

    def __init__(self) -> None:
        self._poll = select.epoll()  # a step may have 30,000 descriptors
        self._handlers: dict[int, Callable[[], object]] = {}

    def register(self, descriptor: int, handler: Callable[[], object], events: int = READ) -> None:
        """Begin to wait for a descriptor, or change for what."""
        if descriptor in self._handlers:
            self._poll.modify(descriptor, events)
        else:
            self._poll.register(descriptor, events)
        self._handlers[descriptor] = handler

    def unregister(self, descriptor: int) -> None:
        """Wait no longer for a descriptor; do so before it is closed."""
        if self._handlers.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def wait(self, milliseconds: float | None) -> None:
        """Wait until a descriptor is ready, and call its function; None: without a limit."""
        for descriptor, _ in self._poll.poll(
            None if milliseconds is None else milliseconds / 1_000
        ):
            handler = self._handlers.get(descriptor)  # an earlier one may have removed it
            if handler is not None:
                handler()
