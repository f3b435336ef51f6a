"""Connection of slurmctld's plug-in: peer check, frames in and out, limits."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from fairbank.agent.incidents import Incident
from fairbank.agent.protocol import (
    VERSION,
    FromAgent,
    Greeting,
    PluginMessage,
    UnreadableFrame,
    Welcome,
    decode_plugin_message,
    encode,
    salvage,
    split_frames,
)
from fairbank.core.errors import InvalidInput
from fairbank.rest.auth.peers import Peer, peer_at

_log = logging.getLogger(__name__)

HELLO_SECONDS = 10.0
FRAME_SECONDS = 30.0
CONNECTIONS_MAX = 256  # slurmctld's plug-in has one, a prolog_client one for each starting job
REJECTION_LOG_SECONDS = 10.0
UNREAD_MAX = 4 * 1024 * 1024  # bytes of answers unread by a peer; beyond, the agent does not read

_rejections_logged: dict[int, float] = {}  # uid -> time of the last log line


class PluginHandler(Protocol):
    """Handler of what happens on the connections of plug-ins."""

    def on_greeting(self, connection: PluginConnection, greeting: Greeting) -> None: ...

    def on_messages(
        self, connection: PluginConnection, messages: Sequence[PluginMessage]
    ) -> None: ...

    def on_unreadable(
        self, connection: PluginConnection, frames: Sequence[UnreadableFrame]
    ) -> None: ...

    def on_close(self, connection: PluginConnection) -> None: ...

    def on_incident(self, kind: Incident, text: str) -> None: ...


class PluginConnection(asyncio.Protocol):
    """Connection of one plug-in.

    A peer without the right to connect, garbage, and a long pause before the greeting or within a
    frame close the connection with a log line. A frame that has a number but cannot be decoded does
    not: the plug-in would only send it again, and all messages behind it would wait.

    Invariant: the agent reads from the peer exactly while neither `_unread` (the peer does not read
    its answers) nor `_paused` (the disk is behind) is set. `_timer` runs while a greeting or the
    rest of a frame (`_rest`) is due.
    """

    def __init__(
        self,
        handler: PluginHandler,
        is_allowed: Callable[[Peer], bool],
        connections: set[PluginConnection],
    ) -> None:
        self._handler, self._is_allowed, self._connections = handler, is_allowed, connections
        self._rest = b""
        self._unread = self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self.greeting: Greeting | None = None
        self.closed = False
        self.peer = "unknown peer"

    # ------------------------------------------------------------------ opening and closing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = peer_at(cast("socket.socket | None", transport.get_extra_info("socket")))
        if peer is None or not self._is_allowed(peer):
            self._reject(peer)
            return
        self.peer = f"process {peer.pid} of uid {peer.uid}"
        if len(self._connections) >= CONNECTIONS_MAX:
            why = f"{CONNECTIONS_MAX} plug-ins are connected already"
            self._close(why, "one slurmctld has one; see which processes hold the others")
            return
        self._connections.add(self)
        self._transport.set_write_buffer_limits(UNREAD_MAX)
        self._start_timer(HELLO_SECONDS)

    def _reject(self, peer: Peer | None) -> None:
        """Close the connection of a user without the right to it; at most one log line per 10 s."""
        now, uid = asyncio.get_running_loop().time(), peer.uid if peer else -1
        why = f"connection from uid {uid} rejected: only SlurmUser and root may connect"
        if now - _rejections_logged.get(uid, -REJECTION_LOG_SECONDS) >= REJECTION_LOG_SECONDS:
            _rejections_logged[uid] = now
            _log.warning("%s; set plugin.slurm_user to slurm.conf's SlurmUser", why)
        self._abort(Incident.REJECTED_USER, why)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._rest and not self.closed:
            text = "%s closed the connection within a frame: %d bytes of it are dropped"
            _log.warning(text, self.peer, len(self._rest))
            if self.greeting is None:
                why = f"{self.peer}: closed the connection within a frame"
                self._handler.on_incident(Incident.BAD_CONNECTION, why)
        self.closed = True
        if self in self._connections:
            self._connections.discard(self)
            self._handler.on_close(self)

    def hang_up(self) -> None:
        """Close the connection; the plug-in connects again."""
        self.closed = True
        self._transport.close()

    def _close(self, why: str, remedy: str) -> None:
        _log.warning("%s: %s; closed the connection; %s", self.peer, why, remedy)
        self._abort(Incident.BAD_CONNECTION, f"{self.peer}: {why}")

    def _abort(self, kind: Incident, text: str) -> None:
        self._handler.on_incident(kind, text)
        self.closed = True
        self._transport.abort()

    # ------------------------------------------------------------------ frames

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        try:
            bodies, self._rest = split_frames(self._rest + data if self._rest else data)
            frames = [frame for frame in map(self._decode, bodies) if frame is not None]
        except InvalidInput as error:
            self._rest = b""
            why = f"this is not the plug-in's protocol: {error.message} ({error.field})"
            self._close(why, f"expected: {error.remedy}")
            return
        self._stop_timer()
        if self._rest or self.greeting is None:
            self._start_timer(FRAME_SECONDS if self.greeting else HELLO_SECONDS)
        if messages := [frame for frame in frames if isinstance(frame, PluginMessage)]:
            self._handler.on_messages(self, messages)
        if unreadable := [frame for frame in frames if isinstance(frame, UnreadableFrame)]:
            self._handler.on_unreadable(self, unreadable)

    def _decode(self, body: bytes) -> PluginMessage | UnreadableFrame | None:
        try:
            message = decode_plugin_message(body)
        except InvalidInput as error:
            if self.greeting is not None and (frame := salvage(body, error)) is not None:
                return frame
            raise
        if isinstance(message, PluginMessage):
            if self.greeting is None:
                raise InvalidInput("no hello", field="kind", remedy="a hello first")
            return message
        if self.greeting is not None or message.version != VERSION:
            text, remedy = f"a hello of version {message.version}", f"one, of version {VERSION}"
            raise InvalidInput(text, field="version", remedy=remedy)
        self.greeting = message
        self.send([Welcome()])
        self._handler.on_greeting(self, message)
        return None

    def send(self, messages: Sequence[FromAgent]) -> None:
        if not self.closed:
            self._transport.write(b"".join(map(encode, messages)))

    # ------------------------------------------------------------------ limits

    def pause(self, *, paused: bool) -> None:
        """Stop reading from the plug-in for now, or read again."""
        self._paused = paused
        self._update_reading()

    def pause_writing(self) -> None:
        _log.warning("%s does not read its answers: reading from it is paused", self.peer)
        self._unread = True
        self._update_reading()

    def resume_writing(self) -> None:
        self._unread = False
        self._update_reading()

    def _update_reading(self) -> None:
        if self._transport.is_closing():
            return
        if self._unread or self._paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._time_out, seconds)

    def _time_out(self, seconds: float) -> None:
        if self._unread or self._paused:  # the agent itself does not read
            self._start_timer(seconds)
        else:
            self._close(f"no complete frame within {seconds:g} s", "see which process connects")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
