"""Keep-alive HTTP connection over a Unix socket, for tests with hundreds of clients in one event
loop.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

HEAD_MAX = 64 * 1024

T = TypeVar("T")


class ResponseLost(Exception):
    """No complete response arrived, so it is unknown whether the request was carried out."""


class Answer(NamedTuple):
    """HTTP response, and the seconds that it took."""

    status: int
    headers: dict[str, str]
    body: Any
    seconds: float

    @property
    def data(self) -> Any:
        """Return the data of the response; fail unless the status is 2xx."""
        assert 200 <= self.status < 300, f"{self.status}: {self.body}"
        return self.body["data"]


class Wire:
    """Connection that is opened on demand, and again after a response was lost."""

    def __init__(self, socket: Path, *, timeout_seconds: float = 120) -> None:
        self._socket = str(socket)
        self._timeout_seconds = timeout_seconds
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> Answer:
        """Send one request. Raises ResponseLost; then the next request has a new connection."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", "host: bank"]
        if body is not None:
            head += ["content-type: application/json", f"content-length: {len(sent)}"]
        if key is not None:
            head.append(f"idempotency-key: {key}")
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                status, headers, read = await self._exchange(
                    "\r\n".join([*head, "", ""]).encode("ascii") + sent
                )
        except (OSError, EOFError, asyncio.LimitOverrunError) as gone:
            self.drop()
            raise ResponseLost(f"{method} {path}: {gone!r}") from gone
        except asyncio.CancelledError:
            self.drop()
            raise
        if headers.get("connection", "").lower() == "close":
            self.drop()
        return Answer(status, headers, json.loads(read) if read else None, time.monotonic() - begun)

    async def _exchange(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(self._socket, limit=HEAD_MAX)
            _open.add(self)
        reader, writer = self._streams
        writer.write(request)
        await writer.drain()
        first, *lines = (
            (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        )
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        read = await reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, read

    def drop(self) -> None:
        """Close the connection in any state."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None
            _open.discard(self)


_open: set[Wire] = set()


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as asyncio.run does; at the end, in any case, no connection stays open."""
    return asyncio.run(_hanging_up(story))


async def _hanging_up(story: Coroutine[Any, Any, T]) -> T:
    try:
        return await story
    finally:
        for connection in list(_open):
            connection.drop()
        await asyncio.sleep(0)  # the loop closes their sockets at its next turn
