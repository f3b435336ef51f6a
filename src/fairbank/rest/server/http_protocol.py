"""HTTP on one connection: uvicorn's protocol with limits and orderly closing.

This module overrides private parts of uvicorn. That is why pyproject.toml bounds its version.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fairbank.rest.auth.peers import EXTENSION, Peer, peer_at
from fairbank.rest.server import protocol_errors
from fairbank.rest.server.limits import ConnectionLimit, network_of
from fairbank.rest.server.log import ConnectionLog
from fairbank.rest.server.protocol_errors import HEAD_MAX

if TYPE_CHECKING:
    import logging

    from uvicorn._types import ASGIApplication

# Per user or host. An agent on the busiest cluster keeps some dozens of connections open.
PER_PEER_MAX = 512
HEAD_SECONDS = 5.0
RECEIVE_SECONDS = 30.0
_HEADER_OVERHEAD = 32  # bytes that a header costs in memory even if it is short
_OPTIONAL_UPGRADE = b"h2c"  # its clients continue in HTTP/1.1 if the server ignores the offer


class _StopParsing(Exception):
    """Stop the parser inside a head. uvicorn then calls `send_400_response`."""


class HttpProtocol(HttpToolsProtocol):
    """One connection to the server.

    httptools keeps a header of any size, and uvicorn waits without limit for a request that never
    ends. Here a connection that sends no complete head within `head_seconds`, or no complete body
    within `receive_seconds` after it, is closed. uvicorn also closes at once after a parse error or
    an EOF; here the requests received before are answered first.

    The kernel tells the peer of a Unix socket. It is in `scope["extensions"]` of each request, and
    in the connection's log lines. uvicorn passes no extensions on.

    Invariants:
    - `_deadline` is armed while part of a request is missing, and when a connection is new.
    - `_closing` is None while the connection reads. Otherwise nothing more is read: its bytes are
      written, and the connection closed, after the last pending response.
    - `_counted` is set while the connection counts in a `ConnectionLimit`.
    """

    per_peer_max = PER_PEER_MAX
    head_max = HEAD_MAX
    head_seconds = HEAD_SECONDS
    receive_seconds = RECEIVE_SECONDS

    _peer: Peer | None = None
    _counted: tuple[ConnectionLimit, int | str | None] | None = None
    _closing: bytes | None = None
    _parse_error: bytes | None = None  # set if the request was rejected by us, not by the parser
    _in_request = False
    _in_head = False
    _head_size = 0  # bytes of the request line, headers and trailers
    _unparsed = 0  # bytes since the parser last reported: one endless header or chunk extension
    _deadline: asyncio.TimerHandle | None = None
    _grace = False  # reading was paused at the last deadline: the sender gets the full time again

    def __init__(
        self, config: Config, *args: Any, limits: tuple[ConnectionLimit, ConnectionLimit], **kw: Any
    ) -> None:
        super().__init__(config, *args, **kw)
        self._unix_limit, self._tcp_limit = limits

    # Connections.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = peer = peer_at(transport.get_extra_info("socket"))
        limit: ConnectionLimit
        owner: int | str | None
        if peer is None:
            host = self.client[0] if self.client else None
            facts: dict[str, object] = {"host": host}
            limit, owner = self._tcp_limit, network_of(host)
        else:
            facts = {"uid": peer.uid, "pid": peer.pid}
            limit, owner = self._unix_limit, peer.uid
        self.logger = cast("logging.Logger", ConnectionLog(self.logger, **facts))
        if limit.acquire(owner, self.per_peer_max):
            self._counted = limit, owner
            self._set_deadline(self.head_seconds)
        elif limit.is_full:
            self._close_with(protocol_errors.TOO_MANY_CONNECTIONS)
        else:
            self._close_with(protocol_errors.TOO_MANY_OF_YOUR_CONNECTIONS)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted is not None:
            limit, owner = self._counted
            self._counted = None
            limit.release(owner)
        self._clear_deadline()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return True to keep the connection open until all pending responses are sent."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._in_request:
            self._close_with(protocol_errors.TRUNCATED)
        elif self._closing is None and cycle is not None and not cycle.response_complete:
            cycle.keep_alive, self._closing = False, b""
        return self._closing is not None and not self.transport.is_closing()

    def _close_with(self, response: bytes) -> None:
        """Send a response and close, after the requests received before are answered.

        A response to the current request that has already begun takes its place.
        """
        cycle: RequestResponseCycle | None = self.cycle
        if self._closing is not None or self.transport.is_closing():
            return
        if cycle is not None and cycle.more_body:  # the current request is the one that fails
            if cycle.response_complete:
                response = b""
            elif cycle.response_started:
                cycle.keep_alive, response = False, b""
            elif self.pipeline:
                self.pipeline.popleft()  # the newest, which is the current request
            else:
                cycle = None
        if cycle is None or cycle.response_complete:
            self.transport.write(response)
            self.transport.close()
        else:
            self._closing = response

    def on_response_complete(self) -> None:
        if self._closing is not None and not self.pipeline and not self.transport.is_closing():
            self.transport.write(self._closing)
            self.transport.close()
        super().on_response_complete()

    # Parsing.

    def data_received(self, data: bytes) -> None:
        if self._closing is not None:
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > self.head_max and not self.transport.is_closing():
            self._close_with(protocol_errors.HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        self._head_size, self._unparsed, self._in_head, self._in_request = 0, 0, True, True
        self._set_deadline(self.head_seconds)
        super().on_message_begin()
        extensions = {} if self._peer is None else {EXTENSION: self._peer}
        self.scope["extensions"] = extensions  # type: ignore[typeddict-item]

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + _HEADER_OVERHEAD)
        # uvicorn would add trailers to the headers of a request that may be in work already.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed, self._in_head = 0, False
        self._set_deadline(self.receive_seconds)
        if not self.parser.get_http_version().startswith("1."):  # httptools reads 0.9 and 2 too
            self._parse_error = protocol_errors.OTHER_VERSION
        elif self.parser.should_upgrade():
            self._parse_error = self._upgrade_error()
        if self._parse_error is not None:
            raise _StopParsing
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed, self._in_request = 0, False
        self._clear_deadline()
        super().on_message_complete()
        self.cycle.more_body = False  # uvicorn leaves it True after an early response

    def send_400_response(self, msg: str) -> None:
        if self._parse_error is None:
            last: RequestResponseCycle | None = self.cycle
            before = last.scope["headers"] if last is not None and not last.more_body else None
            self._parse_error = protocol_errors.parse_error(sys.exception(), before)
        self._close_with(self._parse_error)

    def _upgrade_error(self) -> bytes | None:
        """Refuse other protocols: the parser would take the rest of the data for them."""
        if self.parser.get_method() == b"CONNECT":
            return protocol_errors.NO_PROXY
        has_body = any(
            name in (b"content-length", b"transfer-encoding") and value != b"0"
            for name, value in self.headers
        )
        is_optional = self._get_upgrade() == _OPTIONAL_UPGRADE
        return None if is_optional and not has_body else protocol_errors.NO_UPGRADE

    def _unsupported_upgrade_warning(self) -> None:
        """Answer an optional upgrade as a plain last request: uvicorn keeps no data after it.

        uvicorn's own warning would advise to install WebSockets.
        """
        self.cycle.keep_alive, self._closing = False, b""

    def _count_head(self, size: int) -> None:
        self._unparsed = 0
        self._head_size += size
        if self._head_size > self.head_max:
            self._parse_error = protocol_errors.HEAD_TOO_LARGE
            raise _StopParsing

    # Deadlines.

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self._on_deadline, seconds)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_deadline(self, seconds: float) -> None:
        if self.flow.read_paused or self._grace:  # the server did not read: not the sender's fault
            self._grace = self.flow.read_paused
            self._set_deadline(seconds)
        else:
            self._close_with(protocol_errors.TOO_SLOW)


def server_config(app: ASGIApplication, *, connections_max: int) -> Config:
    """Return uvicorn's settings for `app`.

    Peers are identified by the kernel, forwarded addresses are ignored, WebSockets are off and
    logging is left as it is.

    Args:
        connections_max: open connections over the Unix socket, and as many over TCP; beyond it
            the server answers 503 and closes.
    """
    limits = (
        ConnectionLimit("the Unix socket", connections_max),
        ConnectionLimit("TCP", connections_max),
    )
    return Config(
        app,
        http=cast("Any", partial(HttpProtocol, limits=limits)),
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        log_config=None,
        access_log=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
    )
