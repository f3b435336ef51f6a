"""Kills of servers and databases at random times while clients work, each followed by a restart."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.faults.answer_log import PAUSE_SECONDS, AnswerLog
from tests.faults.site import Client
from tests.support.server import FairbankServer
from tests.support.wire import ResponseLost, Wire

WAIT_SECONDS = 120
MOST_ANSWERS = 80
INSTANT_SECONDS = 0.03
NO_DATABASE = "the database does not answer"


class Victim(Protocol):
    """A server of the bank, or a database."""

    def kill(self) -> None: ...
    def start(self) -> None: ...


@dataclass
class Nemesis:
    """Kills random `victims`, one or several at a time."""

    banks: Sequence[FairbankServer]
    victims: dict[str, Victim]
    answer_log: AnswerLog
    rng: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)

    async def strike(self, times: int) -> None:
        """Kill and restart `times` times; continue each time when all servers answer."""
        for _ in range(times):
            await self._instant()
            struck = self.rng.sample(
                sorted(self.victims),
                self.rng.choices([1, 2], [4, 1])[0] if len(self.victims) > 1 else 1,
            )
            await asyncio.gather(*(asyncio.to_thread(self.victims[name].kill) for name in struck))
            self.kills.update(struck)
            started = time.monotonic()
            self.rng.shuffle(struck)
            await asyncio.gather(*(asyncio.to_thread(begin, self.victims[name]) for name in struck))
            await asyncio.gather(*(wait_until_answering(bank) for bank in self.banks))
            self.recoveries.append(time.monotonic() - started)

    async def _instant(self) -> None:
        """Wait for some more answers, and then for a random part of a batch, so that kills hit any
        moment.
        """
        seen, more = len(self.answer_log.latencies), self.rng.randrange(1, MOST_ANSWERS)
        await wait_for(
            lambda: len(self.answer_log.latencies) >= seen + more, f"{more} more answers"
        )
        await asyncio.sleep(self.rng.uniform(0, INSTANT_SECONDS))

    def summary(self) -> str:
        durations = sorted(self.recoveries)
        figures = (
            f"median {durations[len(durations) // 2]:.2f} s, longest {durations[-1]:.2f} s"
            if durations
            else "none"
        )
        return (
            f"{self.kills.total()} kills ({dict(self.kills)}); from the start to the first answer"
            f" from the ledger: {figures}"
        )


def begin(victim: Victim) -> None:
    """Start the victim as systemd does: a bank ends if its database does not answer, and is started
    again.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return victim.start()
        except RuntimeError as ended:
            assert NO_DATABASE in str(ended), ended
            assert time.monotonic() < deadline, ended


async def wait_until_answering(bank: FairbankServer) -> None:
    """Wait until the bank answers from its ledger."""
    wire = Wire(bank.socket)

    async def has_answer() -> bool:
        try:
            return (await wire.ask("GET", "/balance")).status == 200
        except ResponseLost:
            return False

    deadline = time.monotonic() + WAIT_SECONDS
    while not await has_answer():
        assert time.monotonic() < deadline, f"no recovery:\n{bank.tail()}"
        await asyncio.sleep(PAUSE_SECONDS)


async def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition without blocking the event loop."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timeout while waiting for {what}"
        await asyncio.sleep(PAUSE_SECONDS / 4)


async def report_until(over: asyncio.Event, client: Client) -> None:
    """Report runs until the event is set; the last run is reported completely."""
    while not over.is_set():
        await client.report_run()
