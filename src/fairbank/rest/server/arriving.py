"""A request that is still on its way costs a connection and its bytes; a place among those worked on only once its body is there."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Hashable, Mapping, MutableMapping
from typing import Any

from fairbank.rest.asking import BODY_MAX
from fairbank.rest.server.portions import Portions
from fairbank.rest.sign_in.peers import peer_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


_BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})


def announced(scope: Mapping[str, Any]) -> bool:
    """Whether a body is to come that anybody would read: one announced as too large is not waited for, nor one beside a GET."""
    if scope["method"] in _BODILESS:
        return False
    for name, value in scope["headers"]:
        if name == b"content-length":
            return 0 < int(value) <= BODY_MAX
        if name == b"transfer-encoding":
            return True
    return False


def whose(scope: Mapping[str, Any]) -> Hashable:
    """Whose share a request takes from: the local user's, or that of the address it came from."""
    peer = peer_of(scope)
    if peer is not None:
        return peer.uid
    client = scope.get("client")
    return None if client is None else neighbourhood(client[0])


def neighbourhood(address: str) -> str:
    """The address of a host; of IPv6 its network, for a host has all of that."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return address
    mapped = found.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((found, 64), strict=False))


class Arrival:
    """The body of one request: read ahead whole, then handed on. Its bytes count in `bodies` until `forget`."""

    def __init__(self, receive: Receive, bodies: Portions, who: Hashable) -> None:
        self._receive, self._bodies, self._who = receive, bodies, who
        self._whole = bytearray()
        self._next: list[Message] = []
        self._kept = 0

    async def whole(self) -> bool:
        """Read the body, or as much as shows that it is too large or ends too early. False when there is no memory for it."""
        more = True
        while more and self._kept <= BODY_MAX:
            message = await self._receive()
            if message["type"] != "http.request":
                self._next = [self._so_far(more=True), message]
                return True
            part, more = message.get("body", b""), message.get("more_body", False)
            if not self._bodies.take(self._who, len(part)):
                return False
            self._kept += len(part)
            self._whole += part
        self._next = [self._so_far(more=more)]
        return True

    async def __call__(self) -> Message:
        """The `receive` of the application: what was read, then what comes."""
        return self._next.pop(0) if self._next else await self._receive()

    def forget(self) -> None:
        """The request is done."""
        self._whole.clear()
        self._bodies.give_back(self._who, self._kept)
        self._kept = 0

    def _so_far(self, *, more: bool) -> Message:
        return {"type": "http.request", "body": bytes(self._whole), "more_body": more}
