"""uvicorn's HTTP as we want it: who asks, a largest head, a longest time, not everything for one user, answers in one piece."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fairbank.rest.bodies.answers import Problem
from fairbank.rest.problems import PROBLEM_JSON
from fairbank.rest.server.arriving import neighbourhood
from fairbank.rest.server.doorway import Doorway
from fairbank.rest.server.joined import Joined
from fairbank.rest.server.silence import Patient
from fairbank.rest.short_way.express import Express
from fairbank.rest.sign_in.peers import EXTENSION, Peer, peer_at

if TYPE_CHECKING:
    from uvicorn._types import ASGIApplication

HEAD_MAX = 65_536  # a MUNGE credential of 16 KiB and much else
HEAD_SECONDS = 5.0
RECEIVE_SECONDS = 30.0
PER_PEER_MAX = 512  # connections of a user, or of a host; an agent on the busiest cluster keeps some dozens
_ENDLESS = 2**31


class _TooLarge(Exception):
    """Stops the parser in the middle of a head; uvicorn then calls `send_400_response`."""


class PeerProtocol(Patient):
    """uvicorn's HTTP, plus the peer in `scope["extensions"]`, a largest head, and a longest time to send a request.

    httptools keeps a header of any size in memory, and uvicorn waits for ever for a request that never ends. A connection that
    says nothing, or no whole head, is given up after `head_seconds`, one whose body does not end after `receive_seconds`.
    Answers leave through a Joined, but not those to HEAD, where no body comes.
    """

    head_max = HEAD_MAX
    head_seconds = HEAD_SECONDS
    receive_seconds = RECEIVE_SECONDS
    per_peer_max = PER_PEER_MAX

    _peer: Peer | None = None
    _entered: tuple[Doorway, int | str | None] | None = None
    _head = 0  # bytes of this request's line and headers, trailers too
    _in_head = True
    _unparsed = 0  # bytes since the parser last gave us something: one endless header, or chunk extension
    _deadline: asyncio.TimerHandle | None = None
    _begun: float | None = None  # the seconds for a part that began in what is being parsed: most end in it too, and need no timer
    _excused = False
    _boarding: RequestResponseCycle | None = None  # for the express, if its body comes with its head

    def __init__(self, config: Serving, *about: Any, **more: Any) -> None:
        super().__init__(config, *about, **more)
        self._doorway, self._express = config.doorway, config.express
        self.limit_concurrency = None  # whoever is too many is told in our words

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = peer_at(transport.get_extra_info("socket"))
        if (refusal := self._enter()) is None:
            self._expect(self.head_seconds)
        else:
            self._hang_up(refusal)

    def _enter(self) -> bytes | None:
        """Count this connection, or say why it cannot be had."""
        who: int | str | None
        if self._peer is None:
            way, who = "TCP", neighbourhood(self.client[0]) if self.client else None
        else:
            way, who = "the Unix socket", self._peer.uid
        doorway = self._doorway(way)
        if doorway.enter(who, self.per_peer_max):
            self._entered = doorway, who
            return None
        return _TOO_MANY if doorway.full else _TOO_MANY_OF_YOURS

    def connection_lost(self, exc: Exception | None) -> None:
        self._received()
        if self._entered is not None:
            doorway, who = self._entered
            self._entered = None
            doorway.leave(who)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unparsed += len(data)
        super().data_received(data)
        if (cycle := self._boarding) is not None:
            self._boarding = None
            self._depart(cycle)
        if self._begun is not None:
            self._expect(self._begun)
            self._begun = None
        if self._unparsed > self.head_max and not self.transport.is_closing():
            self._hang_up(_TOO_LARGE)

    def on_message_begin(self) -> None:
        self._head, self._unparsed, self._in_head = 0, 0, True
        self._begun = self.head_seconds
        super().on_message_begin()
        self.scope["extensions"] = {} if self._peer is None else {EXTENSION: self._peer}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 32)  # a header costs memory even when it is short
        if self._in_head:  # uvicorn would add trailers to the headers of a request that may be judged already
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed, self._in_head = 0, False
        self._begun = self.receive_seconds
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApplication) -> None:
        if self._express is None or not self._express.takes(cycle.scope):
            self._take_long_way(cycle)
        elif cycle.more_body:
            self._boarding = cycle
        else:
            self._depart(cycle)

    def _depart(self, cycle: RequestResponseCycle) -> None:
        """By express, if the whole body came with its head."""
        long_way = partial(self._take_long_way, cycle)
        if self._express is None or cycle.more_body or not self._express.begin(cycle, long_way):
            long_way()

    def _take_long_way(self, cycle: RequestResponseCycle) -> None:
        if cycle.scope["method"] != "HEAD":
            cycle.transport = cast("asyncio.Transport", Joined(self.transport))
        super()._start_asgi_task(cycle, self.app)

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed, self._begun = 0, None
        self._received()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._hang_up(_TOO_LARGE if self._head > self.head_max else _NOT_HTTP)

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: uvicorn would tell our log what to install for WebSockets, which there are none of here."""

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._head += size
        if self._head > self.head_max:
            raise _TooLarge

    def _expect(self, seconds: float) -> None:
        self._received()
        self._deadline = self.loop.call_later(seconds, self._late, seconds)

    def _received(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self, seconds: float) -> None:
        if self.flow.read_paused or self._excused:  # it is we who did not read; once we do again, a full time is due
            self._excused = self.flow.read_paused
            self._expect(seconds)
        else:
            self._hang_up(_TOO_SLOW)

    def _hang_up(self, answer: bytes) -> None:
        """Close, after a word if no answer to this or an earlier request is due or under way."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or (cycle.more_body and not cycle.response_started and not self.pipeline):
            self.transport.write(answer)
        self.transport.close()


def _last_word(status: int, phrase: str, title: str, detail: str, remedy: str, *headers: str) -> bytes:
    """A problem, as all others are told, and the end of the connection."""
    problem = Problem(type=f"/problem/{title.replace(' ', '-')}", title=title, status=status, detail=detail, remedy=remedy)
    body = msgspec.json.encode(problem)
    lines = [f"HTTP/1.1 {status} {phrase}", f"content-type: {PROBLEM_JSON}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


_NOT_HTTP = _last_word(
    400, "Bad Request", "malformed", "this is not HTTP/1.1", "send HTTP/1.1 as RFC 9112 has it; over TLS only to a proxy"
)
_TOO_SLOW = _last_word(408, "Request Timeout", "request timeout", "the request did not arrive in time", "send it again, whole")
_TOO_LARGE = _last_word(
    431,
    "Request Header Fields Too Large",
    "request header fields too large",
    f"address and headers together have more than {HEAD_MAX} bytes",
    "send fewer or shorter headers",
)
_BUSY = (503, "Service Unavailable", "busy")
_NOT_DONE = "try again in 1 s; the request was not carried out"
_TOO_MANY = _last_word(*_BUSY, "too many connections are open", _NOT_DONE, "retry-after: 1")
_TOO_MANY_OF_YOURS = _last_word(*_BUSY, "you have too many connections open", f"use those that you have, or {_NOT_DONE}", "retry-after: 1")


class Serving(Config):
    """uvicorn's settings for one server, with the doorways that its connections come by."""

    def __init__(self, app: ASGIApplication, *, express: Express | None = None, **more: Any) -> None:
        super().__init__(app, http=PeerProtocol, **more)
        self.express = express
        self._doorways: dict[str, Doorway] = {}

    def doorway(self, way: str) -> Doorway:
        """The one of this way in, as wide as `limit_concurrency` says when the first comes by it."""
        if way not in self._doorways:
            self._doorways[way] = Doorway(way, self.limit_concurrency or _ENDLESS)
        return self._doorways[way]


def serving(app: ASGIApplication, *, connections_max: int = 1_024, access_log: bool = False, express: Express | None = None) -> Serving:
    """How uvicorn serves `app`: with peers, without WebSockets, believing no forwarded address, and bounded.

    What the `express` takes does not reach `app`. Over the Unix socket and over TCP each, a connection above `connections_max` is told
    503 and closed. Logging is left as it is.
    """
    return Serving(
        app,
        express=express,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        log_config=None,
        access_log=access_log,
        limit_concurrency=connections_max,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
    )
