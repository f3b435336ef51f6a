"""Control socket: `GET /status` (JSON), `GET /metrics` (Prometheus), `GET /health`; read only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from fairbank.agent.settings import read_agent_settings, settings_file
from fairbank.core.errors import Unavailable
from fairbank.rest.client import Client, parse_address

HEADER_MAX = 8_192
SECONDS = 5.0

Page = Callable[[], tuple[str, bytes]]
"""Function that returns a content type and a body."""


def agent_status(config: str | None) -> dict[str, Any]:
    """Return the status of the running agent with these settings (None: the default file).

    Raises Unavailable if no agent answers.
    """
    path = read_agent_settings(settings_file(config)).control.socket
    try:
        return Client(parse_address(f"unix:{path}")).get("/status")
    except Unavailable as error:
        raise Unavailable(
            f"no agent answers at {path}",
            field="control.socket",
            remedy="start it with: fairbank agent; or name its settings: --config",
        ) from error


def as_json(value: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def page_server(
    pages: Mapping[str, Page],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], asyncio.Task[None]]:
    """Return a server callback: one request per connection. Slow peers and bad HTTP get nothing."""
    tasks: set[asyncio.Task[None]] = set()  # the event loop itself keeps no reference

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(_serve(reader, writer, pages))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    return serve


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pages: Mapping[str, Page]
) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            header = await reader.readuntil(b"\r\n\r\n")
            writer.write(_response(header, pages))
            await writer.drain()
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


def _response(header: bytes, pages: Mapping[str, Page]) -> bytes:
    method, _, rest = header.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", "replace")
    if method not in (b"GET", b"HEAD"):
        status, (content_type, body) = (
            "405 Method Not Allowed",
            as_json({"title": "invalid input", "detail": "only GET is allowed here"}),
        )
    elif path not in pages:
        status, (content_type, body) = (
            "404 Not Found",
            as_json({"title": "not found", "detail": f"the pages are {', '.join(pages)}"}),
        )
    else:
        status, (content_type, body) = "200 OK", pages[path]()
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    head = "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"
    return head + (b"" if method == b"HEAD" else body)
