"""An answer leaves in one piece, and nothing of it is kept back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.rest.server.joined import Joined
from tests.rest.served import Served, served

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Noted:
    """A wire that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def test_the_head_waits_for_the_body_and_the_rest_for_nothing() -> None:
    wire = Noted()
    joined = Joined(wire)
    joined.write(HEAD)
    assert wire.written == []
    joined.write(b"one")
    joined.write(b"HTTP/1.1 says the second piece")
    assert wire.written == [HEAD + b"one", b"HTTP/1.1 says the second piece"]


def test_an_empty_body_does_not_keep_the_head_back() -> None:
    wire = Noted()
    joined = Joined(wire)
    joined.write(HEAD)
    joined.write(b"")
    assert wire.written == [HEAD]


def test_continue_is_said_at_once() -> None:
    wire = Noted()
    joined = Joined(wire)
    joined.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    joined.write(HEAD)
    joined.write(b"one")
    assert wire.written == [b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"one"]


def test_who_closes_sends_what_waits() -> None:
    wire = Noted()
    joined = Joined(wire)
    joined.write(HEAD)
    joined.close()
    assert (wire.written, joined.is_closing()) == ([HEAD], True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("joined")) as running:
        yield running


def asked(path: Path, *requests: bytes) -> bytes:
    """All that a server answers on one connection, whose last request ends it."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(30)
        line.connect(str(path))
        for each in requests:
            line.sendall(each)
        said = b""
        while more := line.recv(65_536):
            said += more
        return said


def test_a_client_that_waits_for_continue_is_told(server: Served) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(30)
        line.connect(str(server.socket))
        line.sendall(
            b"POST /job HTTP/1.1\r\nhost: bank\r\ncontent-type: application/json\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
        )
        assert line.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(b"{}")
        assert line.recv(65_536).startswith(b"HTTP/1.1 400 ")


def test_answers_without_a_body_and_pipelined_ones_come_whole(server: Served) -> None:
    get = b"GET /health HTTP/1.1\r\nhost: bank\r\n\r\n"
    last = b"HEAD /health HTTP/1.1\r\nhost: bank\r\nconnection: close\r\n\r\n"
    said = asked(
        server.socket, get + b"OPTIONS /health HTTP/1.1\r\nhost: bank\r\n\r\n" + get + last
    )
    assert [each[:3] for each in said.split(b"HTTP/1.1 ")[1:]] == [b"200", b"204", b"200", b"200"]
    assert said.count(b'{"status":"ok"}') == 2
