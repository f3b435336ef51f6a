"""Simulated agent for tests of the plug-in. A policy decides; the agent can be stopped, slow or
silent.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from fairbank.agent.protocol import (
    Ack,
    EpilogEvent,
    FromPlugin,
    Greeting,
    LimitEvent,
    PluginMessage,
    PrologRequest,
    Verdict,
    Welcome,
    decode_plugin_message,
    encode,
    split_frames,
)

T = TypeVar("T", bound=PluginMessage)
Policy = Callable[[PrologRequest], Verdict | None]


def let_run(request: PrologRequest) -> Verdict:
    return Verdict(number=request.number, action="run")


def send_no_verdict(request: PrologRequest) -> None:
    return None


def hold_policy(reason: str, text: str) -> Policy:
    return lambda request: Verdict(number=request.number, action="hold", reason=reason, text=text)


def cancel_policy(text: str) -> Policy:
    return lambda request: Verdict(number=request.number, action="cancel", text=text)


class SimulatedAgent:
    """Simulated agent that listens from `start` to `stop` and keeps the messages it received. If
    `raw` is set, it is sent instead of any answer.
    """

    def __init__(self, path: Path, policy: Policy = let_run) -> None:
        self.path = path
        self.policy = policy
        self.is_delayed: Callable[[PrologRequest], bool] = lambda request: False
        """Kinds of requests whose answers wait until `verdicts_released` is set."""
        self.verdicts_released = threading.Event()
        self.acknowledges = True
        self.raw: bytes | None = None
        self.received: list[FromPlugin] = []
        self.connections = 0
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def start(self) -> SimulatedAgent:
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self.path.chmod(0o777)
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    @property
    def is_stopped(self) -> bool:
        return self._listener is None

    def stop(self) -> None:
        """Stop as after kill -9: without a message, and the socket file stays."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def running(self) -> Iterator[SimulatedAgent]:
        try:
            yield self.start()
        finally:
            self.stop()

    # ------------------------------------------------------------------ received messages

    def messages(self, kind: type[T], job: int | None = None) -> list[T]:
        with self._lock:
            return [
                message
                for message in self.received
                if isinstance(message, kind) and (job is None or message.run.job_id == job)
            ]

    def requests(self, job: int | None = None) -> list[PrologRequest]:
        return self.messages(PrologRequest, job)

    def ends(self, job: int | None = None) -> list[EpilogEvent]:
        return self.messages(EpilogEvent, job)

    def limits(self, job: int | None = None) -> list[LimitEvent]:
        return self.messages(LimitEvent, job)

    # ------------------------------------------------------------------ threads

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(connection)
                self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        rest = b""
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65_536):
                frames, rest = split_frames(rest + data)
                for body in frames:
                    self._handle(connection, decode_plugin_message(body))
        with self._lock:
            self._open.discard(connection)

    def _handle(self, connection: socket.socket, message: FromPlugin) -> None:
        with self._lock:
            self.received.append(message)
        if self.raw is not None:
            connection.sendall(self.raw)
        elif isinstance(message, Greeting):
            connection.sendall(encode(Welcome()))
        elif isinstance(message, PrologRequest):
            if verdict := self.policy(message):
                if self.is_delayed(message):
                    threading.Thread(
                        target=self._send_later, args=(connection, verdict), daemon=True
                    ).start()
                else:
                    connection.sendall(encode(verdict))
        elif self.acknowledges:
            connection.sendall(encode(Ack(number=message.number)))

    def _send_later(self, connection: socket.socket, verdict: Verdict) -> None:
        self.verdicts_released.wait()
        with contextlib.suppress(OSError):
            connection.sendall(encode(verdict))
