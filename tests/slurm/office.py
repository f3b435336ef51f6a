"""The whole way in one: a cluster, the agent beside it, and a bank with a project for each team."""

from __future__ import annotations

from typing import Any

from fairbank.rest.client import Client, parse_address
from tests.agent.running import RunningAgent
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.people import TEAMS
from tests.support.server import FairbankServer
from tests.support.waiting import wait_until

SU = 60
RICH = 1_000_000 * SU
LAB = """
[clusters.lab.partitions.cpu]
resource = "cpu"
[clusters.lab.partitions.gpu]
resource = "gpu"
[clusters.lab.partitions.gpu-t4]
resource = "gpu"
"""


class Office:
    """The cluster, the agent beside it, and the bank, asked as its superuser."""

    def __init__(self, slurm: Cluster, agent: RunningAgent, bank: FairbankServer) -> None:
        self.slurm, self.agent, self.bank = slurm, agent, bank
        self._client = Client(parse_address(f"unix:{bank.socket}"))

    def found(self) -> None:
        """A project for each team, with an allocation of each resource."""
        for team in TEAMS:
            self._client.post("/project", {"gname": team.name, "gid": team.gid})
            for resource in ("cpu", "gpu"):
                wanted = {"account": team.name, "resource": resource, "category": "test", "start": "2020-01-01", "end": "2040-01-01"}
                self._client.post("/alloc", {**wanted, "amount": RICH, "comment": "test"})

    def leave(self, account: str, credit: int, resource: str = "cpu") -> int:
        """See to it that so many SU-minutes are left. The number of the allocation."""
        (found,) = self._client.get("/alloc", {"account": account, "resource": resource})["data"]
        more, number = credit - found["available"], int(found["id"])
        if more:
            movement = "deposit" if more > 0 else "withdraw"
            self._client.post(f"/alloc/{number}/{movement}", {"amount": abs(more), "comment": "test"})
        return number

    def deposit(self, allocation: int, amount: int) -> None:
        self._client.post(f"/alloc/{allocation}/deposit", {"amount": amount, "comment": "more"})

    def runs(self, job: int) -> list[dict[str, Any]]:
        """What the books have of a job, by its restarts."""
        rows = self._client.get("/job", {"limit": 1000})["data"]
        return sorted((each for each in rows if each["job_id"] == job), key=lambda each: int(each["restart"]))

    def refusals(self, job: int) -> list[dict[str, Any]]:
        return [each for each in self._client.get("/failure", {"limit": 1000})["data"] if each["job_id"] == job]

    def sums(self, allocation: int) -> tuple[int, int]:
        found = self._client.get(f"/alloc/{allocation}")["data"]
        return found["charged"], found["held"]

    def settled(self, job: int, count: int = 1) -> list[dict[str, Any]]:
        """The runs of a job, as soon as so many are charged or released."""
        wait_until(
            lambda: len([each for each in self.runs(job) if each["state"] != "held"]) == count, f"job {job} to be settled", seconds=30
        )
        return self.runs(job)
