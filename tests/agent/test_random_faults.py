"""A hundred random faults in one run while jobs start and end; the ledger is correct afterwards."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from fairbank.agent.protocol import Verdict
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, Plugin, epilog_event, limit_event, prolog_request
from tests.agent.running_agent import agent_at

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(1_800)]

SEED = 20_261_121
TABLES = '[terms]\npatience = 1\n[partitions.gpu]\noutage_policy = "open"'
STEP_SECONDS = 0.3


class Jobs:
    """Jobs that request a start, run if allowed, and end; those of partition gpu run also in an
    outage.
    """

    def __init__(self, plugin: Plugin, rng: random.Random) -> None:
        self._plugin, self._rng = plugin, rng
        self._next = 1
        self._asked: dict[int, int] = {}  # job of each prolog request
        self._running: list[int] = []
        self.begun: set[int] = set()
        self.deferred = 0

    @staticmethod
    def fields_of(job: int) -> dict[str, Any]:
        return {"billing": Fraction(job % 7 + 1), "partition": "gpu" if job % 3 == 0 else "cpu"}

    @staticmethod
    def cost(job: int) -> int:
        return job % 7 + 1  # one minute for each billing unit

    def advance(self, fresh: int) -> None:
        """Request `fresh` starts, handle answers, and end or change some running jobs."""
        for _ in range(fresh):
            (number,) = self._plugin.send(prolog_request(self._next, **self.fields_of(self._next)))
            self._asked[number] = self._next
            self._next += 1
        if not self._plugin.receive():
            self._plugin.connect()
        for number in [question for question in self._asked if question in self._plugin.answers]:
            self._answered(self._asked.pop(number), self._plugin.answers[number])
        for job in self._rng.sample(self._running, (len(self._running) + 2) // 3):
            if self._rng.random() < 0.2:
                self._plugin.send(
                    limit_event(job, self._rng.choice((1_800, 7_200)), **self.fields_of(job))
                )
            else:
                self._running.remove(job)
                self._plugin.send(epilog_event(job, 60, **self.fields_of(job)))

    def _answered(self, job: int, verdict: object) -> None:
        assert isinstance(verdict, Verdict)
        if verdict.action == "run":
            self.begun.add(job)
            self._running.append(job)
        else:
            self.deferred += 1
            self._plugin.send(
                epilog_event(job, 0, begun=False, state="REQUEUED", **self.fields_of(job))
            )

    @property
    def is_busy(self) -> bool:
        return bool(self._asked or self._running or self._plugin.unanswered)


def test_random_faults_lose_and_double_no_charge(
    site: Site, rounds: Callable[[int, int], int]
) -> None:
    rng = random.Random(SEED)
    cpu = site.project(ACCOUNT, 1_000_000 * SU)
    gpu = site.allocation_of(ACCOUNT, "gpu", 1_000_000 * SU)
    with (
        agent_at(site.address, tables=TABLES, timeout=2.0) as agent,
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
            site.server.kill()
            for _ in range(3):
                jobs.advance(5)
            site.server.start()

        def freeze_the_bank() -> None:
            os.kill(site.server.pid, signal.SIGSTOP)
            until = time.monotonic() + rng.uniform(0.1, 3.0)
            while time.monotonic() < until:
                jobs.advance(5)
            os.kill(site.server.pid, signal.SIGCONT)

        def lose_both() -> None:
            site.server.kill()
            jobs.advance(20)
            agent.kill()
            agent.start()
            site.server.start()

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
                jobs.advance(5)
            rng.choice(faults)()
        until = time.monotonic() + 120
        while jobs.is_busy and time.monotonic() < until:
            jobs.advance(0)
        assert not jobs.is_busy
        agent.wait_until_empty(60)
        print(f"{len(jobs.begun)} jobs began, {jobs.deferred} were deferred")
    expected = [
        sum(jobs.cost(job) for job in jobs.begun if (job % 3 == 0) is of_gpu)
        for of_gpu in (False, True)
    ]
    assert [site.sums(allocation) for allocation in (cpu, gpu)] == [(cost, 0) for cost in expected]
    assert site.server.command("audit", "verify").returncode == 0
