"""Fixtures: a running bank with a project, a running agent and plug-in, and an engine with a bank
in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.rest.client import Client, parse_address
from tests.agent.bank import InProcessBank
from tests.agent.plugin import ACCOUNT, Plugin
from tests.agent.running_agent import RunningAgent, agent_at
from tests.agent.scenarios import CREDIT, world_with
from tests.agent.world import World
from tests.support.server import FairbankServer, run_bank

SU = 60


class Site:
    """Running bank, used as its superuser."""

    def __init__(self, server: FairbankServer) -> None:
        self.server = server
        self.address = f"unix:{server.socket}"
        self._client = Client(parse_address(self.address))
        self._gid = 5_000

    def project(self, account: str, credit: int, *, end: str = "2040-01-01") -> int:
        """Create a project with an allocation of `credit` SU-minutes on cpu; return the
        allocation's number.
        """
        self._gid += 1
        self._client.post("/project", {"gname": account, "gid": self._gid})
        return self.allocation_of(account, "cpu", credit, end=end)

    def allocation_of(
        self, account: str, resource: str, credit: int, *, end: str = "2040-01-01"
    ) -> int:
        """Create another allocation of a project; return its number."""
        fields = {
            "account": account,
            "resource": resource,
            "category": "research",
            "start": "2020-01-01",
            "end": end,
        }
        return int(
            self._client.post("/alloc", {**fields, "amount": credit, "comment": "test"})["data"][
                "id"
            ]
        )

    def deposit(self, number: int, amount: int) -> None:
        self._client.post(f"/alloc/{number}/deposit", {"amount": amount, "comment": "test"})

    def withdraw(self, number: int, amount: int) -> None:
        self._client.post(f"/alloc/{number}/withdraw", {"amount": amount, "comment": "test"})

    def cap(self, number: int, uid: int, amount: int) -> None:
        self._client.put(f"/alloc/{number}/cap/{uid}", {"cap": amount})

    def partitions(self) -> dict[str, str]:
        """Return the resource that each partition of the only cluster bills."""
        (cluster,) = self._client.get("/cluster")["data"]
        return {partition["name"]: partition["resource"] for partition in cluster["partitions"]}

    def allocation(self, number: int) -> dict[str, Any]:
        allocation: dict[str, Any] = self._client.get(f"/alloc/{number}")["data"]
        return allocation

    def sums(self, number: int) -> tuple[int, int]:
        """Return the charged and the held SU-minutes."""
        allocation = self.allocation(number)
        return allocation["charged"], allocation["held"]

    def jobs(self, account: str = ACCOUNT) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._client.get("/job", {"account": account, "limit": 1000})[
            "data"
        ]
        return rows

    def job(self, job_id: int) -> dict[str, Any]:
        (job,) = [row for row in self.jobs() if row["job_id"] == job_id]
        return job

    def failures(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._client.get("/failure", {"limit": 1000})["data"]
        return rows


@pytest.fixture
def site() -> Iterator[Site]:
    with run_bank() as server:
        yield Site(server)


@pytest.fixture
def agent(site: Site) -> Iterator[RunningAgent]:
    with agent_at(site.address) as running:
        yield running


@pytest.fixture
def plugin(agent: RunningAgent) -> Iterator[Plugin]:
    with Plugin(agent.socket) as plugin:
        yield plugin


@pytest.fixture
def bank() -> Iterator[InProcessBank]:
    """Provide a bank whose project has 100 SU."""
    bank = InProcessBank(CREDIT)
    yield bank
    bank.close()


@pytest.fixture
def world(tmp_path: Path, bank: InProcessBank) -> Iterator[World]:
    """Provide an engine between a plug-in, an outbox and the bank of this process."""
    world = world_with(tmp_path, bank)
    yield world
    world.close()
