"""Proxies between two programs on Unix sockets that duplicate, delay, reorder, swallow or cut off
messages. FaultyFrameProxy is used between plug-in and agent, FaultyRequestProxy between agent and
bank.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from enum import Enum
from pathlib import Path

from fairbank.agent.protocol import HEADER

LATE_SECONDS = 1.0
CUT_ONE_OF = 5
HEAD_MAX = 64 * 1024


class MessageFault(Enum):
    """Fault applied to messages."""

    NONE = "passed on"
    DUPLICATE = "duplicated"
    DELAY = "delayed"
    REORDER = "reordered"
    CUT = "cut off"
    SWALLOW = "swallowed"


class FaultyProxy(ABC):
    """Proxy that listens at `path` and connects to `target`, from `start` to `stop`. `fault` may
    change at any time; `done` counts messages.
    """

    def __init__(self, path: Path, target: Path, rng: random.Random) -> None:
        self.path, self.target, self.rng = path, target, rng
        self._fault, self._changed = MessageFault.NONE, asyncio.Event()
        self.done: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def fault(self) -> MessageFault:
        return self._fault

    @fault.setter
    def fault(self, fault: MessageFault) -> None:
        self._fault = fault
        self._loop.call_soon_threadsafe(self._changed.set)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, str(self.path), limit=HEAD_MAX)
        self.path.chmod(0o666)

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._proxy(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(
            str(self.target), limit=HEAD_MAX
        )
        try:
            await self._relay(reader, writer, server_reader, server_writer)
        finally:
            server_writer.transport.abort()

    @abstractmethod
    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        """Pass on messages until one side closes the connection. Raises OSError, EOFError."""

    def _count(self) -> None:
        self.done[self.fault.value] += 1

    def _cuts(self) -> bool:
        return self.fault is MessageFault.CUT and self.rng.randrange(CUT_ONE_OF) == 0


class FaultyFrameProxy(FaultyProxy):
    """Proxy for frames of decision 0012, in both directions. Greetings are passed on unchanged,
    because a peer without a greeting closes the connection.
    """

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        directions = [
            asyncio.ensure_future(self._pass(reader, server_writer)),
            asyncio.ensure_future(self._pass(server_reader, writer)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readexactly(HEADER)
            frame = head + await reader.readexactly(int.from_bytes(head, "big"))
            if frame[HEADER:].startswith(b"hello"):
                writer.write(frame)
                continue
            self._count()
            if self._cuts():
                writer.write(frame[: len(frame) // 2])
                return
            if self.fault is MessageFault.DELAY:
                await asyncio.sleep(self.rng.uniform(0, LATE_SECONDS / 5))
            if self.fault is MessageFault.REORDER:
                self._loop.call_later(self.rng.uniform(0, LATE_SECONDS), _write, writer, frame)
            else:
                writer.write(frame * (2 if self.fault is MessageFault.DUPLICATE else 1))


def _write(writer: asyncio.StreamWriter, frame: bytes) -> None:
    if not writer.transport.is_closing():
        writer.write(frame)


class FaultyRequestProxy(FaultyProxy):
    """Proxy for HTTP requests and responses. A request that is cut off may or may not have reached
    the server.
    """

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        while True:
            request = await _message(reader)
            self._count()
            if self._cuts():
                return
            if self.fault is MessageFault.SWALLOW:
                await self._swallow()
                return
            if self.fault in (MessageFault.DELAY, MessageFault.REORDER):
                await asyncio.sleep(self.rng.uniform(0, LATE_SECONDS))
            duplicate = (
                asyncio.ensure_future(self._send_duplicate(request))
                if self.fault is MessageFault.DUPLICATE
                else None
            )
            server_writer.write(request)
            answer = await _message(server_reader)
            if duplicate is not None:
                await duplicate
            if self._cuts():
                return
            writer.write(answer)

    async def _swallow(self) -> None:
        """Keep the connection open without an answer while the fault lasts."""
        while self.fault is MessageFault.SWALLOW:
            self._changed.clear()
            await self._changed.wait()

    async def _send_duplicate(self, request: bytes) -> None:
        """Send the same request at the same time on another connection, and ignore the response."""
        with contextlib.suppress(OSError, EOFError):
            reader, writer = await asyncio.open_unix_connection(str(self.target), limit=HEAD_MAX)
            try:
                writer.write(request)
                await _message(reader)
            finally:
                writer.transport.abort()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Read a request or response with its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))
