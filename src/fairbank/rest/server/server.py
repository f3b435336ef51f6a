"""Server process: its sockets, uvicorn's server and its shutdown."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
import uvloop
from litestar import Litestar

from fairbank.core.errors import Conflict, FairbankError, InvalidInput
from fairbank.rest.app import create_app
from fairbank.rest.context import AppContext
from fairbank.rest.report_dispatch import ReportDispatch
from fairbank.rest.server.daemon_tasks import limit_end
from fairbank.rest.server.http_protocol import server_config
from fairbank.rest.server.middleware import Middleware
from fairbank.rest.server.open_files import connections_max, raise_limit, shortage
from fairbank.rest.server.unix_socket import bind_unix
from fairbank.service.ops.garbage_collector import tune_garbage_collector
from fairbank.service.write_queue.queue import WriteQueue

PORT_MAX = 65_535
CLOSE_SECONDS = 0.1
END_SECONDS = 60.0
"""Time for its end: 30 s for requests, and what was queued by then is written."""

_log = logging.getLogger(__name__)


def serve(
    context: AppContext,
    *,
    unix: Path | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, answer pending requests, then close the services.

    Args:
        unix: path of the Unix socket, on which the kernel identifies local users.
        host: address for TCP, where users authenticate by token or MUNGE.
        port: TCP port; None for no TCP.
        ready: called when all sockets listen.

    Raises:
        Conflict, Forbidden, InvalidInput: a socket cannot be opened.
        Unavailable: the write queue failed.
    """
    try:
        listeners = _listen(unix, host, port)
        tune_garbage_collector()
        app = with_middleware(create_app(context), context)
        config = server_config(cast("Any", app), connections_max=_connections_max())
        queue = context.services.write_queue
        uvloop.run(HttpServer(config, unix, queue, ready).serve(listeners))
        if queue.failure is not None:
            raise queue.failure
    finally:
        context.services.close()


def with_middleware(app: Litestar, context: AppContext, **options: Any) -> Middleware:
    """Wrap the application; `options` are those of Middleware."""
    return Middleware(
        cast("Any", ReportDispatch(app)),
        context.metrics,
        authenticate_head=app.state.authenticator.authenticate_head,
        **options,
    )


def _connections_max() -> int:
    files = raise_limit()
    if low := shortage(files):
        _log.warning("%s; %s", low.message, low.remedy)
    return connections_max(files)


def _listen(path: Path | None, host: str, port: int | None) -> list[socket.socket]:
    """Open all sockets, or none."""
    if path is None and port is None:
        raise InvalidInput(
            "no socket or port to listen on",
            field="socket",
            remedy="give it a socket, a port, or both",
        )
    listeners = [] if port is None else [_bind_tcp(host, port)]
    try:
        return listeners if path is None else [bind_unix(path), *listeners]
    except FairbankError:
        for listener in listeners:
            listener.close()
        raise


class HttpServer(uvicorn.Server):
    """uvicorn's server, changed to return on a signal.

    uvicorn itself raises the signal again, and nothing could close the store.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        path: Path | None,
        queue: WriteQueue,
        ready: Callable[[], None] | None,
    ) -> None:
        super().__init__(config)
        self._path, self._queue, self._ready = path, queue, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _log.info("ready")
            if self._ready is not None:
                self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        limit_end(END_SECONDS)
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._queue.failure is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._path is not None:
            # While it is still ours: the next server may be waiting for the path.
            self._path.unlink(missing_ok=True)
        closing = asyncio.create_task(self._close_connections())
        try:
            await super().shutdown(sockets)
        finally:
            closing.cancel()

    async def _close_connections(self) -> None:
        """Close all connections again and again, each after its pending responses.

        uvicorn does so once. A connection accepted at that moment is not in its list yet: its
        client could send requests until uvicorn gives up.
        """
        while True:
            for connection in list(self.server_state.connections):
                connection.shutdown()
            await asyncio.sleep(CLOSE_SECONDS)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _bind_tcp(host: str, port: int) -> socket.socket:
    if not 0 < port <= PORT_MAX:
        raise InvalidInput(
            f"{port} is not a port", field="port", remedy=f"a number from 1 to {PORT_MAX}"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as bad:
        raise Conflict(
            f"cannot listen on {host} port {port}: {bad.strerror}",
            field="port",
            remedy="choose another port or host",
        ) from bad
