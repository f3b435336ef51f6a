"""uvicorn's HTTP protocol with the credentials of local peers.

This module overrides private parts of uvicorn. That is why pyproject.toml bounds its version.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairbank.rest.auth.peers import EXTENSION, Peer, peer_at
from fairbank.rest.server.log import ConnectionLog

if TYPE_CHECKING:
    import logging


class PeerProtocol(HttpToolsProtocol):
    """A connection whose requests have the peer in `scope["extensions"]`, and whose log names it.

    The kernel tells the peer of a Unix socket. uvicorn passes no extensions on.
    """

    peer: Peer | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = peer = peer_at(transport.get_extra_info("socket"))
        facts: dict[str, object] = {"host": self.client[0] if self.client else None}
        if peer is not None:
            facts = {"uid": peer.uid, "pid": peer.pid}
        self.logger = cast("logging.Logger", ConnectionLog(self.logger, **facts))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions = {} if self.peer is None else {EXTENSION: self.peer}
        self.scope["extensions"] = extensions  # type: ignore[typeddict-item]
