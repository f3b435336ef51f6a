"""End of connections: pending requests are answered first, and errors are reported."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairbank.rest.server.http_protocol import server_config
from fairbank.rest.server.server import HttpServer
from tests.rest.server.echo_server import EchoServer, is_closed, read_response, request

UPGRADE = ("Connection: Upgrade", "Upgrade: {}")


def send_and_read_all(
    server: EchoServer, sent: bytes, *, half_close: bool = False
) -> list[tuple[int, dict[str, Any]]]:
    """Send data and return all responses until the server closes.

    Args:
        server: server to send to.
        sent: the data.
        half_close: close the sending side first, as a client that still reads.
    """
    with server.unix() as connection:
        connection.sendall(sent)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        answers = []
        while (response := read_response(connection))[0]:
            answers.append(response)
    return answers


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (request() + b'{"amount": 1}', "there is data after the request, which announced no body"),
        (
            request(method="POST") + b'{"amount": 1}',
            "there is data after the request, which announced no body",
        ),
        (
            request(body=b"{}", method="POST") + b"}",
            "there is data after the request: its body is longer than announced",
        ),
        (
            request("/", "Transfer-Encoding: chunked", method="POST") + b"1\r\nx\r\n0\r\n\r\n{}",
            "there is data after the request: its body is longer than announced",
        ),
    ],
)
@pytest.mark.parametrize("before", [b"", request()])
def test_bytes_after_a_request_are_refused_after_its_response(
    server: EchoServer, before: bytes, sent: bytes, detail: str
) -> None:
    *answers, (status, problem) = send_and_read_all(server, before + sent)
    assert [status for status, _ in answers] == [200] * (2 if before else 1)
    assert (status, problem["title"], problem["field"]) == (400, "invalid input", "Content-Length")
    assert problem["detail"] == detail
    assert "Content-Length" in problem["remedy"]


def test_later_bytes_after_a_request_are_refused(server: EchoServer) -> None:
    with server.unix() as connection:
        connection.sendall(request())
        assert read_response(connection)[0] == 200
        connection.sendall(b"{}")
        assert read_response(connection)[1]["field"] == "Content-Length"
        assert is_closed(connection)


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        (("Content-Length: 1", "Content-Length: 1"), "Content-Length"),
        (("Content-Length: 1", "Content-Length: 2"), "Content-Length"),
        (("Content-Length: 1", "Transfer-Encoding: chunked"), "Transfer-Encoding"),
        (("Transfer-Encoding: chunked", "Content-Length: 1"), "Transfer-Encoding"),
        (("Transfer-Encoding: gzip",), "Transfer-Encoding"),
    ],
)
def test_ambiguous_length_names_its_header(
    server: EchoServer, headers: tuple[str, ...], field: str
) -> None:
    [(status, problem)] = send_and_read_all(server, request("/", *headers, method="POST") + b"x")
    assert (status, problem["field"]) == (400, field)
    assert field in problem["detail"]


def test_half_closed_connection_gets_its_responses(server: EchoServer) -> None:
    for many in (1, 2, 5):
        assert [
            status for status, _ in send_and_read_all(server, request() * many, half_close=True)
        ] == [200] * many
    assert [
        body["length"]
        for _, body in send_and_read_all(
            server, request(body=b"x" * 500_000, method="POST") * 2, half_close=True
        )
    ] == [500_000] * 2


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HT",
        request(body=b"{}", method="POST")[:-1],
        request("/", "Transfer-Encoding: chunked", method="POST") + b"5\r\nab",
    ],
)
def test_truncated_request_is_refused(server: EchoServer, before: int, sent: bytes) -> None:
    *answers, (status, problem) = send_and_read_all(
        server, request() * before + sent, half_close=True
    )
    assert [status for status, _ in answers] == [200] * before
    assert (status, problem["detail"], problem["remedy"]) == (
        400,
        "the request ended before it was complete",
        "send it again, complete",
    )


WHOLE = request("/early", body=b"{}", method="POST")
HALF = WHOLE[:-1]


def answered_early(server: EchoServer) -> socket.socket:
    """Return a connection with the response to a request that is not complete yet."""
    connection = server.unix()
    connection.sendall(HALF)
    assert read_response(connection)[0] == 200
    return connection


def test_early_response_is_the_only_response(server: EchoServer) -> None:
    with answered_early(server) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert is_closed(connection)
    with answered_early(server) as connection:  # the rest of the body never arrives
        assert is_closed(connection)


def test_connection_continues_after_an_early_response(server: EchoServer) -> None:
    for sent in (b"}" + request()[:-2], b"}"):
        with answered_early(server) as connection:
            connection.sendall(sent)
            if sent == b"}":
                connection.sendall(request() + b"{}")
                assert read_response(connection)[0] == 200
            connection.shutdown(socket.SHUT_WR)
            assert read_response(connection)[0] == 400
            assert is_closed(connection)
    with answered_early(server) as connection:
        connection.sendall(b"}}")
        assert read_response(connection)[1]["field"] == "Content-Length"
        assert is_closed(connection)


def test_connection_without_request_gets_no_response(server: EchoServer) -> None:
    assert send_and_read_all(server, b"", half_close=True) == []


@pytest.mark.parametrize("protocol", ["websocket", "foo/2"])
@pytest.mark.parametrize("before", [b"", request()])
def test_upgrade_is_refused_by_its_header(server: EchoServer, before: bytes, protocol: str) -> None:
    headers = [template.format(protocol) for template in UPGRADE]
    *answers, (status, problem) = send_and_read_all(server, before + request("/", *headers))
    assert len(answers) == (1 if before else 0)
    assert (status, problem["field"], problem["remedy"]) == (
        400,
        "Upgrade",
        "leave Upgrade out; the server supports HTTP/1.1",
    )
    assert "pip install" not in server.log.read_text()


@pytest.mark.parametrize("together", [True, False])
def test_body_with_upgrade_is_no_other_request(server: EchoServer, together: bool) -> None:
    headers = [template.format("h2c") for template in UPGRADE]
    sent = request("/", *headers, body=b"{}", method="POST")
    [(status, problem)] = send_and_read_all(server, sent if together else sent[:-2])
    assert (status, problem["field"]) == (400, "Upgrade")


def test_optional_upgrade_is_answered_in_http_1_1(server: EchoServer) -> None:
    """`curl --http2` sends such requests."""
    [(status, _)] = send_and_read_all(
        server, request("/", *(template.format("h2c") for template in UPGRADE))
    )
    assert status == 200


def test_unreadable_address_is_refused(server: EchoServer) -> None:
    [(status, problem)] = send_and_read_all(
        server, b"GET http://bank:99999/ HTTP/1.1\r\nHost: bank\r\n\r\n"
    )
    assert (status, problem["detail"]) == (400, "the address of the request cannot be read")


def test_parse_error_is_reported(server: EchoServer) -> None:
    [(status, problem)] = send_and_read_all(server, b"GET / HTTP/1.1\r\nX : a\r\n\r\n")
    assert (status, problem["detail"]) == (400, "this is not HTTP/1.1: Invalid header token")


def test_connect_is_refused(server: EchoServer) -> None:
    [(status, problem)] = send_and_read_all(
        server, b"CONNECT bank:443 HTTP/1.1\r\nHost: bank\r\n\r\n"
    )
    assert (status, problem["detail"]) == (
        400,
        "CONNECT asks for a tunnel, and this is not a proxy",
    )


def test_stop_closes_connections_that_were_accepted_at_that_moment() -> None:
    """A client that never pauses does not keep the server until its time limit."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
        else:
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def run() -> None:
        loop, listener = asyncio.get_running_loop(), socket.create_server(("127.0.0.1", 0))
        config = server_config(app, connections_max=8)
        queue = cast("Any", SimpleNamespace(failure=None))
        server = HttpServer(config, None, queue, lambda: setattr(server, "should_exit", True))
        serving = asyncio.create_task(server.serve([listener]))
        while listener.fileno() >= 0:  # closed just before the server asks its connections to end
            await asyncio.sleep(0)
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        protocol = cast("Any", config.http)
        await loop.connect_accepted_socket(
            lambda: protocol(config, server.server_state, {}), theirs
        )
        with ours:
            while not serving.done() and await is_answered(ours):
                await asyncio.sleep(0)
        assert not serving.done()  # closed before the time limit of uvicorn
        await serving

    async def is_answered(ours: socket.socket) -> bool:
        try:
            await asyncio.get_running_loop().sock_sendall(ours, request())
            return bool(await asyncio.get_running_loop().sock_recv(ours, 65_536))
        except ConnectionError:
            return False

    asyncio.run(run())
