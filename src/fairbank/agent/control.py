"""Control socket: `GET /status` (JSON), `GET /metrics` (Prometheus), `GET /health`; read only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fairbank.core.errors import FairbankError, Unavailable
from fairbank.rest.client import Client, parse_address
from fairbank.rest.server.unix_socket import bind_unix

HEADER_MAX = 8_192
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of metrics."""
SECONDS = 5.0

Page = Callable[[], tuple[str, bytes]]  # returns a content type and a body


def agent_status(path: str) -> dict[str, Any]:
    """Return the status of the running agent whose control socket has this path.

    Raises Unavailable if no agent answers.
    """
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


async def listen(
    pages: Mapping[str, Page], path: Path, port: int | None, *, field: str
) -> list[asyncio.Server]:
    """Serve pages at a Unix socket, and optionally at a port of 127.0.0.1.

    Args:
        pages: pages by their paths.
        port: the port; None for none.
        field: setting of the port, for its error.

    Raises:
        FairbankError: another process listens there.
    """
    serve = partial(serve_page, pages)
    servers = [await asyncio.start_unix_server(serve, sock=bind_unix(path), limit=HEADER_MAX)]
    if port is not None:
        try:
            tcp = await asyncio.start_server(serve, "127.0.0.1", port, limit=HEADER_MAX)
        except OSError as error:
            servers[0].close()
            text = f"cannot listen on port {port}: {error.strerror}"
            raise FairbankError(text, field=field, remedy="choose another port") from error
        servers.append(tcp)
    return servers


async def serve_page(
    pages: Mapping[str, Page], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the one request of a connection. Slow peers and bad HTTP get no answer.

    Args:
        pages: pages by their paths.
        reader: stream of the request.
        writer: stream of the answer.
    """
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
        status = HTTPStatus.METHOD_NOT_ALLOWED
        page = as_json({"title": "invalid input", "detail": "only GET is allowed here"})
    elif path not in pages:
        status = HTTPStatus.NOT_FOUND
        page = as_json({"title": "not found", "detail": f"the pages are {', '.join(pages)}"})
    else:
        status, page = HTTPStatus.OK, pages[path]()
    content_type, body = page
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == b"HEAD" else body)
