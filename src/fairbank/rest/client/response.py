"""One HTTP/1.1 response, read from the pieces in which it arrives. No socket here."""

from __future__ import annotations

from collections.abc import Iterable

from fairbank.core.errors import Unavailable

HEAD_MAX = 65_536
"""Bytes of all heads and trailers of a response together, those of 1xx included."""
BODY_MAX = 256 * 1024 * 1024
CHECK = "check --server or FAIRBANK_SERVER"


def read_response(pieces: Iterable[bytes]) -> tuple[int, bytes]:
    """The status and the body. Raises Unavailable when the response is cut short, endless, or no HTTP."""
    stream = _Stream(pieces)
    while True:
        status, headers = _read_head(stream)
        if status >= 200:  # before it there may be some 1xx
            break
    if status in (204, 304):
        return status, b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return status, _read_chunks(stream)
    length = headers.get("content-length")
    return status, stream.rest() if length is None else stream.exactly(_size(length, 10))


class _Stream:
    """Bytes that arrive in pieces, taken by line or by count."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._kept = bytearray()
        self._head_left = HEAD_MAX

    def head_line(self) -> str:
        """A line of a head or of the trailers. Raises Unavailable when these are too long in all."""
        line = self.line()
        self._head_left -= len(line) + 1
        if self._head_left < 0:
            raise _not_http()
        return line

    def line(self) -> str:
        while (end := self._kept.find(b"\n")) < 0:
            if len(self._kept) > HEAD_MAX:
                raise _not_http()
            self._more()
        line = bytes(self._kept[:end]).rstrip(b"\r").decode("latin-1")
        del self._kept[: end + 1]
        return line

    def exactly(self, count: int) -> bytes:
        while len(self._kept) < count:
            self._more()
        taken = bytes(self._kept[:count])
        del self._kept[:count]
        return taken

    def rest(self) -> bytes:
        for piece in self._pieces:
            self._kept += piece
            _checked(len(self._kept))
        return bytes(self._kept)

    def _more(self) -> None:
        piece = next(self._pieces, b"")
        if not piece:
            raise Unavailable("the bank's answer was cut short", remedy="try again")
        self._kept += piece


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
        _checked(len(body) + framing)
    while stream.head_line():
        pass
    return bytes(body)


def _size(text: str, base: int) -> int:
    try:
        return _checked(int(text, base))
    except ValueError as bad:
        raise _not_http() from bad


def _checked(size: int) -> int:
    if size < 0:
        raise _not_http()
    if size > BODY_MAX:
        raise Unavailable(
            f"the bank's answer is longer than {BODY_MAX} bytes",
            remedy="ask for less at a time, with --limit",
        )
    return size


def _not_http() -> Unavailable:
    return Unavailable("what answers there is not a bank", field="server", remedy=CHECK)
