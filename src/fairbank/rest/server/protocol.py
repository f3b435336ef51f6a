"""uvicorn's HTTP as we want it: who asks, a largest head, a longest time, not everything for one user, answers in one piece."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fairbank.rest.server import last_words
from fairbank.rest.server.arriving import neighbourhood
from fairbank.rest.server.doorway import Doorway
from fairbank.rest.server.heads import Heads, again
from fairbank.rest.server.joined import Joined
from fairbank.rest.server.last_words import HEAD_MAX
from fairbank.rest.server.parting import Parting
from fairbank.rest.short_way.express import Express
from fairbank.rest.sign_in.peers import EXTENSION, Peer, peer_at

if TYPE_CHECKING:
    from uvicorn._types import ASGIApplication

HEAD_SECONDS = 5.0
RECEIVE_SECONDS = 30.0
PER_PEER_MAX = 512  # connections of a user, or of a host; an agent on the busiest cluster keeps some dozens
_ENDLESS = 2**31
_AS_BEFORE = b"h2c"  # clients that offer it go on in HTTP/1.1 where it is not taken up


class _Unread(Exception):
    """Stops the parser in the middle of a head; uvicorn then calls `send_400_response`."""


class PeerProtocol(Parting):
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
    _why: bytes | None = None  # nothing is read on, where that is not the parser's doing

    def __init__(self, config: Serving, *about: Any, **more: Any) -> None:
        super().__init__(config, *about, **more)
        self._doorway, self._express, self._heads = config.doorway, config.express, config.heads
        self.limit_concurrency = None  # whoever is too many is told in our words

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = peer_at(transport.get_extra_info("socket"))
        if (refusal := self._enter()) is None:
            self._expect(self.head_seconds)
        else:
            self.hang_up(refusal)

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
        return last_words.TOO_MANY if doorway.full else last_words.TOO_MANY_OF_YOURS

    def connection_lost(self, exc: Exception | None) -> None:
        self._received()
        if self._entered is not None:
            doorway, who = self._entered
            self._entered = None
            doorway.leave(who)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._farewell is not None:
            return
        between = not self._within
        if between and self._boarded_again(data):
            return
        self._unparsed += len(data)
        super().data_received(data)
        if (cycle := self._boarding) is not None:
            self._boarding = None
            if between and not self._within:
                self._heads.learn(data, cycle)
            self._depart(cycle)
        self._wait_on()

    def _boarded_again(self, data: bytes) -> bool:
        """Take a request whose head went by express before, without parsing it. False when it is to be parsed."""
        before: RequestResponseCycle | None = self.cycle
        if self._peer is None or (before is not None and not before.response_complete) or self.transport.is_closing():
            return False
        if (found := self._heads.find(data)) is None:
            return False
        self._unset_keepalive_if_required()
        self._received()
        self._unparsed = 0
        self.cycle = again(self, {EXTENSION: self._peer}, *found)
        self._depart(self.cycle)
        return True

    def _wait_on(self) -> None:
        """For the rest of what has begun, unless no more is read."""
        if self._farewell is not None:
            return
        if self._begun is not None:
            self._expect(self._begun)
            self._begun = None
        if self._unparsed > self.head_max and not self.transport.is_closing():
            self.hang_up(last_words.TOO_LARGE)

    def on_message_begin(self) -> None:
        self._head, self._unparsed, self._in_head, self._within = 0, 0, True, True
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
        if self.parser.should_upgrade():
            self._why = self._objection()
        if self._why is not None:
            raise _Unread
        super().on_headers_complete()

    def _objection(self) -> bytes | None:
        """To what asks for another protocol: the parser takes the rest for that, so a body beside it is never read."""
        if self.parser.get_method() == b"CONNECT":
            return last_words.NO_PROXY
        bodiless = all(name not in (b"content-length", b"transfer-encoding") or value == b"0" for name, value in self.headers)
        return None if bodiless and self._get_upgrade() == _AS_BEFORE else last_words.NO_UPGRADE

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
        self._unparsed, self._begun, self._within = 0, None, False
        self._received()
        super().on_message_complete()
        self.cycle.more_body = False  # uvicorn leaves it so where the answer came before the end

    def send_400_response(self, msg: str) -> None:
        if self._why is None:
            last: RequestResponseCycle | None = self.cycle
            before = last.scope["headers"] if last is not None and not last.more_body else None
            self._why = last_words.not_http(sys.exception(), before)
        self.hang_up(self._why)

    def _unsupported_upgrade_warning(self) -> None:
        """It is answered as if it had not asked, and is the last: uvicorn keeps none of what came after it, and would tell our log
        what to install for WebSockets."""
        self.cycle.keep_alive, self._farewell = False, b""

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._head += size
        if self._head > self.head_max:
            self._why = last_words.TOO_LARGE
            raise _Unread

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
            self.hang_up(last_words.TOO_SLOW)


class Serving(Config):
    """uvicorn's settings for one server, with the doorways that its connections come by."""

    def __init__(self, app: ASGIApplication, *, express: Express | None = None, **more: Any) -> None:
        super().__init__(app, http=PeerProtocol, **more)
        self.express = express
        self.heads = Heads()
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
