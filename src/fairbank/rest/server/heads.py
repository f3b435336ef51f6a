"""Heads that were read before: an agent sends the same few before each of its reports, and the same bytes say the same again.

To parse a head, call by call into Python, takes as long as to read the report after it. So of requests that went by express the head
is kept as it came, and found by its bytes. A head that differs in any byte is parsed, as is all that does not come in one piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MOST = 1_000
LENGTH_MAX = 1_024
BODY_MAX = 32_768

_END = b"\r\n\r\n"


class Head(NamedTuple):
    """What uvicorn made of a head, and how long the body is that it announces."""

    scope: Mapping[str, Any]
    body: int


class Heads:
    """The heads of one server, whoever sent them first. When there are too many (somebody makes them up) it begins again."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[bytes, Head] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """The head that `data` begins with, and the rest: its body. None unless the head is known and the body there, whole and alone."""
        begin = data.find(_END, 0, LENGTH_MAX) + len(_END)
        head = self._known.get(data[:begin])
        return None if head is None or len(data) - begin != head.body else (head, data[begin:])

    def learn(self, data: bytes, cycle: RequestResponseCycle) -> None:
        """Keep the head of `data`, which came after whole requests and was parsed as that of `cycle`, if there is nothing else in it."""
        begin = data.find(_END, 0, LENGTH_MAX) + len(_END)
        lengths = [value for name, value in cycle.scope["headers"] if name == b"content-length"]
        if len(lengths) != 1 or begin < len(_END) or not cycle.keep_alive:
            return
        if int(lengths[0]) == len(data) - begin == len(cycle.body) <= BODY_MAX:
            if len(self._known) >= self._most:
                self._known.clear()
            self._known[data[:begin]] = Head(dict(cycle.scope), len(cycle.body))


def again(
    protocol: HttpToolsProtocol, extensions: Mapping[str, Any], head: Head, body: bytes
) -> RequestResponseCycle:
    """A request with this head and body on the connection of `protocol`, as uvicorn makes it of what it parsed."""
    scope: Any = {
        **head.scope,
        "server": protocol.server,
        "client": protocol.client,
        "scheme": protocol.scheme,
        "headers": [*head.scope["headers"]],
        "state": protocol.app_state.copy(),
        "extensions": extensions,
    }
    cycle = RequestResponseCycle(
        scope=scope,
        transport=protocol.transport,
        flow=protocol.flow,
        logger=protocol.logger,
        access_logger=protocol.access_logger,
        access_log=protocol.access_log,
        default_headers=protocol.server_state.default_headers,
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=True,
        on_response=protocol.on_response_complete,
    )
    cycle.body += body
    cycle.more_body = False
    cycle.message_event.set()
    return cycle
