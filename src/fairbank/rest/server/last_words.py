"""What is said before the server hangs up: to requests that no application has seen, in the shape that all problems have."""

from __future__ import annotations

from collections.abc import Iterable

import httptools
import msgspec

from fairbank.rest.bodies.answers import Problem
from fairbank.rest.problems import PROBLEM_JSON

HEAD_MAX = 65_536  # bytes: a MUNGE credential of 16 KiB and much else
_RFC = "send HTTP/1.1 as RFC 9112 has it; over TLS only to a proxy"


def last_word(
    status: int,
    phrase: str,
    title: str,
    detail: str,
    remedy: str,
    *,
    field: str | None = None,
    headers: Iterable[str] = (),
) -> bytes:
    """A problem, and the end of the connection."""
    problem = Problem(
        type=f"/problem/{title.replace(' ', '-')}",
        title=title,
        status=status,
        detail=detail,
        field=field,
        remedy=remedy,
    )
    body = msgspec.json.encode(problem)
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        f"content-type: {PROBLEM_JSON}",
        f"content-length: {len(body)}",
        "connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def malformed(detail: str, remedy: str, field: str | None = None) -> bytes:
    """What cannot be read."""
    return last_word(400, "Bad Request", "invalid input", detail, remedy, field=field)


def not_http(error: BaseException | None, before: Iterable[tuple[bytes, bytes]] | None) -> bytes:
    """What the parser stumbled over, `error`; `before` are the headers of the request right before it on the same connection.

    Where a request should begin and none does, somebody sent a body and did not say so, or said a smaller length.
    """
    if before is not None and isinstance(error, httptools.HttpParserInvalidMethodError):
        return _LONGER if any(name in _ANNOUNCING for name, _ in before) else _UNANNOUNCED
    if isinstance(
        error, httptools.HttpParserCallbackError
    ):  # uvicorn takes the address apart in one
        return _NO_ADDRESS
    reason = str(error) if isinstance(error, httptools.HttpParserError) else ""
    field = next((each for each in ("Transfer-Encoding", "Content-Length") if each in reason), None)
    return malformed(
        f"this is not HTTP/1.1: {reason}" if reason else "this is not HTTP/1.1", _RFC, field
    )


_ANNOUNCING = frozenset({b"content-length", b"transfer-encoding"})
_UNANNOUNCED = malformed(
    "bytes follow the request that are no request: it did not say that it has a body",
    "announce a body by Content-Length, or Transfer-Encoding: chunked; or send nothing after the request",
    "Content-Length",
)
_LONGER = malformed(
    "bytes follow the request that are no request: its body is longer than it said",
    "say the length of the body in bytes, as Content-Length; or send nothing after it",
    "Content-Length",
)
_NO_ADDRESS = malformed(
    "the address of the request cannot be read",
    "send a path and a query, such as /health; /docs lists all",
)
NOT_OURS = malformed("this is another version of HTTP than 1.1", _RFC)
CUT_SHORT = malformed("the request ended before it was whole", "send it again, whole")
NO_UPGRADE = malformed(
    "the header Upgrade asks for another protocol, and there is none here",
    "leave Upgrade out; HTTP/1.1 is spoken here",
    "Upgrade",
)
NO_PROXY = malformed(
    "CONNECT asks for a tunnel, and this is no proxy",
    "ask the bank by GET, POST, PUT, PATCH or DELETE",
)
TOO_SLOW = last_word(
    408,
    "Request Timeout",
    "request timeout",
    "the request did not arrive in time",
    "send it again, whole",
)
TOO_LARGE = last_word(
    431,
    "Request Header Fields Too Large",
    "request header fields too large",
    f"address and headers together have more than {HEAD_MAX} bytes",
    "send fewer or shorter headers",
)
_BUSY = (503, "Service Unavailable", "busy")
_NOT_DONE = "try again in 1 s; the request was not carried out"
_SOON = ("retry-after: 1",)
TOO_MANY = last_word(*_BUSY, "too many connections are open", _NOT_DONE, headers=_SOON)
TOO_MANY_OF_YOURS = last_word(
    *_BUSY,
    "you have too many connections open",
    f"use those that you have, or {_NOT_DONE}",
    headers=_SOON,
)
