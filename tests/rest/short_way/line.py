"""A connection to a server in the same loop, and what is said on it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn.server import ServerState

from fairbank.rest.app import create_app
from fairbank.rest.server.front import Front
from fairbank.rest.server.protocol import PeerProtocol, serving
from fairbank.rest.short_way.express import Express
from fairbank.service.access.identity import Staff
from fairbank.store.memory.store import MemoryStore
from tests.rest.world import World, a_world

US = Staff(frozenset({os.getuid()}), frozenset(), {})
ODD = "X-Odd: 1\r\n"  # a header that the express does not know
HUGE = {"time_limit": 10 * 366 * 86_400, "billing": 10**6}


Answer = tuple[str, list[str], str]
"""Status, headers and body, without what differs from one answer to the next."""


def request(
    body: object, more: str = "", *, path: str = "/job", kind: str = "application/json"
) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: bank\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}\r\n"
    return head.encode() + content


class Parsing(PeerProtocol):
    """Counts the requests that it parses."""

    parsed = 0

    def on_message_begin(self) -> None:
        self.parsed += 1
        super().on_message_begin()


class Line:
    """One connection over a Unix socket to a server in the same loop; `long` is how many requests took the long way."""

    def __init__(self, world: World, protocol: Parsing, ours: socket.socket) -> None:
        self.world, self.protocol, self._ours = world, protocol, ours
        self.long = 0

    async def send(self, said: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._ours, said)

    async def answer(self) -> Answer:
        """The next one."""
        said = b""
        while b"\r\n\r\n" not in said:
            said += await self._more()
        head, _, body = said.partition(b"\r\n\r\n")
        length = int(re.findall(rb"content-length: (\d+)", head)[0])
        while len(body) < length:
            body += await self._more()
        assert len(body) == length
        status, *headers = head.decode().split("\r\n")
        return (
            status,
            sorted(re.sub(r"\d+", "N", each) for each in headers),
            re.sub(r"\d+", "N", body.decode()),
        )

    async def _more(self) -> bytes:
        """A byte at a time: nothing of the next answer."""
        more = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._ours, 1), 30)
        assert more, "the server hung up"
        return more

    def end(self) -> None:
        """Send no more, and still listen."""
        self._ours.shutdown(socket.SHUT_WR)

    async def hung_up(self) -> bool:
        return (
            await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._ours, 1), 30) == b""
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0)

    @property
    def places_taken(self) -> float | None:
        return self.world.house.metrics.registry.get_sample_value("fairbank_requests_in_progress")

    @property
    def seconds(self) -> float | None:
        """How long all reports together took that were answered."""
        return self.world.house.metrics.registry.get_sample_value(
            "fairbank_request_seconds_sum", {"route": "/job"}
        )

    def answered(self, status: int) -> float | None:
        told = {"method": "POST", "route": "/job", "status": str(status)}
        return self.world.house.metrics.registry.get_sample_value("fairbank_requests_total", told)


def ride(
    story: Callable[[Line], Awaitable[None]],
    store: MemoryStore | None = None,
    *,
    crowd_max: int = 10,
) -> None:
    """Let a story happen on a line."""

    async def run(world: World) -> None:
        app = create_app(world.house)
        front = Front(app, world.house.metrics, greet=app.doorkeeper.greet, crowd_max=crowd_max)

        async def long_way(scope: Any, receive: Any, send: Any) -> None:
            line.long += 1
            await front(scope, receive, send)

        express = Express(world.house, front, app.doorkeeper.local, lambda: app.state.teller)
        config = serving(long_way, express=express)
        config.load()
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        with ours:
            async with app.lifespan():
                protocol = Parsing(config, ServerState(), {})
                line = Line(world, protocol, ours)
                await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, theirs)
                await story(line)

    with a_world(store, staff=US) as world:
        asyncio.run(run(world))
