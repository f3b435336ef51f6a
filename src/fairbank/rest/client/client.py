"""Asking the bank: one JSON request, one JSON answer, over the Unix socket or TCP.

HTTP/1.1 is spoken here by hand, as far as the bank uses it: importing `http.client` costs 19 ms of CPU at every start (it brings
`email`), as much as argparse, json and socket together. One request a connection; no redirects, no proxies, no cookies.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress

from fairbank import __version__
from fairbank.core.errors import InvalidInput
from fairbank.rest.client.address import HTTP, UNIX, Address
from fairbank.rest.client.answers import Json, read_answer, unreachable
from fairbank.rest.client.response import read_response
from fairbank.rest.client.signers import Signer

_AGENT = f"fairbank/{__version__}"


class Client:
    """Asks one bank. Raises Unavailable when nobody answers, Refused when the bank says no, and whatever FairbankError the bank had."""

    def __init__(
        self,
        address: Address,
        *,
        signer: Signer | None = None,
        acting_as: str | None = None,
        timeout_seconds: float = 60,
    ) -> None:
        self.address = address
        self._signer = signer or Signer()
        self._acting_as = acting_as
        self._timeout_seconds = timeout_seconds

    def get(self, path: str, query: Mapping[str, object] | None = None) -> dict[str, Json]:
        """Read. Parts of the query that are None are left out."""
        return self._ask("GET", target_of(path, query))

    def post(self, path: str, body: Json, key: str | None = None) -> dict[str, Json]:
        """Write. The same `key` again gets the same answer and changes nothing more. Bytes are sent as they are: JSON already."""
        return self._ask("POST", path, body, key)

    def put(self, path: str, body: Json, key: str | None = None) -> dict[str, Json]:
        return self._ask("PUT", path, body, key)

    def patch(self, path: str, body: Json, key: str | None = None) -> dict[str, Json]:
        return self._ask("PATCH", path, body, key)

    def delete(self, path: str, key: str | None = None) -> dict[str, Json]:
        return self._ask("DELETE", path, key=key)

    def _ask(
        self, method: str, target: str, body: Json = None, key: str | None = None
    ) -> dict[str, Json]:
        sent = (
            body
            if isinstance(body, bytes)
            else b""
            if body is None
            else json.dumps(body).encode("ascii")
        )
        headers = {
            "Host": self.address.host,
            "User-Agent": _AGENT,
            "Accept": "application/json",
            "Connection": "close",
            "Content-Type": "application/json" if body is not None else None,
            "Content-Length": str(len(sent)) if method != "GET" else None,
            "Idempotency-Key": key,
            "X-Fairbank-As": self._acting_as,
            "Authorization": self._signer.authorization(method, target, sent, self._acting_as, key),
        }
        status, answer = self._exchange(_head(method, target, headers) + sent)
        return read_answer(status, answer, self.address)

    def _exchange(self, request: bytes) -> tuple[int, bytes]:
        try:
            with _connect(self.address, self._timeout_seconds) as wire:
                with suppress(
                    BrokenPipeError, ConnectionResetError
                ):  # a bank that will not read it all may have answered first
                    wire.sendall(request)
                return read_response(iter(lambda: wire.recv(65_536), b""))
        except OSError as error:
            raise unreachable(self.address, error) from error


def _head(method: str, target: str, headers: Mapping[str, str | None]) -> bytes:
    for name, value in headers.items():
        if value is not None and not (value.isascii() and value.isprintable()):
            raise InvalidInput(
                f"{value[:64]!r} cannot be sent to the bank",
                field=name,
                remedy="use printable ASCII",
            )
    lines = [
        f"{method} {target} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items() if value is not None),
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


_UNQUOTED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def quoted(text: str) -> str:
    """Percent-encode all but RFC 3986's unreserved characters. (`urllib.parse` would cost 7 ms of CPU.)"""
    return "".join(
        chr(byte) if byte in _UNQUOTED else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def target_of(path: str, query: Mapping[str, object] | None = None) -> str:
    """Path and query as they go over the wire: None is left out, a truth is `true` or `false`."""
    text = "&".join(
        f"{quoted(name)}={quoted(_said(value))}"
        for name, value in (query or {}).items()
        if value is not None
    )
    return f"{path}?{text}" if text else path


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _connect(address: Address, timeout_seconds: float) -> socket.socket:
    if address.scheme == UNIX:
        return _connected(
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), address.place, timeout_seconds
        )
    host = address.place.encode(
        "ascii"
    )  # as text it would make Python load its IDNA codec, and fail there for odd names
    wire = socket.create_connection((host, address.port), timeout_seconds)  # type: ignore[arg-type]
    return wire if address.scheme == HTTP else _sealed(wire, address.place)


def _connected(wire: socket.socket, path: str, timeout_seconds: float) -> socket.socket:
    try:
        wire.settimeout(timeout_seconds)
        wire.connect(path)
    except BaseException:
        wire.close()
        raise
    return wire


def _sealed(wire: socket.socket, host: str) -> socket.socket:
    import ssl  # noqa: PLC0415  10 ms of CPU that only https pays

    try:
        return ssl.create_default_context().wrap_socket(wire, server_hostname=host)
    except BaseException:
        wire.close()
        raise
