"""Kills servers and databases at random instants while clients work, and starts them again."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.faults.site import Client
from tests.faults.witness import PAUSE_SECONDS, Witness
from tests.support.server import FairbankServer
from tests.support.wire import Lost, Wire

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
    """Strikes `victims` by their names. A strike may take several at once."""

    banks: Sequence[FairbankServer]
    victims: dict[str, Victim]
    witness: Witness
    rng: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)

    async def strike(self, times: int) -> None:
        """Kill and start again, `times` times; each time go on only when everything answers."""
        for _ in range(times):
            await self._instant()
            some = self.rng.sample(
                sorted(self.victims),
                self.rng.choices([1, 2], [4, 1])[0] if len(self.victims) > 1 else 1,
            )
            await asyncio.gather(*(asyncio.to_thread(self.victims[name].kill) for name in some))
            self.kills.update(some)
            begun = time.monotonic()
            self.rng.shuffle(some)
            await asyncio.gather(*(asyncio.to_thread(begin, self.victims[name]) for name in some))
            await asyncio.gather(*(answers(bank) for bank in self.banks))
            self.recoveries.append(time.monotonic() - begun)

    async def _instant(self) -> None:
        """Some work further, and then any moment of the next few batches: not a wait, but the
        chance itself.
        """
        seen, more = len(self.witness.waits), self.rng.randrange(1, MOST_ANSWERS)
        await until(lambda: len(self.witness.waits) >= seen + more, f"{more} more answers")
        await asyncio.sleep(self.rng.uniform(0, INSTANT_SECONDS))

    def summary(self) -> str:
        took = sorted(self.recoveries)
        figures = (
            f"median {took[len(took) // 2]:.2f} s, longest {took[-1]:.2f} s" if took else "none"
        )
        return (
            f"{self.kills.total()} kills ({dict(self.kills)}); from the start to the first answer"
            f" from the books: {figures}"
        )


def begin(victim: Victim) -> None:
    """Start it as systemd would: a bank that finds its database away ends, and is started again."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return victim.start()
        except RuntimeError as ended:
            assert NO_DATABASE in str(ended), ended
            assert time.monotonic() < deadline, ended


async def answers(bank: FairbankServer) -> None:
    """Return when the bank reads its books out."""
    wire = Wire(bank.socket)

    async def reads() -> bool:
        try:
            return (await wire.ask("GET", "/balance")).status == 200
        except Lost:
            return False

    deadline = time.monotonic() + WAIT_SECONDS
    while not await reads():
        assert time.monotonic() < deadline, f"no recovery:\n{bank.tail()}"
        await asyncio.sleep(PAUSE_SECONDS)


async def until(condition: Callable[[], object], what: str) -> None:
    """As wait_until, but lets others work."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(PAUSE_SECONDS / 4)


async def work_until(over: asyncio.Event, client: Client) -> None:
    """Life after life, until it is over; the last one is lived to its end."""
    while not over.is_set():
        await client.live()
