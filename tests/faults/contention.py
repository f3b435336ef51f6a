"""Load test: many clients request much more of one allocation than it has, while others check its
balance.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.answer_log import PAUSE_SECONDS, UNAVAILABLE, AnswerLog
from tests.faults.site import SU, Client, create_project
from tests.support.wire import ResponseLost, Wire

ACCOUNT = "physics"


@dataclass(frozen=True)
class Contention:
    """Number of clients, number of runs of each, and the seed of all random choices. A client
    requests 20 SU or 30 SU at a time and uses little of it: there are 5 SU for each client, so most
    requests are refused until others release credit.
    """

    clients: int
    runs: int
    seed: int

    @property
    def credit(self) -> int:
        return self.clients * 5 * SU

    async def run_all(
        self, sockets: Sequence[Path], answer_log: AnswerLog, log_figure: Callable[[str], None]
    ) -> None:
        """Run all clients to their end."""
        clients = [
            self.client(number, sockets, answer_log) for number in range(1, self.clients + 1)
        ]
        staff = await self.open(sockets, answer_log)
        over = asyncio.Event()
        begun = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            readers = [
                tasks.create_task(watch(socket_path, staff.allocation, answer_log, over))
                for socket_path in sockets
            ]
            tasks.create_task(staff.adjust_credit(over))
            async with asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(self._report_runs(client))
            over.set()
        seconds = time.monotonic() - begun
        reads, least = (
            sum(task.result()[0] for task in readers),
            min(task.result()[1] for task in readers),
        )
        log_figure(
            f"{self.clients} clients, {len(sockets)} servers, {seconds:.1f} s:"
            f" {answer_log.summary()}"
        )
        log_figure(
            f"{len(answer_log.answers) / seconds:,.0f} operations/s; {reads:,} reads of the"
            f" balance, the lowest was {least} SU-minutes"
        )

    async def open(self, sockets: Sequence[Path], answer_log: AnswerLog) -> Staff:
        """Create a project with its allocation, and the staff that changes its credit."""
        wires = [Wire(socket_path) for socket_path in sockets]
        return Staff(
            await create_project(wires[0], ACCOUNT, 4_000, credit=self.credit),
            wires,
            answer_log,
            random.Random(f"{self.seed}:staff"),
        )

    def client(self, number: int, sockets: Sequence[Path], answer_log: AnswerLog) -> Client:
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
            answer_log,
            random.Random(f"{self.seed}:{number}"),
        )

    async def _report_runs(self, client: Client) -> None:
        for _ in range(self.runs):
            await client.report_run()


@dataclass
class Staff:
    """Staff of the bank: deposit a little credit now and then, or withdraw some."""

    allocation: int
    wires: Sequence[Wire]
    answer_log: AnswerLog
    rng: random.Random

    async def adjust_credit(self, over: asyncio.Event) -> None:
        number = 0
        while not over.is_set():
            number += 1
            what, most = self.rng.choice(
                [("deposit", 200 * SU), ("deposit", 200 * SU), ("withdraw", 20 * SU)]
            )
            body = {"amount": self.rng.randrange(1, most), "comment": "load test"}
            await self.answer_log.request(
                self.wires, self.rng, f"/alloc/{self.allocation}/{what}", body, f"staff.{number}"
            )


async def watch(
    socket: Path, allocation: int, answer_log: AnswerLog, over: asyncio.Event
) -> tuple[int, int]:
    """Check the balance repeatedly: never overdrawn, and consistent. Return the number of reads and
    the lowest balance.
    """
    wire, reads, least = Wire(socket), 0, 1 << 60
    while not over.is_set():
        try:
            answer = await wire.ask("GET", f"/alloc/{allocation}")
        except ResponseLost:
            answer_log.lost += 1
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        answer_log.check_answer(answer)
        if answer.status == UNAVAILABLE:
            continue
        row = answer.data
        assert (
            row["available"]
            == row["deposited"] + row["credit_limit"] - row["charged"] - row["held"]
        )
        assert row["available"] >= 0, f"overdrawn: {row}"
        reads, least = reads + 1, min(least, row["available"])
    return reads, least
