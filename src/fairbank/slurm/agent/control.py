"""Where the agent tells of itself: `GET /status` (JSON), `GET /metrics` (Prometheus), `GET /health`; nothing can be changed here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

HEAD_MAX = 8_192
SECONDS = 5.0

Page = Callable[[], tuple[str, bytes]]
"""A content type and a body."""


def as_json(said: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(said).encode()


def answering(
    pages: Mapping[str, Page],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], asyncio.Task[None]]:
    """A server's callback: one request a connection, then it is closed. Whoever is slow or speaks no HTTP gets nothing."""
    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(_serve(reader, writer, pages))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    return begin


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pages: Mapping[str, Page]
) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(_answer(head, pages))
            await writer.drain()
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


def _answer(head: bytes, pages: Mapping[str, Page]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", "replace")
    if method not in (b"GET", b"HEAD"):
        status, (kind, body) = (
            "405 Method Not Allowed",
            as_json({"title": "invalid input", "detail": "only GET is understood here"}),
        )
    elif path not in pages:
        status, (kind, body) = (
            "404 Not Found",
            as_json({"title": "not found", "detail": f"there are: {', '.join(pages)}"}),
        )
    else:
        status, (kind, body) = "200 OK", pages[path]()
    lines = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return lines.encode() + (b"" if method == b"HEAD" else body)
