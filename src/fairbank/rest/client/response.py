"""Responses of the bank: one HTTP/1.1 response as JSON data, or a problem as an exception."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fairbank.core.errors import (
    Conflict,
    Corrupt,
    FairbankError,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from fairbank.rest.client.address import Address

HEAD_MAX = 65_536
"""Maximum of bytes of all header and trailer sections of a response, those of 1xx included."""
BODY_MAX = 256 * 1024 * 1024
CHECK = "check --server or FAIRBANK_SERVER"


def read_response(pieces: Iterable[bytes]) -> tuple[int, bytes]:
    """Return the status and the body; raise Unavailable if the response is truncated, too long or
    not HTTP.
    """
    stream = _Stream(pieces)
    while True:
        status, headers = _read_head(stream)
        if status >= 200:  # responses 1xx may precede it
            break
    if status in (204, 304):
        return status, b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return status, _read_chunks(stream)
    length = headers.get("content-length")
    return status, stream.rest() if length is None else stream.exactly(_size(length, 10))


class _Stream:
    """Bytes that arrive in pieces, read by line or by number."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._buffer = bytearray()
        self._head_left = HEAD_MAX

    def head_line(self) -> str:
        """Return a line of a head or of trailers; raise Unavailable if all are too long."""
        line = self.line()
        self._head_left -= len(line) + 1
        if self._head_left < 0:
            raise _not_http()
        return line

    def line(self) -> str:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > HEAD_MAX:
                raise _not_http()
            self._receive()
        line = bytes(self._buffer[:end]).rstrip(b"\r").decode("latin-1")
        del self._buffer[: end + 1]
        return line

    def exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._receive()
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def rest(self) -> bytes:
        for piece in self._pieces:
            self._buffer += piece
            _check_size(len(self._buffer))
        return bytes(self._buffer)

    def _receive(self) -> None:
        piece = next(self._pieces, b"")
        if not piece:
            raise NotABank("the bank's response is truncated", remedy="try again")
        self._buffer += piece


def _read_head(stream: _Stream) -> tuple[int, dict[str, str]]:
    version, _, rest = stream.head_line().partition(" ")
    if not version.startswith("HTTP/1.") or not (rest[:3].isascii() and rest[:3].isdigit()):
        raise _not_http()
    headers: dict[str, str] = {}
    while line := stream.head_line():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(rest[:3]), headers


def _read_chunks(stream: _Stream) -> bytes:
    body, framing = bytearray(), 0
    while size := _size((line := stream.line()).partition(";")[0].strip(), 16):
        body += stream.exactly(size)
        if stream.line():
            raise _not_http()
        framing += len(line)
        _check_size(len(body) + framing)
    while stream.head_line():
        pass
    return bytes(body)


def _size(text: str, base: int) -> int:
    try:
        return _check_size(int(text, base))
    except ValueError as bad:
        raise _not_http() from bad


def _check_size(size: int) -> int:
    if size < 0:
        raise _not_http()
    if size > BODY_MAX:
        raise Unavailable(
            f"the bank's response is longer than {BODY_MAX} bytes",
            remedy="request fewer rows, with --limit",
        )
    return size


class NotABank(Unavailable):
    """A server that did not answer as a bank does."""


def _not_http() -> NotABank:
    return NotABank("the server is not a bank", field="server", remedy=CHECK)


Json = Any
"""A value in a JSON document."""


class Refused(FairbankError):
    """A refusal of the bank.

    `status` is the HTTP status. `refusal` has the amounts in SU-minutes (requested, available,
    shortfall, ...) and the remedies.
    """

    def __init__(self, message: str, status: int, refusal: Mapping[str, Json]) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = refusal

    @property
    def remedies(self) -> list[str]:
        """Remedies, the best one first."""
        remedies = self.refusal.get("remedies")
        return [str(remedy) for remedy in remedies] if isinstance(remedies, list) else []


def read_answer(status: int, body: bytes, address: Address) -> dict[str, Json]:
    """Return the JSON object of a successful response.

    Args:
        status: HTTP status.
        address: the bank's address, for messages.

    Raises:
        Refused: the bank refused.
        FairbankError: the error of the problem document.
    """
    try:
        answer = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise NotABank(
            f"the server at {address} is not a bank (status {status})", field="server", remedy=CHECK
        )
    if 200 <= status < 300:
        return answer
    raise error_of(status, answer)


_BY_TITLE: Mapping[str, type[FairbankError]] = {
    kind.title: kind
    for kind in (InvalidInput, Unauthenticated, Forbidden, NotFound, Conflict, Unavailable, Corrupt)
}
_BY_STATUS: Mapping[int, type[FairbankError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def error_of(status: int, problem: Mapping[str, Json]) -> FairbankError:
    """Return the error, or the refusal, in a problem document of this status."""
    detail = (
        _text(problem, "detail")
        or _text(problem, "title")
        or f"the bank answered with status {status}"
    )
    refusal = problem.get("refusal")
    if isinstance(refusal, dict):
        refused = Refused(detail, status, refusal)
        refused.bank = _text(problem, "bank")
        return refused
    kind = (
        _BY_TITLE.get(_text(problem, "title") or "")
        or _BY_STATUS.get(status)
        or (InvalidInput if status < 500 else FairbankError)
    )
    remedy = _text(problem, "remedy") or ("try again in a moment" if kind is Unavailable else None)
    error = kind(detail, field=_text(problem, "field"), remedy=remedy)
    error.is_answer, error.bank = True, _text(problem, "bank")
    return error


def _text(problem: Mapping[str, Json], name: str) -> str | None:
    value = problem.get(name)
    return str(value) if value else None
