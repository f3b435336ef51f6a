"""The agent at work: its sockets, its threads and its clock around the core that decides."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fairbank.core.errors import FairbankError
from fairbank.rest.client import Client, parse_address
from fairbank.rest.server.unix_socket import bind_unix
from fairbank.slurm.agent.aside import Aside
from fairbank.slurm.agent.control import HEAD_MAX, answering, as_json
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.disk import Disk
from fairbank.slurm.agent.door import Door
from fairbank.slurm.agent.hearing import hear
from fairbank.slurm.agent.letters import Letter
from fairbank.slurm.agent.look_rounds import LookRounds
from fairbank.slurm.agent.metrics import Metrics, status
from fairbank.slurm.agent.mishaps import Mishap
from fairbank.slurm.agent.outbox import Outbox
from fairbank.slurm.agent.releasing import ReleaseRounds
from fairbank.slurm.agent.sending import send
from fairbank.slurm.agent.settings import AgentSettings
from fairbank.slurm.agent.settling import answered, failed
from fairbank.slurm.agent.site_factor import TableWriter
from fairbank.slurm.frames import Unread
from fairbank.slurm.records import Answer, Greeting, Told

_log = logging.getLogger(__name__)

TICK_SECONDS = 0.25


class Agent:
    """One agent. All of it runs in one event loop, but for the disk (one thread) and the senders (one each)."""

    def __init__(self, settings: AgentSettings) -> None:
        """Raises the FairbankError that keeps it from its outbox or from signing in."""
        self._settings = settings
        self._ahead = time.time() - time.monotonic()
        self.core = Core(
            settings.terms_of, settings.senders, life=secrets.token_hex(6), now=time.monotonic()
        )
        self._client = Client(
            parse_address(settings.bank.server, field="bank.server"),
            signer=settings.bank.signer(),
            timeout_seconds=settings.bank.timeout,
        )
        outbox = Outbox(Path(settings.outbox.path), ahead=self._ahead)
        left = outbox.left()
        self.core.restore(*left)
        if left.seqs:
            _log.info("%d reports of an agent before this one go to the bank", len(left.seqs))
        self._doors: set[Door] = set()
        self._looker = LookRounds(self.core, self._client, self._greeted)
        self.metrics = Metrics(self.core, self._looker.looks)
        self._table = TableWriter(settings) if settings.site_factor.path else None
        self._releaser = ReleaseRounds(settings) if settings.release.when_paid else None
        rounds = (self._looker, self._table, self._releaser)
        self._rounds: list[LookRounds | TableWriter | ReleaseRounds] = [
            each for each in rounds if each is not None
        ]
        self._disk = Disk(outbox, self.core, self._do, self.pump_soon)
        self._aside = Aside(Path(settings.outbox.path), self.core, self._do, self.pump_soon)
        self._wires = ThreadPoolExecutor(settings.senders.maximum, "sender")
        self._pumping = self._full = self._will_pump = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()

    # ------------------------------------------------------------------ life

    async def run(self, ready: Callable[[Sequence[str]], None]) -> None:
        """Until SIGTERM or SIGINT; `ready` is told where it listens."""
        loop, settings = asyncio.get_running_loop(), self._settings
        with contextlib.suppress(
            ValueError, RuntimeError
        ):  # not in the main thread, as under a test
            for each in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(each, self._over.set)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._close)
            uids = settings.plugin.uids()
            for server, path in await self._listen(lambda peer_uid: peer_uid in uids):
                stack.callback(self._shut, server, path)
            ready([settings.plugin.socket, settings.control.socket])
            _log.info(
                "ready: slurmctld is heard at %s, the bank asked at %s",
                settings.plugin.socket,
                self._client.address,
            )
            self._do(self._tick())
            for rounds in self._rounds:
                self._do(rounds.run())
            await self._over.wait()

    async def _listen(
        self, allowed: Callable[[int], bool]
    ) -> list[tuple[asyncio.Server, str | None]]:
        loop, settings = asyncio.get_running_loop(), self._settings
        pages = {
            "/status": lambda: as_json(self.status()),
            "/metrics": lambda: ("text/plain; version=0.0.4; charset=utf-8", self._metrics()),
            "/health": lambda: as_json({"status": "ok"}),
        }
        control = bind_unix(Path(settings.control.socket))
        plugin = bind_unix(Path(settings.plugin.socket))
        servers: list[tuple[asyncio.Server, str | None]] = [
            (
                await asyncio.start_unix_server(answering(pages), sock=control, limit=HEAD_MAX),
                settings.control.socket,
            ),
            (
                await loop.create_unix_server(
                    lambda: Door(self, lambda peer: allowed(peer.uid), self._doors), sock=plugin
                ),
                settings.plugin.socket,
            ),
        ]
        if settings.control.port is not None:
            try:
                tcp = await asyncio.start_server(
                    answering(pages), "127.0.0.1", settings.control.port, limit=HEAD_MAX
                )
            except OSError as bad:
                raise FairbankError(
                    f"cannot listen on port {settings.control.port}: {bad.strerror}",
                    field="control.port",
                    remedy="choose another port",
                ) from bad
            servers.append((tcp, None))
        return servers

    def _shut(self, server: asyncio.Server, path: str | None) -> None:
        if path is not None:
            Path(path).unlink(missing_ok=True)
        server.close()

    def _close(self) -> None:
        """What is not written yet is written; requests under way are waited for, or asked again by the next agent."""
        for door in list(self._doors):
            door.hang_up()
        self._wires.shutdown(wait=False, cancel_futures=True)
        for each in self._rounds:
            each.close()
        self._aside.close()
        self._disk.close()

    # ------------------------------------------------------------------ the plug-in

    def welcome(self, door: Door, greeting: Greeting) -> None:
        self.metrics.plugins = len(self._doors)
        _log.info(
            "slurmctld %s of cluster %s is connected: %s",
            greeting.slurm,
            greeting.cluster,
            door.who,
        )
        door.pause(paused=self._full)

    def hear(self, door: Door, told: Sequence[Told]) -> None:
        now = time.monotonic()
        for each in told:
            hear(self.core, each, door, now)
        self.pump_soon()

    def put_aside(self, door: Door, unread: Sequence[Unread]) -> None:
        self._aside.take(door, door.who, unread)
        self.pump_soon()

    def _greeted(self) -> frozenset[str]:
        return frozenset(each.greeting.cluster for each in self._doors if each.greeting)

    def farewell(self, door: Door) -> None:
        self.metrics.plugins = len(self._doors)
        if door.greeting is not None:
            _log.info("slurmctld is not connected any more: %s", door.who)

    def befell(self, what: Mishap, words: str) -> None:
        self.core.mishaps.befell(what, words, time.monotonic())

    # ------------------------------------------------------------------ what is to be done

    def pump_soon(self) -> None:
        """Look, once for all that happens in this turn of the loop."""
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        now = time.monotonic()
        while batch := self.core.next_request(now):
            self._do(self._send(batch))
        self._pump_when_due(now)
        self._say()
        self._disk.look(now)
        if self.core.lost_touch(now):
            _log.info(
                "the bank is back: slurmctld's plug-in is to connect again, and so to release what was put off"
            )
            for door in list(self._doors):
                door.hang_up()
        self._mind_the_crowd()

    def _pump_when_due(self, now: float) -> None:
        """What waits for others is not forgotten when none come."""
        due = self.core.next_due()
        if due is not None and due > now and not self._will_pump:
            self._will_pump = True
            asyncio.get_running_loop().call_later(due - now, self._pump_now)

    def _pump_now(self) -> None:
        self._will_pump = False
        self._pump()

    def _do(self, what: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bug := task.exception()) is not None:
            _log.critical("the agent has a bug, and ends so as to be started again", exc_info=bug)
            self._over.set()

    def _say(self) -> None:
        sayings, self.core.sayings = self.core.sayings, []
        by_door: dict[Door, list[Answer]] = {}
        for receipt, answer in sayings:
            by_door.setdefault(receipt.door, []).append(answer)
        for door, answers in by_door.items():
            door.say(answers)
        waits, self.core.waits = self.core.waits, []
        self.metrics.waited(waits)

    def _mind_the_crowd(self) -> None:
        full = self._disk.is_behind
        if full != self._full:
            self._full = full
            for door in self._doors:
                door.pause(paused=full)

    async def _tick(self) -> None:
        """What time brings: deadlines, another try, smaller pools. A task, for without it no question would be decided in time: where it
        ends, the agent does."""
        while True:
            now = time.monotonic()
            self.core.tick(now)
            self._pump()
            due = [
                now + TICK_SECONDS,
                *(
                    each
                    for each in (self.core.questions.next_deadline(), self.core.bank.retry_at)
                    if each and each > now
                ),
            ]
            await asyncio.sleep(max(0.005, min(due) - now))

    # ------------------------------------------------------------------ the bank

    async def _send(self, batch: list[Letter]) -> None:
        came = await asyncio.get_running_loop().run_in_executor(
            self._wires, send, self._client, batch
        )
        now = time.monotonic()
        if isinstance(came, FairbankError):
            failed(self.core, batch, came, now)
        else:
            answered(self.core, batch, came, now)
        self.pump_soon()

    # ------------------------------------------------------------------ of itself

    def status(self) -> dict[str, object]:
        plugins = [
            {"slurm": each.greeting.slurm, "cluster": each.greeting.cluster}
            for each in self._doors
            if each.greeting
        ]
        table = None if self._table is None else self._table.status()
        released = None if self._releaser is None else self._releaser.status()
        own = {
            "plugins": plugins,
            "aside": self._aside.status(),
            "site_factor": table,
            "release": released,
        }
        return own | status(self.core, self._looker.looks, time.monotonic(), self._ahead)

    def _metrics(self) -> bytes:
        return self.metrics.page(time.monotonic())
