"""A storm: many clients who want much more of one allocation than there is, while others watch what
is left.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.site import SU, Client, found
from tests.faults.witness import AWAY, PAUSE_SECONDS, Witness
from tests.support.wire import Lost, Wire

ACCOUNT = "physics"


@dataclass(frozen=True)
class Storm:
    """Number of clients, number of runs of each, and the seed of all their choices. A client
    requests 20 SU or 30 SU at a time and uses little of it: with 5 SU for each, most must wait for
    others.
    """

    clients: int
    runs: int
    seed: int

    @property
    def credit(self) -> int:
        return self.clients * 5 * SU

    async def blow(
        self, sockets: Sequence[Path], witness: Witness, tell: Callable[[str], None]
    ) -> None:
        """The whole storm."""
        clients = [self.client(number, sockets, witness) for number in range(1, self.clients + 1)]
        staff = await self.open(sockets, witness)
        over = asyncio.Event()
        begun = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            watching = [
                tasks.create_task(watch(socket_path, staff.allocation, witness, over))
                for socket_path in sockets
            ]
            tasks.create_task(staff.go_on(over))
            async with asyncio.TaskGroup() as living:
                for client in clients:
                    living.create_task(self._lives(client))
            over.set()
        seconds = time.monotonic() - begun
        looks, least = (
            sum(task.result()[0] for task in watching),
            min(task.result()[1] for task in watching),
        )
        tell(
            f"{self.clients} clients, {len(sockets)} servers, {seconds:.1f} s: {witness.summary()}"
        )
        tell(
            f"{len(witness.told) / seconds:,.0f} operations/s; {looks:,} looks at the balance, the"
            f" least was {least} SU-minutes"
        )

    async def open(self, sockets: Sequence[Path], witness: Witness) -> Staff:
        """A project with its allocation, and the staff that looks after it."""
        wires = [Wire(socket_path) for socket_path in sockets]
        return Staff(
            await found(wires[0], ACCOUNT, 4_000, credit=self.credit),
            wires,
            witness,
            random.Random(f"{self.seed}:staff"),
        )

    def client(self, number: int, sockets: Sequence[Path], witness: Witness) -> Client:
        wires, echoes = (
            [Wire(socket_path) for socket_path in sockets],
            [Wire(socket_path) for socket_path in sockets],
        )
        return Client(
            number,
            ACCOUNT,
            int(time.time()),
            wires,
            echoes,
            witness,
            random.Random(f"{self.seed}:{number}"),
        )

    async def _lives(self, client: Client) -> None:
        for _ in range(self.runs):
            await client.live()


@dataclass
class Staff:
    """Now and then gives a little more credit, or takes some back."""

    allocation: int
    wires: Sequence[Wire]
    witness: Witness
    rng: random.Random

    async def go_on(self, over: asyncio.Event) -> None:
        number = 0
        while not over.is_set():
            number += 1
            what, most = self.rng.choice(
                [("deposit", 200 * SU), ("deposit", 200 * SU), ("withdraw", 20 * SU)]
            )
            body = {"amount": self.rng.randrange(1, most), "comment": "storm"}
            await self.witness.hear(
                self.wires, self.rng, f"/alloc/{self.allocation}/{what}", body, f"staff.{number}"
            )


async def watch(
    socket: Path, allocation: int, witness: Witness, over: asyncio.Event
) -> tuple[int, int]:
    """Look at the balance all the time: never overdrawn, always adding up. How often, and the least
    that was left.
    """
    wire, looks, least = Wire(socket), 0, 1 << 60
    while not over.is_set():
        try:
            answer = await wire.ask("GET", f"/alloc/{allocation}")
        except Lost:
            witness.lost += 1
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        witness.heard(answer)
        if answer.status == AWAY:
            continue
        row = answer.data
        assert (
            row["available"]
            == row["deposited"] + row["credit_limit"] - row["charged"] - row["held"]
        )
        assert row["available"] >= 0, f"overdrawn: {row}"
        looks, least = looks + 1, min(least, row["available"])
    return looks, least
