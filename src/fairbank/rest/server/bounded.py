"""A largest head and a longest time for each request, and nothing but HTTP."""

from __future__ import annotations

import asyncio
import sys

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fairbank.rest.server import last_words
from fairbank.rest.server.last_words import HEAD_MAX
from fairbank.rest.server.parting import Parting

HEAD_SECONDS = 5.0
RECEIVE_SECONDS = 30.0
_AS_BEFORE = b"h2c"  # clients that offer it go on in HTTP/1.1 where it is not taken up


class _Unread(Exception):
    """Stops the parser in the middle of a head; uvicorn then calls `send_400_response`."""


class Bounded(Parting):
    """uvicorn's HTTP with a largest head and a longest time to send a request.

    httptools keeps a header of any size in memory, and uvicorn waits for ever for a request that never ends. A connection that
    says nothing, or no whole head, is given up after `head_seconds`, one whose body does not end after `receive_seconds`.
    """

    head_max = HEAD_MAX
    head_seconds = HEAD_SECONDS
    receive_seconds = RECEIVE_SECONDS

    _head = 0  # bytes of this request's line and headers, trailers too
    _in_head = True
    _unparsed = (
        0  # bytes since the parser last gave us something: one endless header, or chunk extension
    )
    _deadline: asyncio.TimerHandle | None = None
    _begun: float | None = (
        None  # the seconds for a part that began in what is being parsed: most end in it too, and need no timer
    )
    _excused = False
    _why: bytes | None = None  # nothing is read on, where that is not the parser's doing

    def connection_lost(self, exc: Exception | None) -> None:
        self._received()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._head, self._unparsed, self._in_head, self._within = 0, 0, True, True
        self._begun = self.head_seconds
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 32)  # a header costs memory even when it is short
        if (
            self._in_head
        ):  # uvicorn would add trailers to the headers of a request that may be judged already
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed, self._in_head = 0, False
        self._begun = self.receive_seconds
        if not self.parser.get_http_version().startswith(
            "1."
        ):  # httptools reads those of 1991 and of 2015 too
            self._why = last_words.NOT_OURS
        elif self.parser.should_upgrade():
            self._why = self._objection()
        if self._why is not None:
            raise _Unread
        super().on_headers_complete()

    def _objection(self) -> bytes | None:
        """To what asks for another protocol: the parser takes the rest for that, so a body beside it is never read."""
        if self.parser.get_method() == b"CONNECT":
            return last_words.NO_PROXY
        bodiless = all(
            name not in (b"content-length", b"transfer-encoding") or value == b"0"
            for name, value in self.headers
        )
        return None if bodiless and self._get_upgrade() == _AS_BEFORE else last_words.NO_UPGRADE

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed, self._begun, self._within = 0, None, False
        self._received()
        super().on_message_complete()
        self.cycle.more_body = False  # uvicorn leaves it so where the answer came before the end

    def send_400_response(self, msg: str) -> None:
        if self._why is None:
            last: RequestResponseCycle | None = self.cycle
            before = last.scope["headers"] if last is not None and not last.more_body else None
            self._why = last_words.not_http(sys.exception(), before)
        self.hang_up(self._why)

    def _unsupported_upgrade_warning(self) -> None:
        """It is answered as if it had not asked, and is the last: uvicorn keeps none of what came after it, and would tell our log
        what to install for WebSockets."""
        self.cycle.keep_alive, self._farewell = False, b""

    def _wait_on(self) -> None:
        """For the rest of what has begun, unless no more is read."""
        if self._farewell is not None:
            return
        if self._begun is not None:
            self._expect(self._begun)
            self._begun = None
        if self._unparsed > self.head_max and not self.transport.is_closing():
            self.hang_up(last_words.TOO_LARGE)

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._head += size
        if self._head > self.head_max:
            self._why = last_words.TOO_LARGE
            raise _Unread

    def _expect(self, seconds: float) -> None:
        self._received()
        self._deadline = self.loop.call_later(seconds, self._late, seconds)

    def _received(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self, seconds: float) -> None:
        if (
            self.flow.read_paused or self._excused
        ):  # it is we who did not read; once we do again, a full time is due
            self._excused = self.flow.read_paused
            self._expect(seconds)
        else:
            self.hang_up(last_words.TOO_SLOW)
