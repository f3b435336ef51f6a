"""A client that asks as fast as it is answered, in a process of its own (`benchmarks.apart`).

Each connection reports the start of a job, waits for the answer, reports its end, waits, and begins with the next job; in bulk,
with so many jobs at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple, cast

import msgspec

from benchmarks.apart import carry_out, obey, p50_and_p99_ms

WARM_SECONDS = 0.5
_LENGTH = b"content-length: "
STARTED = 1_700_000_000


class Order(msgspec.Struct, frozen=True):
    """Whom to ask, over how many connections, for how long; `bulk` jobs in each request (0: one, by the route for one)."""

    socket: str
    connections: int
    seconds: float
    first_job: int
    accounts: int
    bulk: int = 0


class Round(msgspec.Struct, frozen=True):
    """What came of it: operations (a start or an end is one) a second, how long a request took, and the client's own processor time."""

    rate: float
    p50_ms: float
    p99_ms: float
    jobs: int
    spent_seconds: float


def load(order: Order) -> Round:
    """Run the client and wait for its round."""
    return carry_out("benchmarks.load", order, Round)


# What is sent of a job, by its number and that of its account. Made with little work: the client's time is taken from the server's.
_FACTS = (
    b'"cluster":"load","job_id":%%d,"submitted":%d,"owner_uid":1000,"account":"p%%d","partition":"cpu","resource":"cpu",'
    b'"start":%d,"time_limit":3600' % (STARTED, STARTED)
)
_START = b'{"do":"hold",%b,"amount":60}' % _FACTS
_END = b'{"do":"complete",%b,"amount":30,"end":%d,"elapsed":1800,"state":"COMPLETED"}' % (
    _FACTS,
    STARTED + 1_800,
)


class _Sent(NamedTuple):
    request: bytes
    operations: int


class _Clients:
    """All connections of one client."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._jobs = count(order.first_job)
        self.latencies: list[float] = []
        self.operations = 0
        self.failed: bytes | None = None

    def requests(self) -> Iterator[_Sent]:
        """What one connection sends, without an end."""
        size, accounts = self._order.bulk or 1, self._order.accounts
        while True:
            jobs = [(job, job % accounts) for job in islice(self._jobs, size)]
            for body in (_START, _END):
                bodies = b",".join([body % each for each in jobs])
                yield _Sent(
                    _post(b"/job/bulk", b'{"reports":[%b]}' % bodies)
                    if self._order.bulk
                    else _post(b"/job", bodies),
                    size,
                )

    async def run(self) -> Round:
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
        for each in talking:
            each.stop()
        await asyncio.gather(*(each.stopped for each in talking))
        if self.failed is not None:
            raise SystemExit(self.failed.decode(errors="replace"))
        jobs = next(self._jobs) - self._order.first_job
        return Round(
            operations / seconds, *p50_and_p99_ms(latencies), jobs, time.process_time() - spent
        )


class _Connection(asyncio.Protocol):
    """One request at a time."""

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
        said = self._received + data if self._received else data
        begin = said.find(b"\r\n\r\n") + 4
        if begin < 4 or len(said) - begin < _length(said, begin):
            self._received = said
            return
        self._received = b""
        clients = self._clients
        clients.latencies.append(time.perf_counter() - self._begun)
        clients.operations += self._sent.operations
        if said[9:11] != b"20" or b'"status":4' in said:
            clients.failed = said[:2_500]
            self._stopping = True
        if self._stopping:
            self._transport.close()
        else:
            self._ask()

    def stop(self) -> None:
        """After the answer that is due."""
        self._stopping = True

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stopping:
            self._clients.failed = b"the server hung up"
        self.stopped.set_result(None)


def _post(path: bytes, body: bytes) -> bytes:
    return (
        b"POST %b HTTP/1.1\r\nhost: bank\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        % (path, len(body), body)
    )


def _length(said: bytes, end: int) -> int:
    """Of the body, by the head that ends there. uvicorn writes names in lower case."""
    begin = said.index(_LENGTH, 0, end) + len(_LENGTH)
    return int(said[begin : said.index(b"\r", begin)])


if __name__ == "__main__":
    obey(Order, lambda order: _Clients(order).run())
