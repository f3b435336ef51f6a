"""Simulated plug-in of slurmctld, in a process of its own.

Each job sends its prolog request, waits for the answer, sends its epilog event, and the next job
begins as soon as that is acknowledged: `at_once` at a time, or, with `every`, one job per interval
whatever the state of the others.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

import msgspec

from benchmarks.subprocess_round import p50_and_p99_ms, run_round, serve_round
from fairbank.agent.protocol import HEADER, VERSION, Greeting
from fairbank.wlm.controller.plugin_codec import encode_plugin_message

WARM_SECONDS = 1.0
START = 1_700_000_000


class PluginOrder(msgspec.Struct, frozen=True):
    """Socket, jobs at once, duration. `every`: a job per so many seconds; `jobs`: end after so
    many.
    """

    socket: str
    at_once: int
    seconds: float
    first_job: int
    accounts: int
    every: float = 0.0
    jobs: int = 0


class PluginRound(msgspec.Struct, frozen=True):
    """Frames answered per second, latency of answers, number of jobs and of refused jobs."""

    rate: float
    p50_ms: float
    p99_ms: float
    jobs: int
    refused: int


def run(order: PluginOrder) -> PluginRound:
    """Run the plug-in and return its round."""
    return run_round("benchmarks.plugin", order, PluginRound)


_FIELDS = (
    b"number=%%d\ncluster=local\njob=%%d\nsubmitted=%d\nrestart=0\nuid=1000\ngid=1000\n"
    b"account=p%%d\npartition=cpu\nqos=normal\n"
    b"tres=cpu=16,mem=64000M,node=1,billing=16\nbilling=16\nlimit=3600\nstart=%d\nbatch=1\n"
    % (START, START)
)
_PROLOG = b"prolog\n" + _FIELDS
_EPILOG = (
    b"epilog\n"
    + _FIELDS
    + b"end=%d\nelapsed=1800\nsuspended=0\nstate=COMPLETED\nexit=0\nbegun=1\n" % (START + 1_800)
)
_VERDICT, _RUN = b"verdict\n", b"\naction=run\n"


class _Plugin(asyncio.Protocol):
    def __init__(self, order: PluginOrder) -> None:
        self._order = order
        self._job = order.first_job
        self._requests: dict[int, tuple[int, float]] = {}
        self._ends: set[int] = set()
        self._number = 0
        self._rest = b""
        self._sending: list[bytes] = []
        self.latencies: list[float] = []
        self.answers = self.refused = 0
        self.stopping = False
        self.idle: asyncio.Event = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(
            encode_plugin_message(Greeting(version=VERSION, slurm="simulated", cluster="local"))
        )

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.stopping:
            raise SystemExit("the agent has closed the connection")

    def begin(self, jobs: int) -> None:
        self.idle.clear()
        for _ in range(jobs):
            self._number += 1
            self._requests[self._number] = (self._job, time.perf_counter())
            self._put(_PROLOG, self._job)
            self._job += 1
        self._flush()

    def _put(self, frame: bytes, job: int) -> None:
        body = frame % (self._number, job, job % self._order.accounts)
        self._sending.append(len(body).to_bytes(HEADER, "big") + body)

    def _flush(self) -> None:
        self._transport.write(b"".join(self._sending))
        self._sending.clear()

    def data_received(self, data: bytes) -> None:
        received, begin = self._rest + data, 0
        more, now = 0, time.perf_counter()
        while len(received) - begin >= HEADER:
            length = int.from_bytes(received[begin : begin + HEADER], "big")
            if len(received) - begin < HEADER + length:
                break
            more += self._handle(received[begin + HEADER : begin + HEADER + length], now)
            begin += HEADER + length
        self._rest = received[begin:]
        if (
            more
            and not self.stopping
            and not self._order.every
            and self.jobs < (self._order.jobs or self.jobs + 1)
        ):
            self.begin(more)
        elif self._sending:
            self._flush()
        if not self._requests and not self._ends:
            self.idle.set()

    def _handle(self, body: bytes, now: float) -> int:
        """Handle one message and return the number of jobs that may begin."""
        if not body.startswith((_VERDICT, b"ack\n")):
            return 0
        self.answers += 1
        number = int(body.split(b"number=", 1)[1].split(b"\n", 1)[0])
        if not body.startswith(_VERDICT):
            self._ends.discard(number)
            return 1
        job, sent_at = self._requests.pop(number)
        self.latencies.append(now - sent_at)
        self.refused += _RUN not in body
        self._number += 1
        self._ends.add(self._number)
        self._put(_EPILOG, job)
        return 0

    @property
    def jobs(self) -> int:
        return self._job - self._order.first_job


async def _round(order: PluginOrder) -> PluginRound:
    loop = asyncio.get_running_loop()
    _, plugin = await loop.create_unix_connection(lambda: _Plugin(order), order.socket)
    pacing = loop.create_task(_paced(plugin, order.every)) if order.every else None
    if pacing is None:
        plugin.begin(order.at_once)
    if not order.jobs:
        await asyncio.sleep(WARM_SECONDS)
    plugin.latencies, plugin.answers, begun = [], 0, time.perf_counter()
    if order.jobs:
        await plugin.idle.wait()
    else:
        await asyncio.sleep(order.seconds)
    seconds, answers, latencies = time.perf_counter() - begun, plugin.answers, plugin.latencies
    plugin.stopping = True
    if pacing is not None:
        pacing.cancel()
    async with asyncio.timeout(60):
        await plugin.idle.wait()
    return PluginRound(answers / seconds, *p50_and_p99_ms(latencies), plugin.jobs, plugin.refused)


async def _paced(plugin: _Plugin, every: float) -> None:
    begun, begun_jobs = time.perf_counter(), 0
    while True:
        due = int((time.perf_counter() - begun) / every) - begun_jobs
        if due > 0:
            plugin.begin(due)
            begun_jobs += due
        await asyncio.sleep(every)


if __name__ == "__main__":
    serve_round(PluginOrder, _round)
