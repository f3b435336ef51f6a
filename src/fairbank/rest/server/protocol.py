"""uvicorn's HTTP as we want it: within bounds, who asks, not everything for one user, answers in one piece, the express."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fairbank.rest.server import last_words
from fairbank.rest.server.arriving import neighbourhood
from fairbank.rest.server.bounded import Bounded
from fairbank.rest.server.doorway import Doorway
from fairbank.rest.server.heads import Heads, again
from fairbank.rest.server.joined import Joined
from fairbank.rest.server.log import OfConnection
from fairbank.rest.short_way.express import Express
from fairbank.rest.sign_in.peers import EXTENSION, Peer, peer_at

if TYPE_CHECKING:
    import logging

    from uvicorn._types import ASGIApplication

PER_PEER_MAX = (
    512  # connections of a user, or of a host; an agent on the busiest cluster keeps some dozens
)
_ENDLESS = 2**31


class PeerProtocol(Bounded):
    """uvicorn's HTTP within bounds, plus the peer in `scope["extensions"]`, who has so many connections at most; and the express.

    Answers leave through a Joined, but not those to HEAD, where no body comes.
    """

    per_peer_max = PER_PEER_MAX

    _peer: Peer | None = None
    _entered: tuple[Doorway, int | str | None] | None = None

    def __init__(self, config: Serving, *about: Any, **more: Any) -> None:
        super().__init__(config, *about, **more)
        self._doorway, self._express, self._heads = config.doorway, config.express, config.heads
        self.limit_concurrency = None  # whoever is too many is told in our words

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = peer_at(transport.get_extra_info("socket"))
        who = (
            {"host": self.client[0] if self.client else None}
            if self._peer is None
            else {"uid": self._peer.uid, "pid": self._peer.pid}
        )
        self.logger = cast("logging.Logger", OfConnection(self.logger, **who))
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
        if (
            self._peer is None
            or (before is not None and not before.response_complete)
            or self.transport.is_closing()
        ):
            return False
        if (found := self._heads.find(data)) is None:
            return False
        self._unset_keepalive_if_required()
        self._received()
        self._unparsed = 0
        self.cycle = again(self, {EXTENSION: self._peer}, *found)
        self._depart(self.cycle)
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {} if self._peer is None else {EXTENSION: self._peer}  # type: ignore[dict-item]

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


class Serving(Config):
    """uvicorn's settings for one server, with the doorways that its connections come by."""

    def __init__(
        self, app: ASGIApplication, *, express: Express | None = None, **more: Any
    ) -> None:
        super().__init__(app, http=PeerProtocol, **more)
        self.express = express
        self.heads = Heads()
        self._doorways: dict[str, Doorway] = {}

    def doorway(self, way: str) -> Doorway:
        """The one of this way in, as wide as `limit_concurrency` says when the first comes by it."""
        if way not in self._doorways:
            self._doorways[way] = Doorway(way, self.limit_concurrency or _ENDLESS)
        return self._doorways[way]


def serving(
    app: ASGIApplication,
    *,
    connections_max: int = 1_024,
    access_log: bool = False,
    express: Express | None = None,
) -> Serving:
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
