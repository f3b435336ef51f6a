"""Limits of a connection: size, time and number. Violations are answered, and the connection
closes.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from fairbank.rest.server.http_protocol import server_config
from fairbank.rest.server.protocol_errors import HEAD_MAX
from tests.rest.server.echo_server import (
    CONNECTIONS_MAX,
    HEAD_SECONDS,
    IGNORE_DISCONNECT,
    PER_USER_MAX,
    EchoServer,
    as_user,
    ask,
    is_closed,
    read_response,
    request,
)
from tests.support.account import Account
from tests.support.conditions import wait_until


def test_too_large_head_is_refused_before_the_application(server: EchoServer) -> None:
    requests = {
        "one long header": request("/", "X: " + "x" * HEAD_MAX),
        "many short headers": request("/", *["a:"] * 3_000),
        "a long address": request("/" + "x" * HEAD_MAX),
        "a long address and a long header": request(
            "/" + "x" * (HEAD_MAX // 2), "X: " + "x" * (HEAD_MAX // 2)
        ),
        "a header without end": b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000_000,
        "an address without end": b"GET /" + b"x" * 1_000_000,
    }
    with server.unix() as connection:
        before = ask(connection, request())["request_count"]
    for what, sent in requests.items():
        with server.unix() as connection:
            with IGNORE_DISCONNECT:
                connection.sendall(sent)
            assert read_response(connection)[0] in (431, 0), what
            assert is_closed(connection), what
    with server.unix() as connection:
        assert (
            ask(connection, request("/", "X: " + "x" * (HEAD_MAX // 2)))["request_count"]
            == before + 1
        )


def test_each_request_may_have_a_full_head(server: EchoServer) -> None:
    with server.unix() as connection:
        for _ in range(4):
            ask(connection, request("/", "X: " + "x" * (HEAD_MAX // 2)))


def test_trailers_and_chunk_extensions_are_limited(server: EchoServer) -> None:
    start = request("/", "Transfer-Encoding: chunked", method="POST") + b"1\r\nx\r\n"
    for rest in (
        b"0\r\n" + b"T: x\r\n" * 3_000,
        b"0\r\nT: " + b"x" * 1_000_000,
        b"1;" + b"x" * 1_000_000,
    ):
        with server.unix() as connection:
            with IGNORE_DISCONNECT:
                connection.sendall(start + rest)
            assert read_response(connection)[0] in (431, 0)


def test_trailers_never_become_headers(server: EchoServer) -> None:
    """Otherwise a second Authorization could arrive after the first was checked."""
    chunks = b"3\r\nabc\r\n0\r\nAuthorization: Bearer fbk_x\r\n\r\n"
    with server.unix() as connection:
        for _ in range(2):
            echo = ask(
                connection, request("/", "Transfer-Encoding: chunked", method="POST") + chunks
            )
            assert (echo["headers"], echo["length"]) == (["host", "transfer-encoding"], 3)


def test_large_body_is_no_large_head(server: EchoServer) -> None:
    with server.unix() as connection:
        assert (
            ask(connection, request("/", body=b"x" * 2_000_000, method="POST"))["length"]
            == 2_000_000
        )


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
    ],
)
def test_data_that_is_not_http_is_refused(server: EchoServer, sent: bytes) -> None:
    with server.unix() as connection:
        connection.sendall(sent)
        status, problem = read_response(connection)
        assert (status, problem["status"], problem["title"]) == (400, 400, "invalid input")
        assert problem["type"] == "/problem/invalid-input"
        assert problem["remedy"] == "send HTTP/1.1 as RFC 9112 has it; over TLS only to a proxy"
        assert is_closed(connection)


def test_data_that_is_not_http_is_logged_with_its_sender(server: EchoServer) -> None:
    line_count = len(server.log.read_text().splitlines())
    for connection in (server.unix(), server.tcp()):
        with connection:
            connection.sendall(b"hello\r\n\r\n")
            assert read_response(connection)[0] == 400
    local, remote = (json.loads(line) for line in server.log.read_text().splitlines()[line_count:])
    assert local["message"] == remote["message"] == "Invalid HTTP request received."
    assert (local["uid"], local["pid"], remote["host"]) == (os.getuid(), os.getpid(), "127.0.0.1")


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", request("/", "Content-Length: 10", method="POST") + b"x"]
)
def test_incomplete_request_is_closed_after_the_deadline(server: EchoServer, sent: bytes) -> None:
    with server.unix() as connection:
        begun = time.monotonic()
        connection.sendall(sent)
        status, problem = read_response(connection)
        assert (status, problem["title"], problem["type"]) == (
            408,
            "request timeout",
            "/problem/request-timeout",
        )
        assert problem["remedy"] == "send it again, complete"
        assert is_closed(connection)
        assert HEAD_SECONDS * 0.9 < time.monotonic() - begun < HEAD_SECONDS * 10


def test_slow_bytes_do_not_extend_the_deadline(server: EchoServer) -> None:
    with server.unix() as connection:
        connection.settimeout(0.05)
        begun, status = time.monotonic(), -1
        while status == -1 and time.monotonic() - begun < 10 * HEAD_SECONDS:
            connection.send(b"G")
            try:
                status = read_response(connection)[0]
            except TimeoutError:
                continue
    assert status in (400, 408)


@pytest.mark.slow
def test_deadline_stops_while_the_server_does_not_read(server: EchoServer) -> None:
    with server.unix() as short, server.unix() as long:
        short.sendall(request("/later"))
        assert (
            ask(long, request("/later", body=b"x" * 1_000_000, method="POST"))["length"]
            == 1_000_000
        )
        assert read_response(short)[0] == 200
        for connection in (short, long):
            assert ask(connection, request())["length"] == 0, (
                "the next request has the full timeout"
            )


def test_user_cannot_take_all_connections(server: EchoServer) -> None:
    held = [server.unix() for _ in range(PER_USER_MAX)]
    try:
        for connection in held:
            ask(connection, request())
        with server.unix() as one_more:
            status, problem = read_response(one_more)
            assert (status, problem["title"], problem["detail"]) == (
                503,
                "busy",
                "you have too many connections open",
            )
            assert is_closed(one_more)
        with closing(server.tcp()) as elsewhere:
            ask(elsewhere, request())
        ask(held[0], request())
        if os.geteuid() == 0:
            assert (
                as_user(Account.number(54_321), lambda: ask(server.unix(), request())["peer"][1])
                == 54_321
            )
    finally:
        for connection in held:
            connection.close()
    wait_until(lambda: _can_connect(server), "the places to be free again")


def test_servers_of_one_process_have_separate_limits() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def visit(config: Config) -> tuple[socket.socket, bytes]:
        loop, (theirs, ours) = asyncio.get_running_loop(), socket.socketpair()
        ours.setblocking(False)
        config.load()
        protocol: Any = config.http
        await loop.connect_accepted_socket(lambda: protocol(config, ServerState(), {}), theirs)
        await loop.sock_sendall(ours, request())
        return ours, (await loop.sock_recv(ours, 65_536)).splitlines()[0]

    async def run() -> list[bytes]:
        connections = [await visit(server_config(app, connections_max=1)) for _ in range(2)]
        for ours, _ in connections:
            ours.close()
        return [status for _, status in connections]

    assert asyncio.run(run()) == [b"HTTP/1.1 204 No Content"] * 2


def test_host_cannot_take_all_connections(server: EchoServer) -> None:
    with ExitStack() as connections:
        for _ in range(PER_USER_MAX):
            ask(connections.enter_context(closing(server.tcp())), request())
        with closing(server.tcp()) as one_more:
            status, problem = read_response(one_more)
        assert (status, problem["detail"]) == (503, "you have too many connections open")
        with closing(server.tcp("127.0.0.2")) as elsewhere:
            ask(elsewhere, request())


def test_unix_socket_has_its_own_connection_limit(server: EchoServer) -> None:
    with ExitStack() as connections:
        for host in range(CONNECTIONS_MAX):
            address = f"127.0.1.{host}"
            wait_until(partial(_can_connect_from, server, address, connections), "a place")
        with closing(server.tcp("127.0.2.1")) as one_more:
            status, problem = read_response(one_more)
        assert (status, problem["type"], problem["detail"]) == (
            503,
            "/problem/busy",
            "too many connections are open",
        )
        assert _can_connect(server)
        wait_until(
            lambda: "rejecting connections over TCP: " in server.log.read_text(), "the log line"
        )


def _can_connect_from(server: EchoServer, host: str, connections: ExitStack) -> bool:
    """Open another connection; return False while connections of an earlier test are still open."""
    connection = connections.enter_context(closing(server.tcp(host)))
    with IGNORE_DISCONNECT:
        connection.sendall(request())
    return read_response(connection)[0] == 200


def _can_connect(server: EchoServer) -> bool:
    with server.unix() as connection:
        with IGNORE_DISCONNECT:
            connection.sendall(request())
        return read_response(connection)[0] == 200
