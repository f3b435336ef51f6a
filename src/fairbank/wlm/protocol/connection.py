"""Connection between two daemons: frames in and out, the introduction, requests and answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, cast

from fairbank.core.errors import Unavailable
from fairbank.wlm.protocol.frames import BODY_MAX, VERSION, FrameDecoder, FrameError
from fairbank.wlm.protocol.messages import (
    ErrorMessage,
    Hello,
    Message,
    decode_message,
    encode_message,
)

HELLO_SECONDS = 10.0
UNREAD_MAX = 4 * 1024 * 1024  # bytes that a peer has not read; beyond, it is not read from
_SAME_RELEASE = "use the same release on both sides"

_log = logging.getLogger(__name__)


class ConnectionHandler(Protocol):
    """Handler of what happens on a connection."""

    def on_hello(self, connection: Connection, hello: Hello) -> None: ...

    def on_message(self, connection: Connection, message: Message, number: int) -> None: ...

    def on_close(self, connection: Connection) -> None: ...


class Connection(asyncio.Protocol):
    """Connection of either side. Only one of them sends requests: the numbers are its own.

    A peer that sends anything but frames, speaks no common version or does not introduce itself is
    disconnected with a log line. A peer that does not read is not read from.

    Invariant: `hello` is that of the peer, None before it has come; until then only a Hello may
    come, and `_timer` runs. `_answers` has the requests without an answer, by number, and
    `_last_number` is that of the last request.
    """

    def __init__(
        self,
        handler: ConnectionHandler,
        hello: Hello,
        is_allowed: Callable[[asyncio.BaseTransport], bool] = lambda _: True,
    ) -> None:
        self._handler, self._own_hello, self._is_allowed = handler, hello, is_allowed
        self._decoder = FrameDecoder()
        self._last_number = 0
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self.hello: Hello | None = None
        self.is_closed = False

    def send(self, message: Message, number: int = 0) -> None:
        """Send a message, or an answer to the request with this number."""
        if not self.is_closed:
            self._transport.write(encode_message(message, number))

    async def request(self, message: Message) -> Message:
        """Send a request and return the answer, also an ErrorMessage.

        Raises:
            Unavailable: the connection was closed before the answer came.
        """
        if self.is_closed:
            raise _no_answer()
        self._last_number = number = self._last_number + 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            self.send(message, number)
            return await answer
        finally:
            del self._answers[number]

    def close(self) -> None:
        """Send what waits, and close."""
        self.is_closed = True
        self._transport.close()

    # ------------------------------------------------------------------ called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = asyncio.get_running_loop().call_later(HELLO_SECONDS, self._time_out)
        if not self._is_allowed(transport):
            self._abort("the user of this process may not connect")
            return
        self._transport.set_write_buffer_limits(UNREAD_MAX)
        self.send(self._own_hello)

    def data_received(self, data: bytes) -> None:
        if self.is_closed:
            return
        try:
            for frame in self._decoder.decode(data):
                self._handle(decode_message(frame), frame.number)
        except FrameError as error:
            # The hello of another version may not even be readable.
            remedy = "" if self.hello else f"; {_SAME_RELEASE}"
            self._abort(f"the peer sent {error}{remedy}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        if self._decoder.is_within_frame and not self.is_closed:
            _log.warning("%s closed the connection within a frame", self._peer())
        self.is_closed = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(_no_answer())
        if self.hello is not None:
            self._handler.on_close(self)

    def pause_writing(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    # ------------------------------------------------------------------ messages

    def _handle(self, message: Message, number: int) -> None:
        if self.hello is None:
            self._introduce(message)
        elif isinstance(message, Hello):
            raise FrameError("a second hello")
        elif (answer := self._answers.get(number)) is not None:
            if not answer.done():
                answer.set_result(message)
        elif not 0 < number <= self._last_number:  # else the request was given up
            self._handler.on_message(self, message, number)

    def _introduce(self, message: Message) -> None:
        if isinstance(message, ErrorMessage):
            raise FrameError(f"an error: {message.message}")
        if not isinstance(message, Hello):
            raise FrameError("no hello")
        if VERSION not in message.versions:
            versions = ", ".join(map(str, message.versions))
            text = f"version {VERSION} of the protocol is spoken here, not version {versions}"
            self.send(ErrorMessage(kind="InvalidInput", message=text, remedy=_SAME_RELEASE))
            self._transport.close()
            raise FrameError(f"a hello of version {versions}")
        self._timer.cancel()
        self.hello = message
        self._decoder.body_max = BODY_MAX
        self._handler.on_hello(self, message)

    def _time_out(self) -> None:
        self._abort(f"the peer sent no hello within {HELLO_SECONDS:g} s")

    def _abort(self, why: str) -> None:
        _log.warning("%s: closed the connection: %s", self._peer(), why)
        self.is_closed = True
        if not self._transport.is_closing():  # else an error message is on its way
            self._transport.abort()

    def _peer(self) -> str:
        return f"{self.hello.role} {self.hello.name}" if self.hello else "an unknown process"


def _no_answer() -> Unavailable:
    return Unavailable("the connection was closed before the answer", remedy="send it again")
