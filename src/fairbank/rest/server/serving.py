"""The server on its sockets: one process, the Unix socket always, TCP where asked; an orderly end on SIGTERM."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import uvicorn
import uvloop

from fairbank.core.errors import Conflict, Malformed, Trouble
from fairbank.rest.app import create_app
from fairbank.rest.house import House
from fairbank.rest.server.front import Front
from fairbank.rest.server.open_files import ENOUGH, connections_max, raised
from fairbank.rest.server.protocol import serving
from fairbank.rest.server.unix_socket import bind_unix
from fairbank.rest.short_way.express import Express
from fairbank.rest.teller import Teller
from fairbank.service.gc_tuning import tune_gc
from fairbank.service.write_queue.queue import WriteQueue

PORT_MAX = 65_535

_log = logging.getLogger(__name__)


def serve(
    house: House,
    *,
    unix: Path | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, answer what waits, then close the house.

    On the Unix socket at `unix` local users need not sign in; on TCP everybody signs in by token or MUNGE. `ready` is called when
    both listen. Raises Conflict, Forbidden, Malformed when a socket cannot be had, Unreachable when the counter failed; the house is closed
    then too.
    """
    try:
        listeners = _listen(unix, host, port)
        tune_gc()
        app = create_app(house)
        front = Front(app, house.metrics, greet=app.doorkeeper.greet)
        express = Express(
            house, front, app.doorkeeper.local, lambda: cast("Teller", app.state.teller)
        )
        config = serving(cast("Any", front), connections_max=_connections_max(), express=express)
        uvloop.run(_Server(config, unix, house.services.counter, ready).serve(listeners))
        if house.services.counter.failure is not None:
            raise house.services.counter.failure
    finally:
        house.services.close()


def _connections_max() -> int:
    files = raised()
    most = connections_max(files)
    if most < connections_max(ENOUGH):
        _log.warning(
            "%d open files allow %d connections over the Unix socket and over TCP each", files, most
        )
    return most


def _listen(path: Path | None, host: str, port: int | None) -> list[socket.socket]:
    """The sockets asked for, all or none."""
    if path is None and port is None:
        raise Malformed(
            "the server has nowhere to listen",
            field="socket",
            remedy="give it a socket, a port, or both",
        )
    listeners = [] if port is None else [_bind_tcp(host, port)]
    try:
        return listeners if path is None else [bind_unix(path), *listeners]
    except Trouble:
        for each in listeners:
            each.close()
        raise


class _Server(uvicorn.Server):
    """uvicorn's server, which ends by returning: its own raises the signal again, and nobody could close the store."""

    def __init__(
        self,
        config: uvicorn.Config,
        path: Path | None,
        counter: WriteQueue,
        ready: Callable[[], None] | None,
    ) -> None:
        super().__init__(config)
        self._path, self._counter, self._ready = path, counter, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _log.info("ready")
            if self._ready is not None:
                self._ready()

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._counter.failure is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._path is not None:
            self._path.unlink(
                missing_ok=True
            )  # while it is still ours: the next server may be waiting for the place
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            each: signal.signal(each, self.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def _bind_tcp(host: str, port: int) -> socket.socket:
    if not 0 < port <= PORT_MAX:
        raise Malformed(
            f"there is no port {port}", field="port", remedy=f"a number from 1 to {PORT_MAX}"
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
