"""The door for slurmctld's plug-in: who may come in, frames in and out, and nothing that a mad peer could hold open."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from fairbank.core.errors import InvalidInput
from fairbank.rest.sign_in.peers import Peer, peer_at
from fairbank.slurm.agent.mishaps import Mishap
from fairbank.slurm.frames import Unread, bodies, encode, question, salvaged
from fairbank.slurm.records import VERSION, Answer, Greeting, Told, Welcome

_log = logging.getLogger(__name__)

HELLO_SECONDS = 10.0
FRAME_SECONDS = 30.0
DOORS_MAX = 8
STRANGER_SECONDS = 10.0
_strangers: dict[int, float] = {}  # when each uid that may not come in was last told of in the log
UNREAD_MAX = 4 * 1024 * 1024
"""Bytes of answers that a peer may leave unread before it is not listened to any more."""


class Host(Protocol):
    """Whoever is behind the door."""

    def welcome(self, door: Door, greeting: Greeting) -> None:
        """A plug-in has said who it is."""

    def hear(self, door: Door, told: Sequence[Told]) -> None:
        """It says this."""

    def put_aside(self, door: Door, unread: Sequence[Unread]) -> None:
        """It says this, which is not understood, and wants it answered."""

    def farewell(self, door: Door) -> None:
        """It is gone."""

    def befell(self, what: Mishap, words: str) -> None:
        """This happened at the door."""


class Door(asyncio.Protocol):
    """One connection. Garbage, a stranger, too long a silence before the hello or within a frame: a line in the log, and it is closed.

    What has a number is no garbage, though it may not be understood: hung up on, it would only be said again, and all behind it would wait.
    """

    def __init__(self, host: Host, allowed: Callable[[Peer], bool], doors: set[Door]) -> None:
        self._host, self._allowed, self._doors = host, allowed, doors
        self._rest = b""
        self._stuffed, self._paused = False, False
        self._timer: asyncio.TimerHandle | None = None
        self.greeting: Greeting | None = None
        self.closed = False
        self.who = "somebody"

    # ------------------------------------------------------------------ coming and going

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = peer_at(cast("socket.socket | None", transport.get_extra_info("socket")))
        if peer is None or not self._allowed(peer):
            self._send_away(peer)
            return
        self.who = f"process {peer.pid} of user {peer.uid}"
        if len(self._doors) >= DOORS_MAX:
            self._close(
                f"{DOORS_MAX} plug-ins are connected already",
                "one slurmctld has one; look for who holds the others",
            )
            return
        self._doors.add(self)
        self._transport.set_write_buffer_limits(UNREAD_MAX)
        self._expect(HELLO_SECONDS)

    def _send_away(self, peer: Peer | None) -> None:
        """A stranger gets a line in the log, but cannot fill it."""
        now, uid = asyncio.get_running_loop().time(), peer.uid if peer else -1
        why = f"a process of user {uid} wanted to speak for slurmctld"
        if now - _strangers.get(uid, -STRANGER_SECONDS) < STRANGER_SECONDS:
            self._abort(Mishap.STRANGER, why)
            return
        _strangers[uid] = now
        self._close(why, "set plugin.slurm_user to slurm.conf's SlurmUser", Mishap.STRANGER)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        if self._rest and not self.closed:
            _log.warning(
                "%s hung up within a frame: %d bytes of it are dropped; a plug-in says it again",
                self.who,
                len(self._rest),
            )
            if self.greeting is None:
                self._host.befell(Mishap.GARBAGE, f"{self.who}: hung up within a frame")
        self.closed = True
        if self in self._doors:
            self._doors.discard(self)
            self._host.farewell(self)

    def hang_up(self) -> None:
        """Let it come again."""
        self.closed = True
        self._transport.close()

    def _close(self, why: str, remedy: str, what: Mishap = Mishap.GARBAGE) -> None:
        _log.warning("%s: %s; closed the connection; %s", self.who, why, remedy)
        self._abort(what, f"{self.who}: {why}" if what is Mishap.GARBAGE else why)

    def _abort(self, what: Mishap, words: str) -> None:
        self._host.befell(what, words)
        self.closed = True
        self._transport.abort()

    # ------------------------------------------------------------------ frames

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        try:
            whole, self._rest = bodies(self._rest + data if self._rest else data)
            said = [each for each in map(self._read, whole) if each is not None]
        except InvalidInput as bad:
            self._rest = b""
            self._close(f"garbage: {bad.message} ({bad.field})", f"it takes {bad.remedy}")
            return
        self._forget_timer()
        if self._rest or self.greeting is None:
            self._expect(FRAME_SECONDS if self.greeting else HELLO_SECONDS)
        if told := [each for each in said if isinstance(each, Told)]:
            self._host.hear(self, told)
        if unread := [each for each in said if isinstance(each, Unread)]:
            self._host.put_aside(self, unread)

    def _read(self, body: bytes) -> Told | Unread | None:
        try:
            said = question(body)
        except InvalidInput as bad:
            if self.greeting is not None and (unread := salvaged(body, bad)) is not None:
                return unread
            raise
        if isinstance(said, Told):
            if self.greeting is None:
                raise InvalidInput("no hello", field="kind", remedy="a hello first")
            return said
        if self.greeting is not None or said.version != VERSION:
            raise InvalidInput(
                f"a hello of version {said.version}",
                field="version",
                remedy=f"one hello, of version {VERSION}",
            )
        self.greeting = said
        self.say([Welcome()])
        self._host.welcome(self, said)
        return None

    def say(self, answers: Sequence[Answer]) -> None:
        if not self.closed:
            self._transport.write(b"".join(map(encode, answers)))

    # ------------------------------------------------------------------ not more than can be borne

    def pause(self, *, paused: bool) -> None:
        """Listen no more for now, or again."""
        self._paused = paused
        self._listen_or_not()

    def pause_writing(self) -> None:
        _log.warning("%s does not read its answers: it is not listened to until it does", self.who)
        self._stuffed = True
        self._listen_or_not()

    def resume_writing(self) -> None:
        self._stuffed = False
        self._listen_or_not()

    def _listen_or_not(self) -> None:
        if self._transport.is_closing():
            return
        if self._stuffed or self._paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _expect(self, seconds: float) -> None:
        self._forget_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._too_late, seconds)

    def _too_late(self, seconds: float) -> None:
        if self._stuffed or self._paused:
            self._expect(seconds)
        else:
            self._close(f"nothing whole came within {seconds:g} s", "look at what connects there")

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
