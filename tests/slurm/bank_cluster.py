"""Full stack: a cluster with the plug-in, the real agent and a real bank with a project for each
team.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairbank.rest.client import Client, parse_address
from tests.agent.running_agent import RunningAgent
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.machine import SIZES
from tests.slurm.lab.people import TEAMS
from tests.slurm.prep_cluster import (
    install,
    install_lua,
    plugin_configured,
    remove_policy,
    socket_of,
)
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK, FairbankServer, create_bank

SU = 60
RICH = 1_000_000 * SU
AGENT_TIMEOUT_SECONDS = 3
TERMS = f"""
[terms]
patience = {AGENT_TIMEOUT_SECONDS}
[partitions.gpu]
outage_policy = "open"
"""
PAGE = 1_000


def prices() -> str:
    """Return the bank's settings for the lab: the same prices as Slurm's billing weights."""
    return "".join(
        f'[clusters.lab.partitions."{group.partition}"]\nresource ='
        f' "{"gpu" if group.gpus else "cpu"}"\nweights = "{group.weights}"\n'
        for group in SIZES["full"]
    )


class BankStack:
    """Cluster, agent and bank. Requests to the bank are made as its superuser."""

    def __init__(self, slurm: Cluster, agent: RunningAgent, bank: FairbankServer) -> None:
        self.slurm, self.agent, self.bank = slurm, agent, bank
        self._client = Client(parse_address(f"unix:{bank.socket}"))

    def create_projects(self) -> None:
        """Create a project for each team, with an allocation of each resource."""
        for team in TEAMS:
            self.create_project(team.name, team.gid)

    def create_project(self, account: str, gid: int) -> None:
        """Create a project with an allocation of each resource."""
        self._client.post("/project", {"gname": account, "gid": gid})
        for resource in ("cpu", "gpu"):
            terms = {
                "account": account,
                "resource": resource,
                "category": "research",
                "start": "2020-01-01",
                "end": "2040-01-01",
            }
            self._client.post("/alloc", {**terms, "amount": RICH, "comment": "test"})

    def add_member(self, account: str, uid: int) -> None:
        """Make a user a member of the project of an account."""
        (project,) = (row["id"] for row in self.rows("/project") if row["account"] == account)
        self._client.put(f"/project/{project}/member/{uid}", {"role": "member"})

    def set_available(self, account: str, credit: int, resource: str = "cpu") -> int:
        """Set the remaining SU-minutes by a deposit or withdrawal. Return the allocation's
        number.
        """
        (allocation,) = self._client.get("/alloc", {"account": account, "resource": resource})[
            "data"
        ]
        more, number = credit - allocation["remaining"], int(allocation["id"])
        if more:
            movement = "deposit" if more > 0 else "withdraw"
            self._client.post(
                f"/alloc/{number}/{movement}", {"amount": abs(more), "comment": "test"}
            )
        return number

    def deposit(self, allocation: int, amount: int) -> None:
        self._client.post(f"/alloc/{allocation}/deposit", {"amount": amount, "comment": "more"})

    def rows(self, path: str, **query: object) -> list[dict[str, Any]]:
        """Return all rows of a list, read page by page."""
        answer = self._client.get(path, {**query, "limit": PAGE})
        rows: list[dict[str, Any]] = answer["data"]
        while after := answer.get("next"):
            answer = self._client.get(path, {**query, "limit": PAGE, "after": after})
            rows += answer["data"]
        return rows

    def runs(self, job: int) -> list[dict[str, Any]]:
        """Return the runs of a job in the ledger, by restart count."""
        rows = self._client.get("/job", {"limit": PAGE})["data"]
        return sorted(
            (run for run in rows if run["job_id"] == job), key=lambda run: int(run["restart"])
        )

    def refusals(self, job: int) -> list[dict[str, Any]]:
        return [
            refusal
            for refusal in self._client.get("/failure", {"limit": PAGE})["data"]
            if refusal["job_id"] == job
        ]

    def charged_and_held(self, allocation: int) -> tuple[int, int]:
        row = self._client.get(f"/alloc/{allocation}")["data"]
        return row["charged"], row["held"]

    def wait_for_closed_runs(self, job: int, count: int = 1) -> list[dict[str, Any]]:
        """Wait until `count` runs of a job are charged or released; return its runs."""
        wait_until(
            lambda: len([run for run in self.runs(job) if run["state"] != "held"]) == count,
            f"job {job} to be settled",
            seconds=30,
        )
        return self.runs(job)

    def reconcile(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run `fairbank reconcile` as root on this cluster."""
        environment = {
            **self.slurm.place.environment,
            "FAIRBANK_SERVER": f"unix:{self.bank.socket}",
        }
        command = [FAIRBANK, "reconcile", "--grace", "0", "--progress", "none", *options]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=300
        )


def sync_policy(stack: BankStack, checkout: Path, folder: Path, rules: str) -> None:
    """Install the Lua plug-ins, and let `fairbank slurm sync` write the policy by these settings
    of the site.
    """
    policy, site = install_lua(stack.slurm, checkout), folder / "slurm.toml"
    site.write_text(f'policy = "{policy}"\n{rules}\n')
    stack.slurm.run(
        "root",
        *(FAIRBANK, "slurm", "sync", "--site", str(site), "--progress", "none"),
        environment={"FAIRBANK_SERVER": f"unix:{stack.bank.socket}"},
    ).checked()
    policy.chmod(0o644)


@contextmanager
def running_stack(
    cluster: Cluster, plugin: Path, bank: FairbankServer, agent: RunningAgent
) -> Iterator[BankStack]:
    """Start bank and agent, create the projects, and connect slurmctld for the duration of the
    block. No submission policy is there at its begin, and no job of an earlier test.
    """
    # The plug-in reports all ends that slurmctld remembers, and the new bank would charge them.
    if cluster.root("squeue", "--noheader", "--states=all"):
        cluster.empty()
    remove_policy(cluster)
    install(plugin, cluster)
    bank.config.write_text(bank.config.read_text() + prices())
    bank.folder.chmod(0o755)  # so that users can connect too
    bank.start()
    try:
        agent.start()
        stack = BankStack(cluster, agent, bank)
        stack.create_projects()
        with plugin_configured(cluster):
            yield stack
    finally:
        print(agent.log_text())
        agent.close()


@contextmanager
def new_stack(cluster: Cluster, plugin: Path, tables: str = TERMS) -> Iterator[BankStack]:
    """Start a new bank and a new agent on a cluster that is idle before and after. `tables` are the
    agent's settings.
    """
    cluster.calm()
    with (
        create_bank() as bank,
        running_stack(cluster, plugin, bank, agent_for(cluster, bank, tables)) as stack,
    ):
        try:
            yield stack
        finally:
            cluster.calm()


def agent_for(cluster: Cluster, bank: FairbankServer, tables: str = TERMS) -> RunningAgent:
    """Return the agent between slurmctld and the bank."""
    return RunningAgent(
        f"unix:{bank.socket}", tables=tables, socket=socket_of(cluster), slurm_user='"slurm"'
    )
