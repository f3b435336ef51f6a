"""Real jobs get the bank's priorities: the SITE column of `sprio -l`, with the plug-in, the real
agent and a real bank.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.core.time import parse_instant
from fairbank.rest.client import Client, parse_address
from tests.agent.running_agent import RunningAgent
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.people import TEAMS, Team
from tests.slurm.prep_cluster import (
    SITE_FACTOR,
    build,
    install,
    settings,
    site_factor_path,
    site_factor_settings,
    socket_of,
)
from tests.support.conditions import wait_until
from tests.support.server import create_bank

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

WEIGHT = 100_000
CALC_SECONDS = 60  # the lab's PriorityCalcPeriod
LATE_SECONDS = 5  # for a new table, its reload, and sprio
STALE = 4
CREDIT = 10_000
ENDS = {
    ("wg_astro", "cpu"): "2030-01-01",
    ("wg_bio", "cpu"): "2035-01-01",
    ("wg_bio", "gpu"): "2028-01-01",
    ("wg_chem", "gpu"): "2040-01-01",
    ("wg_later", "cpu"): "2040-01-01",  # of no job: the end that ("wg_bio", "cpu") is compared with
}
LAB = """
[clusters.lab.partitions.cpu]
resource = "cpu"
[clusters.lab.partitions.gpu]
resource = "gpu"
"""


class SiteFactorStack:
    """Cluster with both plug-ins, the agent and the bank."""

    def __init__(self, slurm: Cluster, agent: RunningAgent, client: Client, table: Path) -> None:
        self.slurm, self.agent, self.table = slurm, agent, table
        self._client = client

    def create_projects(self) -> None:
        for team in (*TEAMS, Team("wg_later", 60_659, 0)):
            self._client.post("/project", {"gname": team.name, "gid": team.gid})
        for (account, resource), end in ENDS.items():
            terms = {
                "account": account,
                "resource": resource,
                "category": "research",
                "start": "2020-01-01",
                "end": end,
            }
            self._client.post("/alloc", {**terms, "amount": CREDIT, "comment": "test"})

    def allocations(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (allocation["account"], allocation["resource"]): allocation
            for allocation in self._client.get("/alloc")["data"]
        }

    def value(self, account: str, resource: str) -> float:
        """Compute the site factor from the ledger with the formulas, without product code."""
        now, allocations = time.time(), self.allocations()
        if (account, resource) not in allocations:
            return 0
        own = allocations[account, resource]
        longest = max(
            parse_instant(allocation["end"]) - now
            for (_, billed), allocation in allocations.items()
            if billed == resource
        )
        credit = 1 - (own["charged"] + own["held"]) / own["deposited"]
        return float(WEIGHT * credit * (1 - (parse_instant(own["end"]) - now) / longest))

    def site(self) -> dict[int, int]:
        """Return the SITE column of each pending job."""
        header, *rows = (line.split() for line in self.slurm.root("sprio", "-l").splitlines())
        return {int(row[header.index("JOBID")]): int(row[header.index("SITE")]) for row in rows}

    def count_logged(self, text: str) -> int:
        """Return the number of times that slurmctld has logged this text."""
        return (self.slurm.place.logs / "slurmctld.log").read_text().count(text)

    def agrees(self, jobs: dict[int, tuple[str, str]]) -> bool:
        """Return True if the column shows for each job the value of its account and resource."""
        shown = self.site()
        return all(
            job in shown and abs(shown[job] - self.value(*owner)) <= 1
            for job, owner in jobs.items()
        )


@pytest.fixture(scope="module")
def stack(
    cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SiteFactorStack]:
    prep = build(checkout, tmp_path_factory.mktemp("plugins"))
    install(prep, cluster)
    install(prep.with_name(SITE_FACTOR), cluster)
    table = site_factor_path(cluster)
    lines = (
        f'[site_factor]\npath = "{table}"\ncluster = "lab"\nrefresh = 0.5\nstale = {STALE}\nweight'
        f" = {WEIGHT}\n"
    )
    with create_bank() as bank:
        bank.config.write_text(bank.config.read_text() + LAB)
        bank.start()
        agent = RunningAgent(
            f"unix:{bank.socket}", tables=lines, socket=socket_of(cluster), slurm_user='"slurm"'
        )
        try:
            agent.start()
            stack = SiteFactorStack(
                cluster, agent, Client(parse_address(f"unix:{bank.socket}")), table
            )
            stack.create_projects()
            with cluster.configured({**settings(cluster), **site_factor_settings(cluster)}):
                yield stack
        finally:
            print(agent.log_text())
            agent.close()


@pytest.fixture
def waiting_jobs(stack: SiteFactorStack) -> Iterator[dict[int, tuple[str, str]]]:
    """Submit jobs that wait for an occupied node; return account and resource of each."""
    slurm = stack.slurm
    slurm.calm()
    node, gpu_node = slurm.machine[0].nodes[0], slurm.machine[1].nodes[0]
    cpu = ("--partition=cpu", f"--nodelist={node}")
    gpu = ("--partition=gpu", f"--nodelist={gpu_node}")
    alone = ("--exclusive", "--time=10")
    for user, options in (("alice", cpu), ("carol", gpu)):
        slurm.wait_for(slurm.submit(user, *options, *alone, script="sleep 600"), "RUNNING")
    yield {
        slurm.submit("alice", *cpu): ("wg_astro", "cpu"),
        slurm.submit("bob", *cpu): ("wg_bio", "cpu"),
        slurm.submit("carol", *gpu): ("wg_bio", "gpu"),
        slurm.submit("dave", *cpu): ("wg_chem", "cpu"),
    }
    if not stack.agent.running:
        stack.agent.start()
    slurm.calm()


def test_sprio_shows_and_follows_the_site_factor(
    stack: SiteFactorStack, waiting_jobs: dict[int, tuple[str, str]], record_figure: RecordFigure
) -> None:
    slurm = stack.slurm
    begun = time.monotonic()
    wait_until(
        lambda: stack.agrees(waiting_jobs),
        "sprio to agree with the bank",
        seconds=CALC_SECONDS + LATE_SECONDS,
    )
    record_figure(f"site factors agree {time.monotonic() - begun:.1f} s after four submissions")
    values = list(stack.site().values())
    assert len(set(values)) == 4, values
    assert 0 in values  # wg_chem has no credit there

    before = stack.value("wg_astro", "cpu")
    other = slurm.submit(
        "alice",
        "--partition=cpu",
        f"--nodelist={slurm.machine[0].nodes[1]}",
        "--exclusive",
        "--time=100",
        script="sleep 600",
    )
    slurm.wait_for(other, "RUNNING")
    begun = time.monotonic()
    wait_until(lambda: stack.value("wg_astro", "cpu") < before * 0.8, "the bank to hold credit")
    wait_until(
        lambda: stack.agrees(waiting_jobs),
        "sprio to follow the bank",
        seconds=CALC_SECONDS + LATE_SECONDS,
    )
    record_figure(
        f"a change of credit is in sprio after {time.monotonic() - begun:.1f} s, PriorityCalcPeriod"
        f" being {CALC_SECONDS} s"
    )


def test_new_job_has_its_site_factor(
    stack: SiteFactorStack, waiting_jobs: dict[int, tuple[str, str]]
) -> None:
    held = stack.value("wg_astro", "cpu")
    written = stack.table.stat().st_mtime_ns
    wait_until(
        lambda: stack.agent.status()["site_factor"]["written"] * 10**9 > written,
        "a table of the credit that is held now",
    )
    assert held > 0

    def agrees_at_once() -> bool:
        job = stack.slurm.submit("alice", f"--nodelist={stack.slurm.machine[0].nodes[0]}")
        return stack.agrees({job: ("wg_astro", "cpu")})

    wait_until(agrees_at_once, "the plug-in to have looked at the file", seconds=LATE_SECONDS)


def test_stale_table_gives_zero_and_is_logged_once(
    stack: SiteFactorStack, waiting_jobs: dict[int, tuple[str, str]]
) -> None:
    wait_until(lambda: any(stack.site().values()), "values", seconds=CALC_SECONDS + LATE_SECONDS)
    before = stack.count_logged("it is stale")
    stack.agent.kill()
    wait_until(
        lambda: stack.count_logged("it is stale") > before,
        "slurmctld to log that the table is stale",
        seconds=STALE + 10,
    )
    wait_until(
        lambda: not any(stack.site().values()),
        "all values to be neutral",
        seconds=CALC_SECONDS + LATE_SECONDS,
    )
    assert stack.count_logged("it is stale") == before + 1
    stack.agent.start()
    wait_until(
        lambda: stack.agrees(waiting_jobs),
        "the values to be back",
        seconds=CALC_SECONDS + LATE_SECONDS,
    )


def test_reconfiguration_changes_settings(
    stack: SiteFactorStack, waiting_jobs: dict[int, tuple[str, str]]
) -> None:
    """A slurmctld of 22.05 applies some settings. Since 23.11 it restarts, so that a wrong setting
    changes nothing.
    """
    slurm, conf = stack.slurm, stack.slurm.place.slurm_conf
    before = conf.read_text()
    wait_until(lambda: stack.agrees(waiting_jobs), "values", seconds=CALC_SECONDS + LATE_SECONDS)
    try:
        conf.write_text(before.replace("fairbank_table=", "fairbank_table=/nowhere"))
        slurm.root("scontrol", "reconfigure")
        wait_until(
            lambda: stack.count_logged(f"/nowhere{stack.table}: No such file"),
            "the plug-in to look elsewhere",
        )
        wait_until(
            lambda: not any(stack.site().values()),
            "all values to be neutral",
            seconds=CALC_SECONDS + LATE_SECONDS,
        )
        conf.write_text(before.replace("fairbank_table=", "fairbank_tabel="))
        slurm.root("scontrol", "reconfigure")
        wait_until(lambda: stack.count_logged("fairbank_tabel="), "the error to be logged")
    finally:
        conf.write_text(before)
        slurm.root("scontrol", "reconfigure")
    wait_until(
        lambda: stack.agrees(waiting_jobs),
        "the table to be in use again",
        seconds=CALC_SECONDS + LATE_SECONDS,
    )
