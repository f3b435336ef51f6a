"""Campaign of kills: controller, node daemon, launcher, step daemons and scripts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.wlm.stepd.processes import process_table
from fairbank.wlm.stepd.step import StepStart, read_start
from tests.support.conditions import wait_until
from tests.support.figures import LogFigure
from tests.support.signals import kill
from tests.wlm.controller.small_cluster import SmallCluster

JOBS_AT_ONCE = 5
SCRIPT = "run={0}.${{SLURM_RESTART_COUNT:-0}}; echo start $run; sleep 0.{1}; echo end $run"
KINDS = ("controller", "node daemon", "launcher", "step daemon", "script")


class KillCampaign:
    """Jobs and kills on one cluster. `jobs` are the accepted ones; each has a file of its own."""

    def __init__(self, cluster: SmallCluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.jobs: list[int] = []

    def submit(self) -> None:
        label = len(self.jobs)
        script = SCRIPT.format(label, self.random.randrange(1, 4))
        self.jobs.append(self.cluster.submit(script, output=f"out{label}"))

    def kill(self) -> str:
        """Kill a process at random, and return what it was."""
        kind = self.random.choice(KINDS)
        if kind == "controller":
            self.cluster.kill_controller()
            self.cluster.start_controller()
        elif kind == "node daemon":
            self.cluster.kill_node()
            self.cluster.start_node()
        elif kind == "launcher":
            kill(self.cluster.launcher())
        else:
            starts = [*self.running_steps()]
            if not starts:
                return "nothing"
            start = self.random.choice(starts)
            kill(start.daemon if kind == "step daemon" else start.script)
        return kind

    def running_steps(self) -> Iterator[StepStart]:
        """Yield the steps whose daemons live."""
        table = process_table()
        for directory in self.directories():
            start = read_start(str(directory)) if directory.exists() else None
            process = table.get(start.daemon) if start else None
            if start and process and process.start == start.daemon_start:
                yield start

    def directories(self) -> list[Path]:
        """Return the directories of the runs that the nodes have not forgotten."""
        return [*self.cluster.directory.glob("nodes/*/jobs/*")]

    def check(self, at: int, job: int, runs: list[dict[str, Any]]) -> str:
        """Check a job against its output and its accounting, and return its final state."""
        ends = [run["record"]["state"] for run in runs if run["record"]["request"]["number"] == job]
        assert [end for end in ends if end != "REQUEUED"] == ends[-1:]  # W4
        path = self.cluster.directory / f"out{at}"
        lines = path.read_text().splitlines() if path.exists() else []
        assert len({*lines}) == len(lines)  # W2: no run started twice
        last = f"{at}.{len(ends) - 1}"
        # A step daemon may also be killed between the end of its script and its report.
        assert ends[-1] != "COMPLETED" or lines[-2:] == [f"start {last}", f"end {last}"]
        return str(ends[-1])


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_lose_no_job_and_run_none_twice(
    own_cluster: SmallCluster, seed: int, rounds: Callable[[int, int], int], log_figure: LogFigure
) -> None:
    cluster = own_cluster
    campaign = KillCampaign(cluster, seed)
    kills: Counter[str] = Counter()
    for _ in range(rounds(100, 30)):
        for _ in range(JOBS_AT_ONCE):
            campaign.submit()
        kills[campaign.kill()] += 1
    wait_until(lambda: not cluster.busy_jobs(), "the end of all jobs", seconds=600)
    runs = cluster.ask("runs")
    states = Counter(campaign.check(at, job, runs) for at, job in enumerate(campaign.jobs))
    log_figure(f"{len(campaign.jobs)} jobs, {len(runs)} runs, kills: {dict(kills)}, {dict(states)}")
    wait_until(lambda: campaign.directories() == [], "the nodes to forget all runs")
    assert set(states) <= {"COMPLETED", "FAILED"}
    assert {tuple(node) for node in cluster.nodes().values()} == {("UP", "")}
