"""Limits on what clients share (places, connections, memory), divided fairly among them.

A request that is still arriving costs a connection and the memory of its bytes, no place: its body
is read before it takes one of the places for requests in work.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, MutableMapping
from typing import Any

from fairbank.rest.auth.peers import peer_of
from fairbank.rest.request import BODY_MAX

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


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

_METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})


def has_body(scope: Mapping[str, Any]) -> bool:
    """Return True if a body will arrive that a route reads.

    Bodies of GET are ignored. A body announced as too large is refused without reading it.
    """
    if scope["method"] in _METHODS_WITHOUT_BODY:
        return False
    for name, value in scope["headers"]:
        if name == b"content-length":
            return 0 < int(value) <= BODY_MAX
        if name == b"transfer-encoding":
            return True
    return False


def client_of(scope: Mapping[str, Any]) -> Hashable:
    """Return the client whose share a request uses: the uid of a local user, or the network."""
    peer = peer_of(scope)
    if peer is not None:
        return peer.uid
    client = scope.get("client")
    return None if client is None else network_of(client[0])


def network_of(host: str | None) -> str | None:
    """Return an IPv4 address as it is, and the /64 of an IPv6 address: one host may use it all."""
    if host is None:
        return None
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return host
    mapped = address.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((address, 64), strict=False))


class BufferedBody:
    """The body of one request: read completely, then replayed to the application.

    Its bytes count in the limit of all bodies until `release`.
    """

    def __init__(self, receive: Receive, limit: FairLimit, client: Hashable) -> None:
        self._receive, self._limit, self._client = receive, limit, client
        self._body = bytearray()
        self._replay: list[Message] = []
        self._counted = 0

    async def read(self) -> bool:
        """Read the body, or as much of it as shows that it is too large or truncated.

        Returns:
            False if the limit of all bodies does not allow it.
        """
        more = True
        while more and self._counted <= BODY_MAX:
            message = await self._receive()
            if message["type"] != "http.request":
                self._replay = [self._message(more=True), message]
                return True
            part, more = message.get("body", b""), message.get("more_body", False)
            if not self._limit.acquire(self._client, len(part)):
                return False
            self._counted += len(part)
            self._body += part
        self._replay = [self._message(more=more)]
        return True

    async def __call__(self) -> Message:
        """Act as the application's `receive`: replay what was read, then read on."""
        return self._replay.pop(0) if self._replay else await self._receive()

    def release(self) -> None:
        """Free the memory after the request."""
        self._body.clear()
        self._limit.release(self._client, self._counted)
        self._counted = 0

    def _message(self, *, more: bool) -> Message:
        return {"type": "http.request", "body": bytes(self._body), "more_body": more}
