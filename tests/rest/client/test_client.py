"""The client alone, against sockets of the test: addresses, requests, and banks that do not
answer.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cli.framework.error_exit import exit_code
from fairbank.core.errors import InvalidInput, Unavailable
from fairbank.rest.client import Address, Client, MungeSigner, TokenSigner, parse_address
from fairbank.rest.client.client import quoted, target_of
from tests.support.munge import Munged

# --- addresses ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unix:/run/fairbank/fairbank.sock", Address("unix", "/run/fairbank/fairbank.sock")),
        ("unix:///run/bank.sock", Address("unix", "/run/bank.sock")),
        ("/run/bank.sock", Address("unix", "/run/bank.sock")),
        ("http://bank:8080", Address("http", "bank", 8080)),
        ("http://bank/", Address("http", "bank", 80)),
        ("https://bank.example.org", Address("https", "bank.example.org", 443)),
        ("http://[::1]:8080", Address("http", "::1", 8080)),
        ("http://127.0.0.1:80", Address("http", "127.0.0.1", 80)),
    ],
)
def test_valid_addresses_are_parsed(text: str, expected: Address) -> None:
    assert parse_address(text) == expected
    assert parse_address(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "bank",
            "bank:8080",
            "unix:run.sock",
            "ftp://bank",
            "http://",
            "http:bank",
            "http://bank:0",
            "http://bank:99999",
        ),
        *(
            "http://bank:x",
            "http://a/b",
            "http://user@bank",
            "http://bank\r\nX: y",
            "http://b ank",
            "http://ü",
            "http://bank?x",
        ),
    ],
)
def test_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_address(text, field="--server")
    assert raised.value.field == "--server"


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        assert parse_address(text).host.isascii()
    except InvalidInput:
        pass


# --- requests ---


@given(st.dictionaries(st.text(min_size=1).filter(str.isprintable), st.text()))
def test_query_is_decoded_by_the_standard_library(query: dict[str, str]) -> None:
    target = target_of("/alloc", query)
    assert target.isascii()
    assert target.isprintable()
    assert dict(parse_qsl(target.partition("?")[2], keep_blank_values=True)) == query


def test_none_is_omitted_from_the_query() -> None:
    assert (
        target_of("/alloc", {"account": None, "all": True, "limit": 5}) == "/alloc?all=true&limit=5"
    )
    assert target_of("/alloc", {"account": None}) == "/alloc"


@given(st.text())
def test_quoted_text_is_decoded_by_the_standard_library(text: str) -> None:
    assert unquote(quoted(text)) == text


# --- sockets ---


@contextmanager
def serve_once(answer: bytes) -> Iterator[tuple[Address, Callable[[], bytes]]]:
    """Listen, read one request and send `answer`."""
    with (
        tempfile.TemporaryDirectory(prefix="fb-cl-", dir="/tmp") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        path = f"{folder}/s"
        listener.bind(path)
        listener.listen()
        requests: list[bytes] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                request = b""
                while b"\r\n\r\n" not in request or len(request) < _expected_size(request):
                    request += connection.recv(65_536)
                requests.append(request)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()

        def received() -> bytes:
            thread.join()
            return requests[0]

        yield Address("unix", path), received


def _expected_size(request: bytes) -> int:
    head, _, _ = request.partition(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    ]
    return len(head) + 4 + sum(lengths)


def ok(body: object) -> bytes:
    text = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text


def test_request_has_the_expected_headers() -> None:
    with serve_once(ok({"data": 1})) as (address, received):
        client = Client(address, signer=TokenSigner("fbk_x"), acting_as="ayla")
        assert client.post("/alloc/1/deposit", {"amount": 60, "comment": "ü"}, key="k-1") == {
            "data": 1
        }
        head, _, body = received().partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    assert lines[0] == "POST /alloc/1/deposit HTTP/1.1"
    assert {
        "Idempotency-Key: k-1",
        "X-Fairbank-As: ayla",
        "Authorization: Bearer fbk_x",
        "Content-Type: application/json",
    } <= set(lines)
    assert json.loads(body) == {"amount": 60, "comment": "ü"}


def test_get_has_no_content_headers() -> None:
    with serve_once(ok({"data": []})) as (address, received):
        Client(address).get("/project", {"gname": "a b"})
        head = received().decode("ascii")
    assert head.startswith("GET /project?gname=a%20b HTTP/1.1\r\nHost: localhost\r\n")
    assert not any(
        word in head for word in ("Authorization", "Idempotency", "X-Fairbank-As", "Content-")
    )


@pytest.mark.parametrize("user", ["x\r\nX-Evil: 1", "ü", "\x00"])
def test_header_value_with_line_break_is_refused(user: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be sent"):
        Client(Address("unix", "/run/bank.sock"), acting_as=user).get("/whoami")


def test_response_before_the_body_was_read_is_returned() -> None:
    problem = {"title": "invalid input", "status": 413, "detail": "the body is too large"}
    text = json.dumps(problem).encode()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(
                    b"HTTP/1.1 413 X\r\nContent-Length: %d\r\n\r\n" % len(text) + text
                )
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 20):
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(InvalidInput, match="too large"):
            Client(Address("http", "127.0.0.1", listener.getsockname()[1])).post(
                "/job/bulk", {"reports": ["x" * 100] * 100_000}
            )
        thread.join()


def test_missing_bank_is_unreachable() -> None:
    with pytest.raises(Unavailable, match="no bank answers at unix:/nowhere/bank.sock") as raised:
        Client(Address("unix", "/nowhere/bank.sock")).get("/health")
    assert exit_code(raised.value) == 6
    assert "fairbank serve" in str(raised.value.remedy)
    assert "FAIRBANK_SERVER" in str(raised.value.remedy)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64, ".."])
def test_unknown_host_is_unreachable(host: str) -> None:
    with pytest.raises(Unavailable):
        Client(Address("http", host, 80)).get("/health")


def test_too_long_socket_path_is_unreachable() -> None:
    with pytest.raises(Unavailable, match="too long"):
        Client(Address("unix", "/" + "x" * 200)).get("/health")


def test_silent_bank_times_out() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="fb-cl-", dir="/tmp") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        listener.bind(f"{folder}/s")
        listener.listen()
        with pytest.raises(Unavailable, match="in time"):
            Client(Address("unix", f"{folder}/s"), timeout_seconds=0.05).get("/health")


def test_munge_signs_each_request_separately(munged: Munged) -> None:
    signer = MungeSigner("bank", socket=str(munged.socket), library=str(munged.libmunge))
    first, second = (signer.authorization("GET", "/whoami", b"", None, None) for _ in range(2))
    assert first.startswith("Munge MUNGE:")
    assert first != second
    assert "/whoami" in munged.decode(first.removeprefix("Munge ")).stdout
