"""Histories of a simulated cluster with faults from a seed.

`python -m tests.wlm.simulation.histories FAULTS SEED...` plays them. With PYTHONHASHSEED=0, which
fixes the order in sets, the same seed gives the same history.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path
from random import Random

import pytest

from fairbank.wlm.core import events as ev
from tests.wlm.core.world import named
from tests.wlm.simulation.simulated_cluster import SimulatedCluster
from tests.wlm.simulation.virtual_loop import VirtualLoop

FAULTS = (
    "controller", "controller", "node", "boot", "silence", "agent", "bank", "answers", "disk",
    "clock",
)  # fmt: skip


class BugLog(logging.Handler):
    """Handler of log lines that keeps those with an exception: there must be none."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.bugs: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.bugs.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


def act(cluster: SimulatedCluster, random: Random) -> None:
    """Let a user make a request."""
    kind = random.choice(["submit"] * 5 + ["cancel", "requeue", "hold", "release", "limit"])
    jobs = list(cluster.state.jobs)
    if kind == "submit" or not jobs:
        cluster.client(
            cluster.submit(
                seconds=random.choice([0, 1, 5, 20, 90]),
                status=random.choice([0, 0, 0, 256]),
                cpus=random.randint(1, 4),
                nodes=random.choice([1, 1, 1, 2]),
                limit=random.choice([10, 60, 600]),
                array=random.choice([None, None, None, "0-3%2"]),
            )
        )
        return
    which = named(random.choice(jobs[-10:]))
    bodies: dict[str, ev.RequestBody] = {
        "cancel": ev.CancelJob(which),
        "requeue": ev.RequeueJob(which),
        "hold": ev.HoldJob(which),
        "release": ev.ReleaseJob(which),
        "limit": ev.UpdateJob(jobs=which, limit=random.choice([30, 300])),
    }
    cluster.client(cluster.request(bodies[kind]))


async def disturb(cluster: SimulatedCluster, random: Random) -> None:
    """Let something fail for some seconds."""
    node, seconds = random.choice(cluster.nodes), random.choice([0.1, 2, 20, 60])
    match random.choice(FAULTS):
        case "controller":
            await cluster.kill()
            await asyncio.sleep(seconds)
            cluster.start()
        case "node":
            node.kill()
            await asyncio.sleep(seconds)
            node.open()
        case "boot":
            node.boot()
            await asyncio.sleep(seconds)
            node.open()
        case "silence":
            node.stall(stalled=True)
            await asyncio.sleep(seconds)
            node.stall(stalled=False)
        case "agent":
            cluster.agent.shut()
            await asyncio.sleep(seconds)
            cluster.agent.open()
        case "bank":
            cluster.agent.bank_is_up = False
            await asyncio.sleep(seconds)
            cluster.agent.bank_is_up = True
        case "answers":
            cluster.agent.loses_answers = True
            await asyncio.sleep(seconds)
            cluster.agent.loses_answers = False
        case "disk":
            cluster.has_full_disk = True
            await asyncio.sleep(seconds)
            cluster.has_full_disk = False
        case "clock":
            cluster.time.jump += random.choice([-600, -2, 2, 600])


async def live(cluster: SimulatedCluster, random: Random, faults: int) -> None:
    """Let users and faults come, and then all end."""
    cluster.start()
    pumping = asyncio.get_running_loop().create_task(cluster.agent.run())
    for _ in range(faults):
        for _ in range(random.randint(1, 12)):
            act(cluster, random)
            await asyncio.sleep(random.expovariate(1.0))
            cluster.check()
        await disturb(cluster, random)
        cluster.check()
    await asyncio.sleep(120)
    for number in list(cluster.state.jobs):
        cluster.client(cluster.request(ev.CancelJob(named(number))))
    await cluster.settle()
    pumping.cancel()


def play(seed: int, faults: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Play the history of a seed."""
    random = Random(seed)
    loop = VirtualLoop(random)
    cluster = SimulatedCluster(folder, loop, random.choice([60, 600, 1_000_000]), patch)
    try:
        loop.play(cluster.until_dead(live(cluster, random, faults)))
        cluster.check_at_rest()
    finally:
        cluster.agent.close()
        cluster.bank.close()


def main(faults: int, seeds: list[int]) -> None:
    """Play some histories. The last line on the standard error has the seed of one that failed."""
    log = BugLog()
    logging.getLogger("fairbank").addHandler(log)
    for seed in seeds:
        try:
            with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
                play(seed, faults, Path(folder), patch)
            if log.bugs:
                raise AssertionError(log.bugs)
        except Exception:  # noqa: BLE001 - any failure is reported with its seed
            sys.excepthook(*sys.exc_info())
            sys.exit(f"seed {seed} failed")


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(word) for word in sys.argv[2:]])
