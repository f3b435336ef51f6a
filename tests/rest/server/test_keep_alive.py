"""Idle connections: closed after a timeout. The test sets the clock of the loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn.server import ServerState

from fairbank.rest.server.http_protocol import HttpProtocol, server_config
from fairbank.rest.server.open_files import CONNECTIONS_MAX
from tests.rest.server.manual_loop import ManualLoop

IDLE_SECONDS = 30.0
REQUEST = b"GET / HTTP/1.1\r\nhost: bank\r\n\r\n"


class IdleConnection:
    """Connection to a server in the same event loop, which answers while `open` is set."""

    def __init__(
        self,
        loop: ManualLoop,
        protocol: HttpProtocol,
        client_socket: socket.socket,
        may_answer: asyncio.Event,
    ) -> None:
        self._loop, self.protocol, self._client_socket, self.open = (
            loop,
            protocol,
            client_socket,
            may_answer,
        )

    async def send(self) -> None:
        await self._loop.sock_sendall(self._client_socket, REQUEST)
        await self._loop.advance(0)

    async def ask(self) -> None:
        await self.send()
        assert (await self._loop.sock_recv(self._client_socket, 65_536)).startswith(
            b"HTTP/1.1 204 "
        )

    async def wait(self, seconds: float) -> bool:
        """Advance the clock; return True if the connection is closed then."""
        await self._loop.advance(seconds)
        return self.protocol.transport.is_closing()


def run_scenario(scenario: Callable[[IdleConnection], Awaitable[None]]) -> None:
    async def run_server() -> None:
        loop, may_answer = asyncio.get_running_loop(), asyncio.Event()
        assert isinstance(loop, ManualLoop)
        may_answer.set()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await may_answer.wait()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        config = server_config(app, connections_max=CONNECTIONS_MAX)
        config.load()
        assert config.timeout_keep_alive == IDLE_SECONDS
        server_socket, client_socket = socket.socketpair()
        client_socket.setblocking(False)
        with client_socket:
            new_protocol: Any = config.http
            protocol: HttpProtocol = new_protocol(config, ServerState(), {})
            await loop.connect_accepted_socket(lambda: protocol, server_socket)
            await scenario(IdleConnection(loop, protocol, client_socket, may_answer))
            protocol.transport.abort()
            await loop.advance(0)
        assert protocol.timeout_keep_alive_task is None

    with asyncio.Runner(loop_factory=ManualLoop) as runner:
        runner.run(run_server())


def test_idle_connection_is_closed() -> None:
    async def scenario(connection: IdleConnection) -> None:
        await connection.ask()
        assert not await connection.wait(IDLE_SECONDS - 1)
        assert await connection.wait(1)

    run_scenario(scenario)


def test_each_idle_period_has_the_full_timeout() -> None:
    async def scenario(connection: IdleConnection) -> None:
        for _ in range(3):
            await connection.ask()
            assert not await connection.wait(IDLE_SECONDS - 1)
        assert await connection.wait(1)

    run_scenario(scenario)


def test_connection_with_pending_response_is_not_idle() -> None:
    async def scenario(connection: IdleConnection) -> None:
        await connection.ask()
        connection.open.clear()
        await connection.send()
        assert not await connection.wait(2 * IDLE_SECONDS)
        connection.open.set()
        assert not await connection.wait(0)
        assert not await connection.wait(IDLE_SECONDS - 1)
        assert await connection.wait(1)

    run_scenario(scenario)


def test_pipelined_requests_are_answered_before_the_idle_timeout() -> None:
    async def scenario(connection: IdleConnection) -> None:
        connection.open.clear()
        for _ in range(3):
            await connection.send()
        connection.open.set()
        await connection.wait(0)
        assert connection.protocol.server_state.total_requests == 3
        assert not await connection.wait(IDLE_SECONDS - 1)
        assert await connection.wait(1)

    run_scenario(scenario)
