"""Connections over a real socket: introduction, requests, and peers that misbehave."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from fairbank.core.errors import Unavailable
from fairbank.wlm.protocol import connection as connection_module
from fairbank.wlm.protocol.connection import UNREAD_MAX, Connection
from fairbank.wlm.protocol.frames import Frame, FrameDecoder, encode_frame
from fairbank.wlm.protocol.messages import (
    Accepted,
    ErrorMessage,
    Hello,
    Message,
    PollUsage,
    ProcessList,
    decode_message,
    encode_message,
)

HELLO = Hello(role="controller", name="test")
HELLO_OF_VERSION_1 = encode_frame(
    Frame(1, 0, msgspec.msgpack.encode({"versions": [1], "role": "controller", "name": "test"}))
)


class Server:
    """Handler that answers PollUsage, and keeps what it got."""

    def __init__(self) -> None:
        self.hellos: list[Hello] = []
        self.messages: list[Message] = []
        self.closed = 0

    def on_hello(self, connection: Connection, hello: Hello) -> None:
        self.hellos.append(hello)

    def on_message(self, connection: Connection, message: Message, number: int) -> None:
        self.messages.append(message)
        if isinstance(message, PollUsage):
            connection.send(Accepted(), number)

    def on_close(self, connection: Connection) -> None:
        self.closed += 1


@asynccontextmanager
async def serving(path: Path, *, allowed: bool = True) -> AsyncIterator[Server]:
    server = Server()
    hello = Hello(role="node", name="n1")
    listener = await asyncio.get_running_loop().create_unix_server(
        lambda: Connection(server, hello, lambda _: allowed), path
    )
    async with listener:
        yield server


async def read_all(path: Path, data: bytes) -> list[Message]:
    """Send data and return all messages until the server closes the connection."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    try:
        received = await reader.read()
    except ConnectionError:
        received = b""
    writer.close()
    return [decode_message(frame) for frame in FrameDecoder().decode(received)]


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await work()

    asyncio.run(limited())


def test_both_sides_introduce_themselves_and_requests_are_answered(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path / "s") as server:
            client = Server()
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_unix_connection(
                lambda: Connection(client, HELLO), str(tmp_path / "s")
            )
            answers = await asyncio.gather(*(connection.request(PollUsage()) for _ in range(100)))
            assert answers == [Accepted()] * 100
            assert (server.hellos, client.hellos[0].name) == ([HELLO], "n1")
            lost = asyncio.ensure_future(connection.request(ProcessList(processes=())))
            await asyncio.sleep(0)
            connection.close()
            with pytest.raises(Unavailable):
                await lost
            with pytest.raises(Unavailable):
                await connection.request(PollUsage())

    run(work)


def test_late_answer_to_a_request_that_was_given_up_is_dropped(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path / "s"):
            client = Server()
            _, connection = await asyncio.get_running_loop().create_unix_connection(
                lambda: Connection(client, HELLO), str(tmp_path / "s")
            )
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connection.request(PollUsage()), 0)
            given_up = asyncio.ensure_future(connection.request(PollUsage()))
            await asyncio.sleep(0)
            given_up.cancel()
            assert await connection.request(PollUsage()) == Accepted()
            assert client.messages == []
            connection.close()

    run(work)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (encode_message(PollUsage()), "the peer sent no hello"),
        (encode_message(HELLO) * 2, "the peer sent a second hello"),
        (b"GET / HTTP/1.1\r\n\r\n", "bytes; at most 65536"),
        (encode_frame(Frame(1, 0, b"\xff")), "bad content"),
        (HELLO_OF_VERSION_1, "use the same release on both sides"),
        (encode_message(HELLO) + encode_frame(Frame(99, 0, b"")), "unknown kind 99"),
    ],
    ids=["no-hello", "two-hellos", "http", "content", "version-1", "kind"],
)
def test_peer_that_breaks_the_protocol_is_disconnected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes, complaint: str
) -> None:
    async def work() -> None:
        async with serving(tmp_path / "s") as server:
            await read_all(tmp_path / "s", data)
            assert server.messages == []

    run(work)
    assert complaint in caplog.text


def test_other_version_gets_an_error_that_names_both(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path / "s") as server:
            hello = encode_message(Hello(versions=(7, 8), role="controller"))
            _, error = await read_all(tmp_path / "s", hello)
            assert isinstance(error, ErrorMessage)
            assert error.message == "version 2 of the protocol is spoken here, not version 7, 8"
            assert error.remedy == "use the same release on both sides"
            assert server.hellos == []

    run(work)


def test_user_that_may_not_connect_is_disconnected(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path / "s", allowed=False) as server:
            assert await read_all(tmp_path / "s", encode_message(HELLO)) == []
            assert server.hellos == []

    run(work)


def test_peer_without_hello_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "HELLO_SECONDS", 0.05)

    async def work() -> None:
        async with serving(tmp_path / "s"):
            assert [type(message) for message in await read_all(tmp_path / "s", b"")] == [Hello]

    run(work)


def test_frame_that_is_cut_by_the_end_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with serving(tmp_path / "s") as server:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            await reader.readexactly(9)  # the header of the server's hello
            writer.write(encode_message(HELLO) + encode_message(PollUsage())[:-1])
            writer.close()
            while not server.closed:
                await asyncio.sleep(0.01)
            assert server.messages == []

    run(work)
    assert "controller test closed the connection within a frame" in caplog.text


def test_peer_that_does_not_read_is_not_read(tmp_path: Path) -> None:
    """The server stops after a bounded number of requests, and answers all when it is read."""

    async def work() -> None:
        async with serving(tmp_path / "s") as server:
            loop = asyncio.get_running_loop()
            with socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                await loop.sock_connect(client, os.fspath(tmp_path / "s"))
                await loop.sock_sendall(client, encode_message(HELLO))
                pings = encode_message(PollUsage(), 1) * 10_000
                sending = asyncio.ensure_future(send_repeatedly(client, pings, 100))
                answer = len(encode_message(Accepted(), 1))
                before = -1
                while len(server.messages) != before or before < UNREAD_MAX // answer:
                    before = len(server.messages)
                    await asyncio.sleep(0.2)
                assert before < 1_000_000
                assert not sending.done()
                sending.cancel()

    run(work)


async def send_repeatedly(client: socket.socket, data: bytes, count: int) -> None:
    for _ in range(count):
        await asyncio.get_running_loop().sock_sendall(client, data)


def test_idle_connections_are_cheap(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """500 peers that send nothing delay no other."""
    caplog.set_level(logging.ERROR)

    async def work() -> None:
        async with serving(tmp_path / "s"):
            loop = asyncio.get_running_loop()
            idle = [await asyncio.open_unix_connection(tmp_path / "s") for _ in range(500)]
            _, connection = await loop.create_unix_connection(
                lambda: Connection(Server(), HELLO), str(tmp_path / "s")
            )
            assert await connection.request(PollUsage()) == Accepted()
            connection.close()
            for _, writer in idle:
                writer.close()

    run(work)
