"""Agent daemon: sockets, threads and the clock around the engine that decides."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from fairbank.agent.control import PROMETHEUS, as_json, listen
from fairbank.agent.engine import Engine
from fairbank.agent.incidents import Incident
from fairbank.agent.metrics import AgentMetrics, status
from fairbank.agent.outbox import Outbox
from fairbank.agent.outbox_writer import UNSAFE_MAX, OutboxWriter
from fairbank.agent.plugin_connection import PluginConnection
from fairbank.agent.protocol import FromAgent, Greeting, PluginMessage, UnreadableFrame
from fairbank.agent.quarantine import Quarantine
from fairbank.agent.reports.bank_status import BankProbe
from fairbank.agent.reports.report import PendingReport, send_reports
from fairbank.agent.settings import AgentSettings
from fairbank.core.errors import FairbankError
from fairbank.rest.client import Client, parse_address
from fairbank.rest.server.daemon_tasks import DaemonTasks
from fairbank.rest.server.unix_socket import bind_unix

_log = logging.getLogger(__name__)

TICK_SECONDS = 0.25


class PeriodicJob(NamedTuple):
    """Job that the agent runs for its scheduler, again and again in a thread of its own.

    `work` blocks and raises nothing; `status` returns JSON for `fairbank agent status`.
    """

    seconds: float
    work: Callable[[], None]
    status: Callable[[], dict[str, Any]]
    waits_first: bool = False


class Agent:
    """Agent daemon.

    Invariant: all state changes in one event loop. Threads only do I/O: one for the outbox, one for
    the quarantine, one for the probe, one per periodic job, and the senders. `_pump_scheduled` and
    `_wake_scheduled` say that `_pump` will run; `_paused` says that the plug-ins are not read from.
    """

    def __init__(
        self, settings: AgentSettings, jobs: Mapping[str, PeriodicJob] | None = None
    ) -> None:
        """Open the outbox and prepare the connection to the bank.

        `jobs` are periodic jobs of the scheduler by their names in the status. Raises FairbankError
        if the outbox or the credentials for the bank cannot be used.
        """
        self._settings, self._jobs = settings, jobs or {}
        self._clock_offset = time.time() - time.monotonic()
        self.engine = Engine(
            settings.terms_of, settings.senders, instance=secrets.token_hex(6), now=time.monotonic()
        )
        self._client = Client(
            parse_address(settings.bank.server, field="bank.server"),
            signer=settings.bank.signer(),
            timeout_seconds=settings.bank.timeout,
        )
        path = Path(settings.outbox.path)
        outbox = Outbox(path, clock_offset=self._clock_offset)
        runs, seqs, credit = outbox.content()
        self.engine.restore(runs, seqs, credit)
        if seqs:
            _log.info("%d reports of an earlier agent wait for the bank", len(seqs))
        self._connections: set[PluginConnection] = set()
        self._probe = BankProbe(
            self.engine.flow, self._client, self.engine.counts, self.connected_clusters
        )
        self.metrics = AgentMetrics(self.engine, self._probe.results)
        self._writer = OutboxWriter(outbox, self.engine.flow, self.engine.credit, self)
        self._quarantine = Quarantine(self.engine, self, path)
        self._senders = ThreadPoolExecutor(settings.senders.maximum, "sender")
        self._job_threads = ThreadPoolExecutor(max(1, len(self._jobs)), "job")
        self._pump_scheduled = self._wake_scheduled = self._paused = False
        self._stopping = asyncio.Event()
        self._tasks = DaemonTasks("the agent", self._stopping.set)

    # ------------------------------------------------------------------ start and stop

    async def run(self, ready: Callable[[Sequence[str]], None]) -> None:
        """Run until SIGTERM or SIGINT; `ready` is called with the sockets once they listen."""
        settings = self._settings
        with contextlib.suppress(ValueError, RuntimeError):  # a test runs it in another thread
            self._tasks.handle_signals()
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._close)
            await self._listen(stack)
            ready([settings.plugin.socket, settings.control.socket])
            text = "ready: slurmctld connects to %s, the bank is at %s"
            _log.info(text, settings.plugin.socket, self._client.address)
            self._tasks.start(self._tick())
            self._tasks.start(self._probe.run())
            for job in self._jobs.values():
                self._tasks.start(self._repeat(job))
            await self._stopping.wait()

    async def _repeat(self, job: PeriodicJob) -> None:
        loop = asyncio.get_running_loop()
        if job.waits_first:
            await asyncio.sleep(job.seconds)
        while True:
            await loop.run_in_executor(self._job_threads, job.work)
            await asyncio.sleep(job.seconds)

    async def _listen(self, stack: contextlib.AsyncExitStack) -> None:
        """Open the sockets; the stack closes them."""
        loop, settings = asyncio.get_running_loop(), self._settings
        uids = settings.plugin.uids()
        pages = {
            "/status": lambda: as_json(self.status()),
            "/metrics": lambda: (PROMETHEUS, self.metrics.page(time.monotonic())),
            "/health": lambda: as_json({"status": "ok"}),
        }

        def connect() -> PluginConnection:
            return PluginConnection(self, lambda peer: peer.uid in uids, self._connections)

        control_path, plugin_path = Path(settings.control.socket), Path(settings.plugin.socket)
        port = settings.control.port
        servers = await listen(pages, control_path, port, field="control.port")
        stack.callback(control_path.unlink, missing_ok=True)
        servers.append(await loop.create_unix_server(connect, sock=bind_unix(plugin_path)))
        stack.callback(plugin_path.unlink, missing_ok=True)
        for server in servers:
            stack.callback(server.close)

    def _close(self) -> None:
        """Write the last changes. The next agent repeats requests that are under way."""
        for connection in list(self._connections):
            connection.hang_up()
        self._senders.shutdown(wait=False, cancel_futures=True)
        self._job_threads.shutdown(wait=False, cancel_futures=True)
        self._probe.close()
        self._quarantine.close()
        self._writer.close()

    # ------------------------------------------------------------------ plug-in handler

    def on_greeting(self, connection: PluginConnection, greeting: Greeting) -> None:
        self.metrics.plugin_connections = len(self._connections)
        text = "slurmctld %s of cluster %s is connected: %s"
        _log.log(_level(greeting), text, greeting.slurm, greeting.cluster, connection.peer)
        connection.pause(paused=self._paused)

    def on_messages(self, connection: PluginConnection, messages: Sequence[PluginMessage]) -> None:
        now = time.monotonic()
        for message in messages:
            self.engine.handle_message(message, connection, now)
        self.pump_soon()

    def on_unreadable(
        self, connection: PluginConnection, frames: Sequence[UnreadableFrame]
    ) -> None:
        self._quarantine.take(connection, connection.peer, frames)
        self.pump_soon()

    def on_close(self, connection: PluginConnection) -> None:
        self.metrics.plugin_connections = len(self._connections)
        if connection.greeting is not None:
            text = "slurmctld is not connected any more: %s"
            _log.log(_level(connection.greeting), text, connection.peer)

    def on_incident(self, kind: Incident, text: str) -> None:
        self.engine.incidents.record(kind, text, time.monotonic())

    def _greetings(self) -> list[Greeting]:
        return [connection.greeting for connection in self._connections if connection.greeting]

    def connected_clusters(self) -> frozenset[str]:
        return frozenset(greeting.cluster for greeting in self._greetings())

    # ------------------------------------------------------------------ work

    def pump_soon(self) -> None:
        """Run `_pump` once for all that happens in this turn of the event loop."""
        if not self._pump_scheduled:
            self._pump_scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Start all I/O that is due."""
        self._pump_scheduled = False
        now = time.monotonic()
        while batch := self.engine.flow.next_request(now):
            self._tasks.start(self._send(batch))
        self._wake_when_due(now)
        self._send_replies()
        self._writer.start_work(now)
        if clusters := self.engine.take_reconnect(now):
            _log.info("the bank is back: slurmctld must connect again to release deferred jobs")
            for connection in list(self._connections):
                greeting = connection.greeting
                # A prolog releases no jobs, and still waits for its verdict.
                if greeting and greeting.cluster in clusters and not greeting.is_for_one_job:
                    connection.hang_up()
        self._pause_when_behind()

    def _wake_when_due(self, now: float) -> None:
        """Run `_pump` when reports that wait for others must go without them."""
        due = self.engine.flow.next_due()
        if due is not None and due > now and not self._wake_scheduled:
            self._wake_scheduled = True
            asyncio.get_running_loop().call_later(due - now, self._wake)

    def _wake(self) -> None:
        self._wake_scheduled = False
        self._pump()

    def _send_replies(self) -> None:
        by_connection: dict[PluginConnection, list[FromAgent]] = {}
        for receipt, reply in self.engine.flow.take_replies():
            by_connection.setdefault(receipt.connection, []).append(reply)
        for connection, replies in by_connection.items():
            connection.send(replies)
        waits, self.engine.waits = self.engine.waits, []
        self.metrics.record_waits(waits)

    def _pause_when_behind(self) -> None:
        behind = len(self.engine.flow.memory.changes.reports) > UNSAFE_MAX
        if behind != self._paused:
            self._paused = behind
            for connection in self._connections:
                connection.pause(paused=behind)

    async def _tick(self) -> None:
        """Do what time brings: deadlines, retries, smaller pools."""
        # A task that ends the agent when it fails: without it no question would be decided in time.
        while True:
            now = time.monotonic()
            self.engine.tick(now)
            self._pump()
            times = (self.engine.questions.next_deadline(), self.engine.flow.bank.retry_at)
            due = min([now + TICK_SECONDS, *(time for time in times if time and time > now)])
            await asyncio.sleep(max(0.005, due - now))

    async def _send(self, batch: list[PendingReport]) -> None:
        loop = asyncio.get_running_loop()
        bodies = [report.body for report in batch]
        results = await loop.run_in_executor(self._senders, send_reports, self._client, bodies)
        now = time.monotonic()
        if isinstance(results, FairbankError):
            self.engine.handle_failure(batch, results, now)
        else:
            self.engine.handle_results(batch, results, now)
        self.pump_soon()

    def start_task(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.start(work)

    def status(self) -> dict[str, object]:
        """Return the status as JSON."""
        jobs = {name: job.status() for name, job in self._jobs.items()}
        own = {
            "plugins": [
                {"slurm": greeting.slurm, "cluster": greeting.cluster}
                for greeting in self._greetings()
            ],
            "quarantine": self._quarantine.status(),
            "site_factor": None,
            "release": None,
        }
        now = time.monotonic()
        return own | jobs | status(self.engine, self._probe.results, now, self._clock_offset)


def _level(greeting: Greeting) -> int:
    """Return the level of log lines about a connection."""
    return logging.DEBUG if greeting.is_for_one_job else logging.INFO
