"""Server of the commands: their socket, frames, the user behind a connection, errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, cast

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput
from fairbank.rest.auth.peers import Peer, is_own_user, peer_at
from fairbank.rest.server.unix_socket import bind_unix
from fairbank.unix_users import groups_of, user_name
from fairbank.wlm.controller.commands.submissions import Submitter
from fairbank.wlm.core.events import Caller
from fairbank.wlm.protocol.commands import AnyRequest, decode_request, encode_answer, encode_error
from fairbank.wlm.protocol.frames import BODY_MAX, Frame, FrameDecoder, FrameError

OPEN_REQUESTS_MAX = 100
"""Requests of one connection without an answer; beyond, no more are read."""
UNREAD_MAX = 4 * 1024 * 1024
"""Bytes that a command has not read; beyond, no more requests are read."""
BACKLOG = 4_096
"""Connections that may wait to be accepted."""
ACCEPTED_MAX = 100
"""Connections that are accepted before the first of them is handled."""
CONNECTIONS_MAX = 500
"""Open connections: a process may have 1,024 files by default."""

Answer = Callable[[AnyRequest, Submitter], Coroutine[None, None, Mapping[str, Any]]]
"""Function that answers a request, or raises the FairbankError that refuses it."""

_log = logging.getLogger(__name__)


class CommandConnection(asyncio.Protocol):
    """Connection of a command. Each frame is a request, and gets an answer with its number.

    Invariants: `_open` has the requests without an answer. The transport is read from while they
    are few and the answers have been read.
    """

    def __init__(self, answer: Answer, connections: dict[CommandConnection, None]) -> None:
        self._answer, self._connections = answer, connections
        self._decoder = FrameDecoder(BODY_MAX)
        self._open: set[asyncio.Task[None]] = set()
        self._has_unread = False

    @property
    def is_idle(self) -> bool:
        """True if it waits for no answer."""
        return not self._open

    def close(self) -> None:
        """Write what is answered, and close. What waits for an answer gets none."""
        self._transport.close()

    # ------------------------------------------------------------------ called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(UNREAD_MAX)
        self._make_space()
        self._connections[self] = None
        peer = peer_at(transport.get_extra_info("socket"))
        if peer is None or not is_own_user(transport):
            error = Forbidden("this is the cluster of another user", remedy="make your own")
            self._transport.write(encode_error(0, error))
            self._transport.close()
            return
        self._submitter = submitter(peer)

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        try:
            for frame in self._decoder.decode(data):
                task = asyncio.get_running_loop().create_task(self._handle(frame))
                self._open.add(task)
                task.add_done_callback(self._end_request)
        except FrameError as error:
            refusal = InvalidInput(f"the controller got {error}", remedy="use the same release")
            self._transport.write(encode_error(0, refusal))
            self._transport.close()
        self._balance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.pop(self, None)
        for task in self._open:
            task.cancel()

    def pause_writing(self) -> None:
        self._has_unread = True
        self._balance()

    def resume_writing(self) -> None:
        self._has_unread = False
        self._balance()

    def _make_space(self) -> None:
        """Close the oldest connection without a request if there are too many."""
        if len(self._connections) >= CONNECTIONS_MAX:
            idle = next((other for other in self._connections if other.is_idle), self)
            idle.close()
            self._connections.pop(idle, None)

    # ------------------------------------------------------------------ requests

    async def _handle(self, frame: Frame) -> None:
        try:
            request = decode_request(frame)
            answer = await self._answer(request, self._submitter)
            data = encode_answer(frame.number, answer)
        except FairbankError as error:
            data = encode_error(frame.number, error)
        except FrameError as error:
            remedy = "ask for fewer columns or jobs"
            refusal = InvalidInput(f"the answer would be {error}", field="columns", remedy=remedy)
            data = encode_error(frame.number, refusal)
        except Exception as error:  # noqa: BLE001 - one request must not end the others
            _log.exception("the controller has a bug: a request is not answered")
            bug = FairbankError(f"the controller has a bug: {error}", remedy="see its log")
            data = encode_error(frame.number, bug)
        self._transport.write(data)

    def _end_request(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        self._balance()

    def _balance(self) -> None:
        """Read on, or stop reading."""
        if self._transport.is_closing():
            return
        if self._has_unread or len(self._open) >= OPEN_REQUESTS_MAX:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


def submitter(peer: Peer) -> Submitter:
    """Return the user of a process."""
    name = user_name(peer.uid)
    return Submitter(Caller(peer.uid, name), peer.gid, groups_of(name), peer.pid)


class CommandServer:
    """Socket of the controller for commands."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._connections: dict[CommandConnection, None] = {}
        self._server: asyncio.Server | None = None

    async def start(self, path: Path) -> None:
        """Listen at a path. Raises FairbankError."""
        self._path, listener = path, bind_unix(path, mode=0o600, backlog=BACKLOG)
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: CommandConnection(self._answer, self._connections),
            sock=listener,
            backlog=ACCEPTED_MAX,
        )
        listener.listen(BACKLOG)  # asyncio has set it to the other number

    async def close(self) -> None:
        """Close the socket, and the connections when their answers are written."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
        await asyncio.sleep(0)  # the request that ends the controller is answered
        for connection in list(self._connections):
            connection.close()
