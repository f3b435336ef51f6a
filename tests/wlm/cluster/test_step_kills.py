"""Kills with steps: srun, step daemons, tasks and all processes of a cluster with its bank."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairbank.wlm.client.requests import rows
from fairbank.wlm.controller.state_store import AccountedRun
from tests.support.conditions import wait_until
from tests.support.figures import LogFigure
from tests.wlm.cluster.live_cluster import SETTINGS, LiveCluster
from tests.wlm.cluster.test_kills import Campaign, check_kills
from tests.wlm.commands.shell import sh

SCRIPT = "echo start >>{0}.$SLURM_PROCID; seq 500; sleep 0.{1}; echo end >>{0}.$SLURM_PROCID"
KILLED_FORK = "error: the process of this command was killed"
REASONS = (
    r"srun: error: n[1-4]: tasks? [01](-1|,1)?: (Killed|Terminated)",
    # NODE_FAIL: the node daemon was killed before it had stored the start on its second node.
    r"srun: error: StepId=\d+\.0 has ended: (CANCELLED|FAILED|NODE_FAIL)",
    r"srun: error: the step daemon on node n[1-4] has ended before its step",
    r"srun: error: the tasks of StepId=\d+\.0 on node n[1-4] have ended",
    r"srun: error: (.*: )?Unable to contact slurm controller \(connect failure\)",
    r"srun: error: Job allocation \d+ has been revoked \([A-Z_]+\)",
    r"srun: error: Unable to create step for job \d+: .+",
    KILLED_FORK,
)
"""What an srun says whose tasks were killed, or could not be followed."""
_WORDS = {137: "Killed", 143: "Terminated"}


class StepKills(Campaign):
    """Sruns with two tasks each, on one node or two. `killed` are the sruns that were killed."""

    kinds = (*Campaign.kinds, "srun", "srun", "step daemon", "commands", "fork")
    steps_below = "*/jobs/*/steps/*"

    def __init__(self, cluster: LiveCluster, seed: int) -> None:
        super().__init__(cluster, seed)
        self.sruns: list[subprocess.Popen[str]] = []
        self.killed: set[int] = set()

    def submit(self) -> None:
        """Start an srun, and wait until it has a job: without a controller it would get none."""
        number, known = len(self.sruns), self.known_jobs()
        script = SCRIPT.format(f"task{number}", self.random.randrange(1, 4))
        srun, nodes = f"{self.cluster.directory}/bin/srun", str(self.random.randint(1, 2))
        errors = self.output(number).with_suffix(".err")
        with self.output(number).open("w") as output, errors.open("w") as error:
            self.sruns.append(
                subprocess.Popen(
                    [srun, "-l", "-N", nodes, "-n", "2", *sh(script)],
                    env=self.cluster.environment,
                    cwd=self.cluster.home,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=error,
                    text=True,
                )
            )
        wait_until(lambda: self.known_jobs() > known or self.sruns[-1].poll() is not None, "a job")

    def known_jobs(self) -> int:
        """Return the number of jobs so far; none is forgotten within MinJobAge."""
        controller = self.cluster.controller
        jobs = self.cluster.persist(lambda: rows(controller, "jobs", ["job_id"]), "a controller")
        return len(jobs.rows or ())

    def output(self, number: int) -> Path:
        return self.cluster.home / f"srun{number}"

    def kill(self, kind: str) -> str:
        """Kill a process, and return what it was."""
        if kind not in ("srun", "fork"):
            return super().kill(kind)
        self.submit()
        if kind == "fork":
            return kind if self.kill_fork() else "nothing"
        running = [at for at, srun in enumerate(self.sruns) if srun.poll() is None]
        number = self.random.choice(running)
        self.sruns[number].kill()
        self.killed.add(number)
        return kind

    def kill_fork(self) -> bool:
        """Kill the fork of a command, and return True if there was one."""
        try:
            os.kill(self.random.choice(self.cluster.forks()), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            return False
        return True

    def resume(self) -> None:
        """Wait for the sruns."""
        for srun in self.sruns:
            srun.wait(timeout=300)

    def check_outputs(self, runs: list[AccountedRun]) -> None:
        """Check W2 and W11 by the files of the tasks and of srun."""
        codes = Counter(self.check_step(number) for number in range(len(self.sruns)))
        assert codes[0]
        errors = (self.output(number).with_suffix(".err") for number in range(len(self.sruns)))
        lines = [line for path in errors for line in path.read_text().splitlines()]
        assert lines.count(KILLED_FORK) <= self.kills["fork"]  # a killed server kills none
        assert len(runs) <= len(self.sruns)
        self.figures.append(f"{len(self.sruns)} sruns, exit codes: {dict(codes)}")

    def check_step(self, number: int) -> int | str:
        """Check the files of a step. Return the exit code of its srun."""
        ends = set()
        for rank in range(2):
            path = self.cluster.home / f"task{number}.{rank}"
            lines = path.read_text().split() if path.exists() else []
            assert lines in ([], ["start"], ["start", "end"])  # W2: it started once at most
            ends.add(tuple(lines[-1:]))
        if number in self.killed:
            return "killed"
        shown = self.output(number).read_text().splitlines()
        for rank in range(2):
            own = [line for line in shown if line.startswith(f"{rank}:")]
            assert own == [f"{rank}: {one}" for one in range(1, len(own) + 1)]  # W11
        code = self.sruns[number].returncode
        if code == 0:
            assert (len(shown), ends) == (1_000, {("end",)})
        else:  # its tasks were killed, or it says why it could not follow them
            errors = self.output(number).with_suffix(".err").read_text()
            assert any(re.search(reason, errors) for reason in REASONS), (code, errors)
            assert code == 1 or f": {_WORDS[code]}" in errors, (code, errors)
        return code


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    """Cluster on which the jobs of killed sruns end by InactiveLimit."""
    started = LiveCluster(tmp_path, SETTINGS.replace("[jobs]", "[jobs]\ninactive_limit = 1"))
    yield started
    started.close()


@pytest.mark.campaign
def test_kills_start_no_step_twice_and_lose_no_line_or_charge(
    cluster: LiveCluster, rounds: Callable[[int, int], int], log_figure: LogFigure
) -> None:
    for line in check_kills(StepKills(cluster, seed=1), kills=rounds(200, 60), jobs=2):
        log_figure(line)
