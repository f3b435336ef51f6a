"""Parser of one HTTP/1.1 response, from the pieces in which it arrives."""

from __future__ import annotations

from collections.abc import Iterable

from fairbank.core.errors import Unavailable

HEAD_MAX = 65_536
"""Maximum of bytes of all heads and trailers of a response together, those of 1xx included."""
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
            raise Unavailable("the bank's response is truncated", remedy="try again")
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


def _not_http() -> Unavailable:
    return Unavailable("the server is not a bank", field="server", remedy=CHECK)
