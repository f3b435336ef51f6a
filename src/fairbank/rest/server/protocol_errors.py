"""Responses to requests that reach no application: problems, after which the connection closes."""

from __future__ import annotations

from collections.abc import Iterable

import httptools
import msgspec

from fairbank.rest.problems import PROBLEM_JSON, problem_of

HEAD_MAX = 65_536  # bytes: a MUNGE credential of 16 KiB and generous space for the rest
_RFC = "send HTTP/1.1 as RFC 9112 has it; over TLS only to a proxy"


def _response(
    status: int,
    phrase: str,
    title: str,
    detail: str,
    remedy: str,
    *,
    field: str | None = None,
    headers: Iterable[str] = (),
) -> bytes:
    body = msgspec.json.encode(problem_of(title, status, detail, remedy, field)) + b"\n"
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        f"content-type: {PROBLEM_JSON}",
        f"content-length: {len(body)}",
        "connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _malformed(detail: str, remedy: str, field: str | None = None) -> bytes:
    return _response(400, "Bad Request", "invalid input", detail, remedy, field=field)


def parse_error(error: BaseException | None, before: Iterable[tuple[bytes, bytes]] | None) -> bytes:
    """Return the response to data that is not HTTP.

    Args:
        before: headers of the complete request right before it on the connection, if any. Then the
            data is probably a body whose length was not sent, or was sent too small.
    """
    if before is not None and isinstance(error, httptools.HttpParserInvalidMethodError):
        announced = any(name in _LENGTH_HEADERS for name, _ in before)
        return _LONGER_BODY if announced else _UNANNOUNCED_BODY
    if isinstance(error, httptools.HttpParserCallbackError):  # uvicorn parses the address in one
        return _BAD_ADDRESS
    reason = str(error) if isinstance(error, httptools.HttpParserError) else ""
    field = next((name for name in ("Transfer-Encoding", "Content-Length") if name in reason), None)
    return _malformed(
        f"this is not HTTP/1.1: {reason}" if reason else "this is not HTTP/1.1", _RFC, field
    )


_LENGTH_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
_UNANNOUNCED_BODY = _malformed(
    "there is data after the request, which announced no body",
    "announce a body by Content-Length, or Transfer-Encoding: chunked; or send nothing after the"
    " request",
    "Content-Length",
)
_LONGER_BODY = _malformed(
    "there is data after the request: its body is longer than announced",
    "send the length of the body in bytes as Content-Length; or send nothing after it",
    "Content-Length",
)
_BAD_ADDRESS = _malformed(
    "the address of the request cannot be read",
    "send a path and a query, such as /health; /docs lists all",
)
OTHER_VERSION = _malformed("this is another version of HTTP than 1.1", _RFC)
TRUNCATED = _malformed("the request ended before it was complete", "send it again, complete")
NO_UPGRADE = _malformed(
    "the header Upgrade asks for a protocol that the server does not support",
    "leave Upgrade out; the server supports HTTP/1.1",
    "Upgrade",
)
NO_PROXY = _malformed(
    "CONNECT asks for a tunnel, and this is not a proxy", "use GET, POST, PUT, PATCH or DELETE"
)
TOO_SLOW = _response(
    408,
    "Request Timeout",
    "request timeout",
    "the request did not arrive in time",
    "send it again, complete",
)
HEAD_TOO_LARGE = _response(
    431,
    "Request Header Fields Too Large",
    "request header fields too large",
    f"address and headers together have more than {HEAD_MAX} bytes",
    "send fewer or shorter headers",
)
_BUSY = (503, "Service Unavailable", "busy")
_RETRY = "try again in 1 s; the request was not carried out"
_RETRY_AFTER = ("retry-after: 1",)
TOO_MANY_CONNECTIONS = _response(
    *_BUSY, "too many connections are open", _RETRY, headers=_RETRY_AFTER
)
TOO_MANY_OF_YOUR_CONNECTIONS = _response(
    *_BUSY,
    "you have too many connections open",
    f"use the open ones, or {_RETRY}",
    headers=_RETRY_AFTER,
)
