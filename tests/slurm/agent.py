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


def say_nothing(request: PrologRequest) -> None:
    return None


def holding(reason: str, text: str) -> Policy:
    return lambda request: Verdict(number=request.number, action="hold", reason=reason, text=text)


def cancelling(text: str) -> Policy:
    return lambda request: Verdict(number=request.number, action="cancel", text=text)


class Agent:
    """Simulated agent that listens from `start` to `stop` and keeps the messages it received. If
    `raw` is set, it is sent instead of any answer.
    """

    def __init__(self, path: Path, policy: Policy = let_run) -> None:
        self.path = path
        self.policy = policy
        self.waits: Callable[[PrologRequest], bool] = lambda request: False
        """Kinds of requests whose answers wait until `answer` is set."""
        self.answer = threading.Event()
        self.notes = True
        self.raw: bytes | None = None
        self.heard: list[FromPlugin] = []
        self.connections = 0
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def start(self) -> Agent:
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self.path.chmod(0o777)
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    @property
    def absent(self) -> bool:
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
    def at_work(self) -> Iterator[Agent]:
        try:
            yield self.start()
        finally:
            self.stop()

    # ------------------------------------------------------------------ what it has heard

    def of(self, kind: type[T], job: int | None = None) -> list[T]:
        with self._lock:
            return [
                message
                for message in self.heard
                if isinstance(message, kind) and (job is None or message.run.job_id == job)
            ]

    def asked(self, job: int | None = None) -> list[PrologRequest]:
        return self.of(PrologRequest, job)

    def ends(self, job: int | None = None) -> list[EpilogEvent]:
        return self.of(EpilogEvent, job)

    def limits(self, job: int | None = None) -> list[LimitEvent]:
        return self.of(LimitEvent, job)

    # ------------------------------------------------------------------ its threads

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
            while received := connection.recv(65_536):
                frames, rest = split_frames(rest + received)
                for body in frames:
                    self._hear(connection, decode_plugin_message(body))
        with self._lock:
            self._open.discard(connection)

    def _hear(self, connection: socket.socket, message: FromPlugin) -> None:
        with self._lock:
            self.heard.append(message)
        if self.raw is not None:
            connection.sendall(self.raw)
        elif isinstance(message, Greeting):
            connection.sendall(encode(Welcome()))
        elif isinstance(message, PrologRequest):
            if verdict := self.policy(message):
                if self.waits(message):
                    threading.Thread(
                        target=self._later, args=(connection, verdict), daemon=True
                    ).start()
                else:
                    connection.sendall(encode(verdict))
        elif self.notes:
            connection.sendall(encode(Ack(number=message.number)))

    def _later(self, connection: socket.socket, verdict: Verdict) -> None:
        self.answer.wait()
        with contextlib.suppress(OSError):
            connection.sendall(encode(verdict))
