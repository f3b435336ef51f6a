"""Limits on what clients share (places, connections, memory), divided fairly among them."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable

WARN_INTERVAL_SECONDS = 60.0

_log = logging.getLogger(__name__)


class FairLimit:
    """A total that clients share.

    A client gets at most as much as is left for all others. So one client gets at most half, and n
    clients leave a part for one more.
    """

    def __init__(self, total: int) -> None:
        self.total, self.used = total, 0
        self._used_by: dict[Hashable, int] = {}

    def used_by(self, client: Hashable) -> int:
        return self._used_by.get(client, 0)

    def acquire(self, client: Hashable, amount: int = 1) -> bool:
        """Give `amount` more to a client. Return False if that would exceed its share."""
        used = self.used_by(client) + amount
        if used > self.total - self.used:
            return False
        self._used_by[client] = used
        self.used += amount
        return True

    def release(self, client: Hashable, amount: int = 1) -> None:
        """Return what `acquire` gave."""
        self.used -= amount
        if left := self.used_by(client) - amount:
            self._used_by[client] = left
        else:
            self._used_by.pop(client, None)


class ConnectionLimit:
    """Open connections of one listener, with a fair share and a maximum per client.

    Rejected connections are logged at most once a minute.
    """

    def __init__(self, listener: str, connections_max: int) -> None:
        self._listener, self._limit = listener, FairLimit(connections_max)
        self._next_warning = 0.0

    @property
    def is_full(self) -> bool:
        return self._limit.used >= self._limit.total

    def acquire(self, client: Hashable, per_client_max: int) -> bool:
        """Count one more connection of a client. Return False if it must be rejected."""
        limit = self._limit
        if limit.used_by(client) < per_client_max and limit.acquire(client):
            return True
        if time.monotonic() >= self._next_warning:
            self._next_warning = time.monotonic() + WARN_INTERVAL_SECONDS
            _log.warning(
                "rejecting connections over %s: %d of %d are open, %d of them from %s",
                *(self._listener, limit.used, limit.total, limit.used_by(client), client),
            )
        return False

    def release(self, client: Hashable) -> None:
        """Count one connection less, after it closed."""
        self._limit.release(client)
