"""How long a connection may keep silent between two requests."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Patient(HttpToolsProtocol):
    """uvicorn's HTTP, with one timer for the silences of a connection: it looks when the silence began that it finds.

    uvicorn's own is set after each answer and taken back with each request: of a report's time in the event loop, a tenth.
    """

    _silent_since: float | None = None

    def on_response_complete(self) -> None:
        """Begin with the next request that is here already, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._silent_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def timeout_keep_alive_handler(self) -> None:
        """Close after that long a silence. One that began since has the rest of its time; whoever is being answered, all of it."""
        self.timeout_keep_alive_task = None
        if self._silent_since is None:
            return
        left = self._silent_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(
                left, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        """uvicorn calls this when something is received."""
        self._silent_since = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        super().connection_lost(exc)
