"""Idle connections: closed after a timeout. The test sets the clock of the loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn.server import ServerState

from fairbank.rest.server.http_protocol import HttpProtocol, server_config
from tests.rest.server.manual_loop import StoppedLoop

SILENCE = 30.0
ASKED = b"GET / HTTP/1.1\r\nhost: bank\r\n\r\n"


class Line:
    """One connection to a server in the same loop. It answers while `open` is set."""

    def __init__(
        self, loop: StoppedLoop, protocol: HttpProtocol, ours: socket.socket, opened: asyncio.Event
    ) -> None:
        self._loop, self.protocol, self._ours, self.open = loop, protocol, ours, opened

    async def send(self) -> None:
        await self._loop.sock_sendall(self._ours, ASKED)
        await self._loop.pass_by(0)

    async def ask(self) -> None:
        await self.send()
        assert (await self._loop.sock_recv(self._ours, 65_536)).startswith(b"HTTP/1.1 204 ")

    async def wait(self, seconds: float) -> bool:
        """Advance the clock; return True if the connection is closed then."""
        await self._loop.pass_by(seconds)
        return self.protocol.transport.is_closing()


def talk(story: Callable[[Line], Awaitable[None]]) -> None:
    async def told() -> None:
        loop, opened = asyncio.get_running_loop(), asyncio.Event()
        assert isinstance(loop, StoppedLoop)
        opened.set()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await opened.wait()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        config = server_config(app)
        config.load()
        assert config.timeout_keep_alive == SILENCE
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        with ours:
            new_protocol: Any = config.http
            protocol: HttpProtocol = new_protocol(config, ServerState(), {})
            await loop.connect_accepted_socket(lambda: protocol, theirs)
            await story(Line(loop, protocol, ours, opened))
            protocol.transport.abort()
            await loop.pass_by(0)
        assert protocol.timeout_keep_alive_task is None

    with asyncio.Runner(loop_factory=StoppedLoop) as runner:
        runner.run(told())


def test_idle_connection_is_closed() -> None:
    async def story(line: Line) -> None:
        await line.ask()
        assert not await line.wait(SILENCE - 1)
        assert await line.wait(1)

    talk(story)


def test_each_idle_period_has_the_full_timeout() -> None:
    async def story(line: Line) -> None:
        for _ in range(3):
            await line.ask()
            assert not await line.wait(SILENCE - 1)
        assert await line.wait(1)

    talk(story)


def test_connection_with_pending_response_is_not_idle() -> None:
    async def story(line: Line) -> None:
        await line.ask()
        line.open.clear()
        await line.send()
        assert not await line.wait(2 * SILENCE)
        line.open.set()
        assert not await line.wait(0)
        assert not await line.wait(SILENCE - 1)
        assert await line.wait(1)

    talk(story)


def test_pipelined_requests_are_answered_before_the_idle_timeout() -> None:
    async def story(line: Line) -> None:
        line.open.clear()
        for _ in range(3):
            await line.send()
        line.open.set()
        await line.wait(0)
        assert line.protocol.server_state.total_requests == 3
        assert not await line.wait(SILENCE - 1)
        assert await line.wait(1)

    talk(story)
