"""A storm: a hundred faults of all kinds in one run while jobs come and go, and afterwards books without a fault."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from fairbank.agent.protocol.messages import Verdict
from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, Plugin, asks, ends, limits
from tests.agent.running_agent import agent_at

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(1_800)]

SEED = 20_261_121
TABLES = '[terms]\npatience = 1\n[partitions.gpu]\noutage_policy = "open"'
STEP_SECONDS = 0.3


class Jobs:
    """Jobs that ask, run when they are let, and end; those of the gpu partition run whatever becomes of the bank."""

    def __init__(self, plugin: Plugin, rng: random.Random) -> None:
        self._plugin, self._rng = plugin, rng
        self._next = 1
        self._asked: dict[int, int] = {}  # the number of the question to its job
        self._running: list[int] = []
        self.begun: set[int] = set()
        self.put_off = 0

    @staticmethod
    def facts(job: int) -> dict[str, Any]:
        return {"billing": Fraction(job % 7 + 1), "partition": "gpu" if job % 3 == 0 else "cpu"}

    @staticmethod
    def cost(job: int) -> int:
        return job % 7 + 1  # a minute each

    def go_on(self, fresh: int) -> None:
        """New jobs ask, those that were answered begin or go, some that run end or change their limit."""
        for _ in range(fresh):
            (number,) = self._plugin.say(asks(self._next, **self.facts(self._next)))
            self._asked[number] = self._next
            self._next += 1
        if not self._plugin.hear():
            self._plugin.connect()
        for number in [each for each in self._asked if each in self._plugin.answers]:
            self._answered(self._asked.pop(number), self._plugin.answers[number])
        for job in self._rng.sample(self._running, (len(self._running) + 2) // 3):
            if self._rng.random() < 0.2:
                self._plugin.say(limits(job, self._rng.choice((1_800, 7_200)), **self.facts(job)))
            else:
                self._running.remove(job)
                self._plugin.say(ends(job, 60, **self.facts(job)))

    def _answered(self, job: int, said: object) -> None:
        assert isinstance(said, Verdict)
        if said.action == "run":
            self.begun.add(job)
            self._running.append(job)
        else:
            self.put_off += 1
            self._plugin.say(ends(job, 0, begun=False, state="REQUEUED", **self.facts(job)))

    @property
    def under_way(self) -> bool:
        return bool(self._asked or self._running or self._plugin.unanswered)


def test_random_faults_lose_and_double_no_charge(
    centre: Centre, rounds: Callable[[int, int], int]
) -> None:
    rng = random.Random(SEED)
    cpu = centre.project(ACCOUNT, 1_000_000 * SU)
    gpu = centre.allocation_of(ACCOUNT, "gpu", 1_000_000 * SU)
    with (
        agent_at(centre.address, tables=TABLES, timeout=2.0) as agent,
        Plugin(agent.socket) as plugin,
    ):
        jobs = Jobs(plugin, rng)

        def kill_the_agent() -> None:
            agent.kill()
            agent.start()

        def end_the_agent() -> None:
            agent.stop()
            agent.start()

        def kill_the_bank() -> None:
            centre.server.kill()
            for _ in range(3):
                jobs.go_on(5)
            centre.server.start()

        def freeze_the_bank() -> None:
            os.kill(centre.server.pid, signal.SIGSTOP)
            until = time.monotonic() + rng.uniform(0.1, 3.0)
            while time.monotonic() < until:
                jobs.go_on(5)
            os.kill(centre.server.pid, signal.SIGCONT)

        def lose_both() -> None:
            centre.server.kill()
            jobs.go_on(20)
            agent.kill()
            agent.start()
            centre.server.start()

        def reconnect() -> None:
            plugin.connect()

        faults = (
            kill_the_agent,
            end_the_agent,
            kill_the_bank,
            freeze_the_bank,
            lose_both,
            reconnect,
        )
        for _ in range(rounds(100, 12)):
            until = time.monotonic() + STEP_SECONDS
            while time.monotonic() < until:
                jobs.go_on(5)
            rng.choice(faults)()
        until = time.monotonic() + 120
        while jobs.under_way and time.monotonic() < until:
            jobs.go_on(0)
        assert not jobs.under_way
        agent.wait_until_empty(60)
        print(f"{len(jobs.begun)} jobs began, {jobs.put_off} were put off")
    expected = [
        sum(jobs.cost(job) for job in jobs.begun if (job % 3 == 0) is of_gpu)
        for of_gpu in (False, True)
    ]
    assert [centre.sums(each) for each in (cpu, gpu)] == [(each, 0) for each in expected]
    assert centre.server.command("audit", "verify").returncode == 0
