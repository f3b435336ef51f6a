"""Race of two jobs of 20 SU for 30 SU, on all nodes at once, each pair in its own project, several
times. Exactly one of each pair runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.slurm.bank_cluster import SU, BankStack, new_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.prep_cluster import build
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

ROUNDS, CREDIT, PRICE = 5, 30 * SU, 20 * SU
RUNNER = "dave"
CORES = ("-c20", "--mem=1G", "--time=60")  # 20 billing units for one hour
GPUS = (
    "--partition=gpu-t4",
    "--gres=gpu:4",
    "-c1",
    "--mem=1G",
    "--time=300",
)  # 4 billing units for five hours


@dataclass(frozen=True)
class Lane:
    """Nodes on which the two jobs of one project compete."""

    account: str
    nodes: tuple[str, str]
    options: tuple[str, ...] = CORES
    resource: str = "cpu"


RING = ("c01", "c02", "c03", "c04", "c05", "c06")
LANES = (
    *(
        Lane(f"race{number}", (node, RING[number % len(RING)]))
        for number, node in enumerate(RING, 1)
    ),
    *(
        Lane(f"race{number}", ("g01", "g02"), ("--partition=gpu", *CORES), "gpu")
        for number in (7, 8)
    ),
    Lane("race9", ("g03", "g04"), GPUS, "gpu"),
)
"""Six lanes on the nodes without GPUs, where each node has jobs of two lanes; two on the nodes with
large GPUs, and one that fills the nodes with small GPUs.
"""


@pytest.fixture
def stack(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[BankStack]:
    with new_stack(cluster, build(checkout, tmp_path)) as stack, _accounts(cluster):
        for gid, lane in enumerate(LANES, 60_700):
            stack.create_project(lane.account, gid)
        yield stack


@contextmanager
def _accounts(slurm: Cluster) -> Iterator[None]:
    """Create Slurm's accounts of the lanes for the duration of the block."""
    names = ",".join(lane.account for lane in LANES)
    slurm.root("sacctmgr", "--immediate", "add", "account", names, "cluster=lab")
    slurm.root("sacctmgr", "--immediate", "add", "user", RUNNER, f"account={names}", "cluster=lab")
    try:
        yield
    finally:
        slurm.calm()
        slurm.root("sacctmgr", "--immediate", "delete", "account", f"name={names}", "cluster=lab")


def test_one_of_two_competing_jobs_runs(stack: BankStack, record_figure: RecordFigure) -> None:
    slurm, begun = stack.slurm, time.monotonic()
    for _ in range(ROUNDS):
        numbers = {lane: stack.set_available(lane.account, CREDIT, lane.resource) for lane in LANES}
        jobs = {lane: [_submitted(slurm, lane, node) for node in lane.nodes] for lane in LANES}
        all_jobs = [str(job) for pair in jobs.values() for job in pair]
        slurm.root("scontrol", "release", ",".join(all_jobs))
        wait_until(
            partial(_all_decided, slurm, jobs),
            "one of each pair to run, and the other to be held",
            seconds=60,
        )
        stack.agent.wait_until_empty()
        assert {
            lane.account: stack.charged_and_held(number)[1] for lane, number in numbers.items()
        } == {lane.account: PRICE for lane in LANES}
        slurm.root("scancel", *all_jobs)
        wait_until(lambda: not slurm.queued(), "them to be gone", seconds=60)
        stack.agent.wait_until_empty()
    races, seconds = ROUNDS * len(LANES), time.monotonic() - begun
    record_figure(
        f"{races} races of two jobs for credit that pays one, {len(LANES)} at a time on"
        f" {len(slurm.node_names)} nodes: {seconds:.0f} s"
    )


def _submitted(slurm: Cluster, lane: Lane, node: str) -> int:
    """Submit a held job; all jobs are released together later."""
    return slurm.submit(
        RUNNER,
        "--hold",
        f"--account={lane.account}",
        f"--nodelist={node}",
        *lane.options,
        script="sleep 600",
    )


def _all_decided(slurm: Cluster, jobs: dict[Lane, list[int]]) -> bool:
    rows = (
        line.split("|")
        for line in slurm.root("squeue", "--noheader", "--format=%A|%T|%r").splitlines()
    )
    states = {int(job): (state, reason.replace("_", " ")) for job, state, reason in rows}
    decided = [("PENDING", "Allocation exhausted"), ("RUNNING", "None")]
    return all(
        sorted(states.get(job, ("gone", "")) for job in pair) == decided for pair in jobs.values()
    )
