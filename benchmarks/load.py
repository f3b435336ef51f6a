"""HTTP client that sends the next request when the response arrives, in a process of its own.

Each connection reports the start of a job, waits for the response, reports its end, waits, and
begins with the next job; in bulk mode with `bulk` jobs at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple, cast

import msgspec

from benchmarks.subprocess_round import p50_and_p99_ms, run_round, serve_round

WARM_SECONDS = 0.5
_LENGTH = b"content-length: "
STARTED = 1_700_000_000


class LoadOrder(msgspec.Struct, frozen=True):
    """Server, number of connections and duration. `bulk`: jobs per request (0: one, by the route
    for one).
    """

    socket: str
    connections: int
    seconds: float
    first_job: int
    accounts: int
    bulk: int = 0


class LoadRound(msgspec.Struct, frozen=True):
    """Operations per second (a start or an end is one), latency of requests, CPU time of the
    client.
    """

    rate: float
    p50_ms: float
    p99_ms: float
    jobs: int
    spent_seconds: float


def load(order: LoadOrder) -> LoadRound:
    """Run the client and return its round."""
    return run_round("benchmarks.load", order, LoadRound)


# Report of a job, by its number and that of its account. It is built cheaply, because the client's
# CPU time is taken from the server's.
_FACTS = (
    b'"cluster":"load","job_id":%%d,"submitted":%d,"owner_uid":1000,"account":"p%%d",'
    b'"partition":"cpu","resource":"cpu",'
    b'"start":%d,"time_limit":3600' % (STARTED, STARTED)
)
_START = b'{"do":"hold",%b,"amount":60}' % _FACTS
_END = b'{"do":"complete",%b,"amount":30,"end":%d,"elapsed":1800,"state":"COMPLETED"}' % (
    _FACTS,
    STARTED + 1_800,
)


class _LoadRequest(NamedTuple):
    request: bytes
    operations: int


class _Clients:
    """All connections of one client."""

    def __init__(self, order: LoadOrder) -> None:
        self._order = order
        self._jobs = count(order.first_job)
        self.latencies: list[float] = []
        self.operations = 0
        self.failed: bytes | None = None

    def requests(self) -> Iterator[_LoadRequest]:
        """Yield the requests of one connection, without end."""
        size, accounts = self._order.bulk or 1, self._order.accounts
        while True:
            jobs = [(job, job % accounts) for job in islice(self._jobs, size)]
            for body in (_START, _END):
                bodies = b",".join([body % job for job in jobs])
                yield _LoadRequest(
                    (
                        _post(b"/job/bulk", b'{"reports":[%b]}' % bodies)
                        if self._order.bulk
                        else _post(b"/job", bodies)
                    ),
                    size,
                )

    async def run(self) -> LoadRound:
        loop, spent = asyncio.get_running_loop(), time.process_time()
        talking = [
            (await loop.create_unix_connection(lambda: _Connection(self), self._order.socket))[1]
            for _ in range(self._order.connections)
        ]
        await asyncio.sleep(WARM_SECONDS)
        self.latencies, self.operations, begun = [], 0, time.perf_counter()
        await asyncio.sleep(self._order.seconds)
        seconds, operations, latencies = (
            time.perf_counter() - begun,
            self.operations,
            self.latencies,
        )
        for client in talking:
            client.stop()
        await asyncio.gather(*(client.stopped for client in talking))
        if self.failed is not None:
            raise SystemExit(self.failed.decode(errors="replace"))
        jobs = next(self._jobs) - self._order.first_job
        return LoadRound(
            operations / seconds, *p50_and_p99_ms(latencies), jobs, time.process_time() - spent
        )


class _Connection(asyncio.Protocol):
    """Connection with one request at a time."""

    def __init__(self, clients: _Clients) -> None:
        self._clients = clients
        self._requests = clients.requests()
        self._received = b""
        self._stopping = False
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def _ask(self) -> None:
        self._sent = next(self._requests)
        self._begun = time.perf_counter()
        self._transport.write(self._sent.request)

    def data_received(self, data: bytes) -> None:
        answer = self._received + data if self._received else data
        begin = answer.find(b"\r\n\r\n") + 4
        if begin < 4 or len(answer) - begin < _length(answer, begin):
            self._received = answer
            return
        self._received = b""
        clients = self._clients
        clients.latencies.append(time.perf_counter() - self._begun)
        clients.operations += self._sent.operations
        if answer[9:11] != b"20" or b'"status":4' in answer:
            clients.failed = answer[:2_500]
            self._stopping = True
        if self._stopping:
            self._transport.close()
        else:
            self._ask()

    def stop(self) -> None:
        """Close after the response that is due."""
        self._stopping = True

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stopping:
            self._clients.failed = b"the server hung up"
        self.stopped.set_result(None)


def _post(path: bytes, body: bytes) -> bytes:
    return (
        b"POST %b HTTP/1.1\r\nhost: bank\r\ncontent-type: application/json\r\ncontent-length:"
        b" %d\r\n\r\n%b" % (path, len(body), body)
    )


def _length(answer: bytes, end: int) -> int:
    """Return the length of the body from the header that ends at `end`. uvicorn writes names in
    lower case.
    """
    begin = answer.index(_LENGTH, 0, end) + len(_LENGTH)
    return int(answer[begin : answer.index(b"\r", begin)])


if __name__ == "__main__":
    serve_round(LoadOrder, lambda order: _Clients(order).run())
