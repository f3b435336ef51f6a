"""Simulated agent: its real engine, outbox and plug-in connections, beside a bank in this process.

The engine's own simulated world has no clock; here the virtual loop drives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from fairbank.agent.incidents import Incident
from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.plugin_connection import PluginConnection
from fairbank.agent.protocol import Greeting, PluginMessage, UnreadableFrame
from fairbank.core.time import Instant
from tests.agent.bank import InProcessBank
from tests.agent.world import World
from tests.wlm.simulation.virtual_loop import VirtualLoop, VirtualTime

_PUMP_SECONDS = 0.2


class SimulatedAgent(World):
    """Agent of a simulation. `bank_is_up`: requests reach the bank. `loses_answers`: one in three
    of its answers is lost.
    """

    def __init__(
        self, folder: Path, bank: InProcessBank, loop: VirtualLoop, time: VirtualTime
    ) -> None:
        self._loop, self._time = loop, time
        self._path = str(folder / "agent.sock")
        self._plugins: set[PluginConnection] = set()
        self._is_up = False
        self.bank_is_up, self.loses_answers = True, False
        super().__init__(folder, bank, PartitionTerms(patience=4))
        self.open()

    def open(self) -> None:
        """Let the controller connect."""
        self._is_up = True
        self._loop.listeners[self._path] = lambda: PluginConnection(
            self, lambda _: True, self._plugins
        )

    def shut(self) -> None:
        """Kill the agent; another one finds its outbox."""
        self._is_up = False
        self._loop.listeners.pop(self._path, None)
        for plugin in list(self._plugins):
            plugin.hang_up()
        self._plugins.clear()
        self.kill()

    async def run(self) -> None:
        """Let the engine work, until cancelled."""
        while True:
            await asyncio.sleep(self._loop.random.uniform(0.01, _PUMP_SECONDS))
            if self._is_up:
                self._pump()

    def _pump(self) -> None:
        random = self._loop.random
        self.bank.clock.at = Instant(int(self._time.time()))
        self.pass_time(self._loop.time() + 1_000 - self.now)
        self.load()
        while self.send():
            pass
        while self.in_flight and random.random() < 0.8:
            is_answered = not self.loses_answers or random.random() < 0.67
            self.finish_request(
                random.randrange(9), is_received=self.bank_is_up, is_answered=is_answered
            )
        self.write()
        for receipt, answer in self.engine.flow.take_replies():
            receipt.connection.send([answer])
        if self.engine.take_reconnect(self.now):
            for plugin in list(self._plugins):
                plugin.hang_up()

    @property
    def is_idle(self) -> bool:
        flow = self.engine.flow
        return not (self.in_flight or len(flow.queue) or flow.memory.changes)

    # ------------------------------------------------------------------ the plug-in's connections

    def on_greeting(self, connection: PluginConnection, greeting: Greeting) -> None:
        """Need nothing of it."""

    def on_messages(self, connection: PluginConnection, messages: Sequence[PluginMessage]) -> None:
        for message in messages:
            self.engine.handle_message(message, connection, self.now)

    def on_unreadable(
        self, connection: PluginConnection, frames: Sequence[UnreadableFrame]
    ) -> None:
        raise AssertionError(frames)

    def on_close(self, connection: PluginConnection) -> None:
        """Need nothing of it."""

    def on_incident(self, kind: Incident, text: str) -> None:
        raise AssertionError(f"{kind}: {text}")
