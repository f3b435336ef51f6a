"""Event loop of a simulation: its time jumps to the next event, and its sockets are in memory."""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

from tests.agent.plugin import START

T = TypeVar("T")
_WIRE_SECONDS, _DISK_SECONDS = 0.02, 0.05
# SO_PEERCRED of a transport is that of this process.
_OWN_SOCKET, _ = socket.socketpair(socket.AF_UNIX)


class _JumpingSelector(selectors.SelectSelector):
    """Selector that sees no file, and moves the clock where a real one would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "nothing is due any more"
        self.now += max(timeout, 0.0)
        return []


class MemoryTransport(asyncio.Transport):
    """Side of a connection in memory. What its peer has written arrives in order, some time later.

    Invariant: `_arrived` counts those of `_incoming` that wait until this side reads.
    """

    def __init__(self, loop: VirtualLoop, protocol: asyncio.Protocol) -> None:
        super().__init__({"socket": _OWN_SOCKET})
        self._loop, self._protocol = loop, protocol
        self._incoming: deque[bytes | None] = deque()
        self._arrived = 0
        self._is_paused = self._is_stalled = self._is_closed = False
        self.peer: MemoryTransport

    def write(self, data: Any) -> None:
        if data and not self._is_closed:
            self.peer._push(bytes(data))

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.peer._push(None)
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self._is_closed

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignore the limits: a peer in memory takes everything."""

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._read_on()

    def stall(self, *, stalled: bool) -> None:
        """Let nothing arrive at this side for now, or again."""
        self._is_stalled = stalled
        self._read_on()

    def _push(self, data: bytes | None) -> None:
        self._incoming.append(data)
        delay = self._loop.random.uniform(0, _WIRE_SECONDS)
        self._loop.call_later(delay, self._arrive)

    def _arrive(self) -> None:
        self._arrived += 1
        self._read_on()

    def _read_on(self) -> None:
        while self._arrived and not (self._is_closed or self._is_paused or self._is_stalled):
            self._arrived -= 1
            data = self._incoming.popleft()
            if data is None:
                self.close()
            else:
                self._protocol.data_received(data)


class _MemoryServer:
    """Listening socket of `VirtualLoop`."""

    def __init__(self, listeners: dict[str, Any], path: str, listener: Any) -> None:
        self._listeners, self._path, self._listener = listeners, path, listener

    def close(self) -> None:
        self._listeners.pop(self._path, None)
        if self._listener is not None:
            self._listener.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop without real time, sockets or threads: the same seed gives the same history.

    `check_call` is called before each function of a thread, and may raise in its place.
    """

    def __init__(self, random: Random) -> None:
        self._selector_of_time = _JumpingSelector()
        super().__init__(self._selector_of_time)
        self.random = random
        self.listeners: dict[str, Callable[[], asyncio.Protocol]] = {}
        self.failures: list[dict[str, Any]] = []
        self.check_call: Callable[[Any], None] = lambda _: None
        self._threads: dict[Any, float] = {}  # when each executor is idle again
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    def time(self) -> float:
        return self._selector_of_time.now

    def add_signal_handler(self, *_: Any) -> None:  # type: ignore[override]
        """Ignore the handler: no signal comes."""

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, function: Any, *arguments: Any
    ) -> asyncio.Future[Any]:
        """Run a function as a thread would: its effect and its result come at different times."""
        future: asyncio.Future[Any] = self.create_future()
        outcome: list[Callable[[], None]] = []

        def begin() -> None:
            if future.cancelled():
                return
            try:
                self.check_call(function)
                result = function(*arguments)
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                bad = error
                outcome.append(lambda: future.set_exception(bad))
            else:
                outcome.append(lambda: future.set_result(result))

        def end() -> None:
            if outcome and not future.done():
                outcome[0]()

        first = max(self._threads.get(executor, 0.0), self.time())
        middle = first + self.random.uniform(0, _DISK_SECONDS)
        self._threads[executor] = last = middle + self.random.uniform(1e-6, _DISK_SECONDS)
        self.call_at(middle, begin)
        self.call_at(last, end)
        return future

    async def create_unix_server(  # type: ignore[override]
        self, factory: Any, path: str | None = None, *, sock: Any = None, **_: Any
    ) -> _MemoryServer:
        name = str(path or sock.getsockname())
        self.listeners[name] = factory
        return _MemoryServer(self.listeners, name, sock)

    async def create_unix_connection(  # type: ignore[override]
        self, factory: Any, path: str, **_: Any
    ) -> tuple[MemoryTransport, Any]:
        await asyncio.sleep(self.random.uniform(0, _WIRE_SECONDS))
        if path not in self.listeners:
            raise ConnectionRefusedError(path)
        ends = [MemoryTransport(self, make()) for make in (factory, self.listeners[path])]
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        for end in ends:
            end._protocol.connection_made(end)
        return ends[0], ends[0]._protocol

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and close the loop."""
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(work)
        finally:
            asyncio.set_event_loop(None)
            self.close()


class VirtualTime(SimpleNamespace):
    """Module `time` of a simulation. `jump` is what the wall clock was set forward."""

    CLOCK_BOOTTIME = time.CLOCK_BOOTTIME

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(loop=loop, jump=0.0)

    def time(self) -> float:
        return START + float(self.loop.time()) + float(self.jump)

    def time_ns(self) -> int:
        return int(self.time() * 1e9)

    def clock_gettime_ns(self, _: int) -> int:
        return self.monotonic_ns()

    def monotonic(self) -> float:
        return 1_000 + float(self.loop.time())

    def monotonic_ns(self) -> int:
        return int(self.monotonic() * 1e9)
