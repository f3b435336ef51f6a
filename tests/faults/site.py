"""Site of the campaigns: a few projects, their credit, and clients that report random lives of
runs.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.witness import Witness
from tests.support.wire import Answer, Wire

CLUSTER, PARTITION, RESOURCE = "local", "cpu", "cpu"
SU = 60
DAY = 86_400


async def found(
    wire: Wire,
    name: str,
    gid: int,
    *,
    credit: int,
    start: str = "2020-01-01",
    end: str = "2040-01-01",
) -> int:
    """A project with one allocation. Its number."""
    answer = await wire.ask("POST", "/project", {"gname": name, "gid": gid})
    assert answer.status == 201, answer.body
    return await granted(wire, name, credit=credit, start=start, end=end)


async def granted(wire: Wire, name: str, *, credit: int, start: str, end: str) -> int:
    """One more allocation of a project. Its number."""
    expected = {
        "account": name,
        "resource": RESOURCE,
        "category": "faults",
        "start": start,
        "end": end,
        "amount": credit,
        "comment": "test",
    }
    return int((await wire.ask("POST", "/alloc", expected)).data["id"])


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


async def filled(wire: Wire, thousands: int) -> None:
    """A history, so that a backup takes a while: so many thousand runs of a project of
    their own.
    """
    await found(wire, "history", 4_001, credit=10**9)
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
    """An agent that reports lives of runs, one after the other: some said twice at once, some from
    their end, some never ended.

    There is a wire for each server, and another for each over which the client says the same at the
    same time.
    """

    number: int
    account: str
    submitted: int
    wires: Sequence[Wire]
    echoes: Sequence[Wire]
    witness: Witness
    rng: random.Random
    life: int = 0

    @property
    def job_id(self) -> int:
        return self.number * 100_000 + self.life

    async def live(self) -> None:
        """One run from its start to its end."""
        self.life += 1
        rng = self.rng
        asked = rng.choice([20, 30]) * SU
        if rng.random() < 0.08:  # the end overtakes the start
            await self._say("complete", amount=rng.randrange(1, SU))
            await self._say("hold", amount=asked)
            return
        if (await self._say("hold", amount=asked, twice=rng.random() < 0.2)).status not in (
            200,
            201,
        ):
            return
        for change in range(rng.choice([0, 0, 1, 2])):
            grown = rng.choice([10, 25, 45]) * SU
            await self._say("adjust", amount=grown, time_limit=7_300 + change, step=change)
        if rng.random() < 0.03:  # nobody ever hears of its end
            self.witness.left_open.add(self.job_id)
            return
        if rng.random() < 0.2:
            await self._say("complete", state="NODE_FAIL", amount=0, twice=rng.random() < 0.2)
        else:
            cost = rng.choices([0, rng.randrange(1, SU), 50 * SU], [3, 16, 1])[
                0
            ]  # the last is more than any hold
            await self._say("complete", amount=cost, twice=rng.random() < 0.2)
        if rng.random() < 0.1:  # a late echo, under a key of its own
            await self._say("adjust", amount=asked, step=9)

    async def _say(self, do: str, *, step: int = 0, twice: bool = False, **more: Any) -> Answer:
        """Report; `twice` at the same time, over two connections."""
        body = report(
            do,
            self.account,
            self.job_id,
            submitted=self.submitted,
            owner=1_000 + self.number % 20,
            **more,
        )
        key = f"{self.job_id}.{do}.{step}"
        output = [
            self.witness.hear(wires, self.rng, "/job", body, key)
            for wires in ([self.wires, self.echoes] if twice else [self.wires])
        ]
        return (await asyncio.gather(*output))[0]
