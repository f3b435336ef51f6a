"""Site of the campaigns: a few projects, their credit, and clients that report random runs."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.answer_log import AnswerLog
from tests.support.wire import Answer, Wire

CLUSTER, PARTITION, RESOURCE = "local", "cpu", "cpu"
SU = 60
DAY = 86_400


async def create_project(
    wire: Wire,
    name: str,
    gid: int,
    *,
    credit: int,
    start: str = "2020-01-01",
    end: str = "2040-01-01",
) -> int:
    """Create a project with one allocation and return the allocation's number."""
    answer = await wire.ask("POST", "/project", {"gname": name, "gid": gid})
    assert answer.status == 201, answer.body
    return await add_allocation(wire, name, credit=credit, start=start, end=end)


async def add_allocation(wire: Wire, name: str, *, credit: int, start: str, end: str) -> int:
    """Create another allocation of a project and return its number."""
    body = {
        "account": name,
        "resource": RESOURCE,
        "category": "research",
        "start": start,
        "end": end,
        "amount": credit,
        "comment": "test",
    }
    return int((await wire.ask("POST", "/alloc", body)).data["id"])


def report(
    do: str, account: str, job_id: int, *, submitted: int, owner: int, **more: Any
) -> dict[str, Any]:
    """Return the report of a run as an agent sends it."""
    facts = {
        "do": do,
        "cluster": CLUSTER,
        "job_id": job_id,
        "submitted": submitted,
        "owner_uid": owner,
        "account": account,
        "partition": PARTITION,
        "start": submitted,
    }
    if do == "complete":
        facts |= {"end": submitted + 3_600, "elapsed": 3_600, "state": "COMPLETED"}
    else:
        facts |= {"time_limit": 7_200}
    return facts | more


async def create_history(wire: Wire, thousands: int) -> None:
    """Report `thousands` thousand runs of another project, so that a backup takes some time."""
    await create_project(wire, "history", 4_001, credit=10**9)
    for thousand in range(thousands):
        facts = [
            {
                "job_id": thousand * 1_000 + number + 1,
                "submitted": int(time.time()),
                "owner": number % 50,
            }
            for number in range(1_000)
        ]
        for do, amount in (("hold", SU), ("complete", 7)):
            reports = [report(do, "history", amount=amount, **more) for more in facts]
            assert {
                row["status"]
                for row in (await wire.ask("POST", "/job/bulk", {"reports": reports})).data
            } == {201}


@dataclass
class Client:
    """Agent that reports one run after the other: some reports twice at the same time, some ends
    before starts, some runs without end. `wires` has a connection to each server; `echoes` has a
    second one for simultaneous copies.
    """

    number: int
    account: str
    submitted: int
    wires: Sequence[Wire]
    echoes: Sequence[Wire]
    answer_log: AnswerLog
    rng: random.Random
    runs: int = 0

    @property
    def job_id(self) -> int:
        return self.number * 100_000 + self.runs

    async def report_run(self) -> None:
        """Report one run from its start to its end."""
        self.runs += 1
        rng = self.rng
        amount_held = rng.choice([20, 30]) * SU
        if rng.random() < 0.08:  # the end arrives before the start
            await self._report("complete", amount=rng.randrange(1, SU))
            await self._report("hold", amount=amount_held)
            return
        if (
            await self._report("hold", amount=amount_held, twice=rng.random() < 0.2)
        ).status not in (200, 201):
            return
        for change in range(rng.choice([0, 0, 1, 2])):
            grown = rng.choice([10, 25, 45]) * SU
            await self._report("adjust", amount=grown, time_limit=7_300 + change, step=change)
        if rng.random() < 0.03:  # its end is never reported
            self.answer_log.left_open.add(self.job_id)
            return
        if rng.random() < 0.2:
            await self._report("complete", state="NODE_FAIL", amount=0, twice=rng.random() < 0.2)
        else:
            cost = rng.choices([0, rng.randrange(1, SU), 50 * SU], [3, 16, 1])[
                0
            ]  # the last exceeds any hold
            await self._report("complete", amount=cost, twice=rng.random() < 0.2)
        if rng.random() < 0.1:  # a late report with another key
            await self._report("adjust", amount=amount_held, step=9)

    async def _report(self, do: str, *, step: int = 0, twice: bool = False, **more: Any) -> Answer:
        """Send a report; `twice`: at the same time over two connections."""
        body = report(
            do,
            self.account,
            self.job_id,
            submitted=self.submitted,
            owner=1_000 + self.number % 20,
            **more,
        )
        key = f"{self.job_id}.{do}.{step}"
        reports_sent = [
            self.answer_log.request(wires, self.rng, "/job", body, key)
            for wires in ([self.wires, self.echoes] if twice else [self.wires])
        ]
        return (await asyncio.gather(*reports_sent))[0]
