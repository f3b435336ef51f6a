"""HTTP client of a bank: one JSON request and one JSON response per connection.

It implements HTTP/1.1 as far as the bank uses it: no redirects, no proxies, no cookies. Importing
`http.client` would take 19 ms of CPU at each start, as much as argparse, json and socket together.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress

from fairbank import __version__
from fairbank.core.errors import InvalidInput, Unavailable
from fairbank.rest.client.address import HTTP, UNIX, Address
from fairbank.rest.client.response import Json, NotABank, read_answer, read_response
from fairbank.rest.client.signers import Signer

_AGENT = f"fairbank/{__version__}"


class Client:
    """Client of one bank, over a Unix socket or TCP.

    Each method raises Unavailable if no bank answers, Refused for a refusal, and otherwise the
    error that the bank reports.
    """

    def __init__(
        self,
        address: Address,
        *,
        signer: Signer | None = None,
        acting_as: str | None = None,
        timeout_seconds: float = 60,
        bank_file: str | None = None,
        on_answer: Callable[[Mapping[str, Json]], None] | None = None,
    ) -> None:
        """Create a client.

        Args:
            signer: authenticates the requests; default: the kernel does, on the Unix socket.
            acting_as: user for X-Fairbank-As.
            timeout_seconds: for each operation on the socket.
            bank_file: settings of the bank if they name the address; the error names them.
            on_answer: called with each answer that is no error.
        """
        self.address = address
        self._signer = signer or Signer()
        self.acting_as = acting_as
        self._timeout_seconds, self._bank_file = timeout_seconds, bank_file
        self._on_answer = on_answer

    def get(self, path: str, query: Mapping[str, object] | None = None) -> dict[str, Json]:
        """Send a GET. Parameters that are None are omitted."""
        return self._send("GET", target_of(path, query))

    def post(self, path: str, body: Json, key: str | None = None) -> dict[str, Json]:
        """Send a POST.

        Args:
            body: a JSON value, or bytes that are JSON already.
            key: idempotency key: a repeated request gets the same response and changes nothing.
        """
        return self._send("POST", path, body, key)

    def put(self, path: str, body: Json, key: str | None = None) -> dict[str, Json]:
        """Send a PUT (arguments: `post`)."""
        return self._send("PUT", path, body, key)

    def patch(self, path: str, body: Json, key: str | None = None) -> dict[str, Json]:
        """Send a PATCH (arguments: `post`)."""
        return self._send("PATCH", path, body, key)

    def delete(self, path: str, key: str | None = None) -> dict[str, Json]:
        return self._send("DELETE", path, key=key)

    def _send(
        self, method: str, target: str, body: Json = None, key: str | None = None
    ) -> dict[str, Json]:
        if isinstance(body, bytes):
            content = body
        else:
            content = b"" if body is None else json.dumps(body).encode("ascii")
        acting_as = self.acting_as
        try:
            signed = self._signer.authorization(method, target, content, acting_as, key)
        except Unavailable:
            # Where no bank answers at all, to start munged would not help.
            self._exchange(_head("GET", "/health", self._common_headers()))
            raise
        headers = {
            **self._common_headers(),
            "Content-Type": "application/json" if body is not None else None,
            "Content-Length": str(len(content)) if method != "GET" else None,
            "Idempotency-Key": key,
            "X-Fairbank-As": acting_as,
            "Authorization": signed,
        }
        answer = self._exchange(_head(method, target, headers) + content)
        if self._on_answer is not None:
            self._on_answer(answer)
        return answer

    def _common_headers(self) -> dict[str, str | None]:
        return {
            "Host": self.address.host,
            "User-Agent": _AGENT,
            "Accept": "application/json",
            "Connection": "close",
        }

    def _exchange(self, request: bytes) -> dict[str, Json]:
        try:
            return read_answer(*self._send_bytes(request), self.address)
        except NotABank:
            from fairbank.rest.client import connection_errors  # noqa: PLC0415  as below

            if self.address.scheme == HTTP and connection_errors.is_tls_server(self.address):
                raise connection_errors.tls_port(self.address) from None
            raise

    def _send_bytes(self, request: bytes) -> tuple[int, bytes]:
        try:
            with _connect(self.address, self._timeout_seconds) as connection:
                # A bank that refuses to read the whole request may have answered before.
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(request)
                return read_response(iter(lambda: connection.recv(65_536), b""))
        except OSError as error:
            # Only errors need it.
            from fairbank.rest.client.connection_errors import unreachable  # noqa: PLC0415

            raise unreachable(self.address, error, self._bank_file) from error


def _head(method: str, target: str, headers: Mapping[str, str | None]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if value is None:
            continue
        if not (value.isascii() and value.isprintable()):
            raise InvalidInput(
                f"{value[:64]!r} cannot be sent to the bank",
                field=name,
                remedy="use printable ASCII",
            )
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


_UNQUOTED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def percent_encode(text: str) -> str:
    """Percent-encode all but RFC 3986's unreserved characters.

    Importing `urllib.parse` would take 7 ms of CPU at each start.
    """
    return "".join(
        chr(byte) if byte in _UNQUOTED else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def target_of(path: str, query: Mapping[str, object] | None = None) -> str:
    """Return path and query as they are sent: None is omitted, booleans are `true` or `false`, and
    the values of a list are sent one by one.
    """
    text = "&".join(
        f"{percent_encode(name)}={percent_encode(_parameter(one))}"
        for name, value in (query or {}).items()
        if value is not None
        for one in (dict.fromkeys(value) if isinstance(value, list) else [value])
    )
    return f"{path}?{text}" if text else path


def _parameter(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _connect(address: Address, timeout_seconds: float) -> socket.socket:
    if address.scheme == UNIX:
        return _connect_unix(address.place, timeout_seconds)
    # As bytes: for text, Python loads its IDNA codec, which fails for unusual names.
    host = (address.place.encode("ascii"), address.port)
    connection = socket.create_connection(host, timeout_seconds)  # type: ignore[arg-type]
    return connection if address.scheme == HTTP else _start_tls(connection, address.place)


def _connect_unix(path: str, timeout_seconds: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_seconds)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _start_tls(connection: socket.socket, host: str) -> socket.socket:
    import ssl  # noqa: PLC0415  10 ms of CPU that only https needs

    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise
