"""Campaign of kills with steps: srun, step daemons, tasks, launcher and daemons."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairbank.wlm.client.connection import Controller
from tests.support.conditions import wait_until
from tests.support.figures import LogFigure
from tests.wlm.commands.shell import Shell, sh
from tests.wlm.controller.small_cluster import SETTINGS, SmallCluster
from tests.wlm.controller.test_kill_campaign import KillCampaign

SCRIPT = "echo start >>{0}.$SLURM_PROCID; seq 500; sleep 0.{1}; echo end >>{0}.$SLURM_PROCID"
SRUNS_AT_ONCE = 4
REASONS = (
    r"srun: error: n[12]: tasks? [01](-1|,1)?: (Killed|Terminated)",
    r"srun: error: StepId=\d+\.0 has ended: (CANCELLED|FAILED)",
    r"srun: error: the step daemon on node n[12] has ended before its step",
    r"srun: error: (.*: )?Unable to contact slurm controller \(connect failure\)",
    r"srun: error: Job allocation \d+ has been revoked \([A-Z_]+\)",
    r"srun: error: Unable to create step for job \d+: .+",
)
"""What an srun says whose tasks were killed, or could not be followed."""
_WORDS = {137: "Killed", 143: "Terminated"}


class StepKills(KillCampaign):
    """Sruns with two tasks each, and kills. `killed` are the sruns that were killed."""

    def __init__(self, cluster: SmallCluster, shell: Shell, seed: int) -> None:
        super().__init__(cluster, seed)
        self.shell = shell
        self.sruns: list[subprocess.Popen[str]] = []
        self.killed: set[int] = set()

    def submit(self) -> None:
        number = len(self.sruns)
        script = SCRIPT.format(f"task{number}", self.random.randrange(1, 4))
        errors = self.output(number).with_suffix(".err")
        with self.output(number).open("w") as output, errors.open("w") as error:
            words = ("srun", "-J", f"srun{number}", "-l", "-n", "2", *sh(script))
            self.sruns.append(self.shell.start(*words, stdout=output, stderr=error))

    def running(self) -> int:
        """Return how many sruns have not ended."""
        return sum(srun.poll() is None for srun in self.sruns)

    def output(self, number: int) -> Path:
        return self.shell.directory / f"srun{number}"

    def kill(self) -> str:
        """Kill a process at random, and return what it was."""
        if self.random.random() < 0.3:
            number = self.random.randrange(len(self.sruns))
            if self.sruns[number].poll() is not None:
                return "nothing"
            self.sruns[number].kill()
            self.killed.add(number)
            return "srun"
        return super().kill()

    def directories(self) -> list[Path]:
        """Return the directories of the steps that the nodes have not forgotten."""
        return [*self.cluster.directory.glob("nodes/*/jobs/*/steps/*")]

    def check_step(self, number: int) -> int | str:
        """Check the files of a step. Return the exit code of its srun."""
        ends = set()
        for rank in range(2):
            path = self.shell.directory / f"task{number}.{rank}"
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
def own_cluster(tmp_path: Path) -> Iterator[SmallCluster]:
    """Cluster on which the jobs of killed sruns end by InactiveLimit."""
    one = SmallCluster(tmp_path, SETTINGS.replace("[jobs]", "[jobs]\ninactive_limit = 1"))
    one.start()
    yield one
    one.close()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_start_no_step_twice_and_lose_no_line(
    own_cluster: SmallCluster,
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rounds: Callable[[int, int], int],
    log_figure: LogFigure,
) -> None:
    shell = Shell(own_cluster, tmp_path_factory.mktemp("work"))
    campaign, kills = StepKills(own_cluster, shell, seed), Counter[str]()
    for _ in range(rounds(100, 30)):
        while campaign.running() < SRUNS_AT_ONCE:
            campaign.submit()
        wait_until(lambda: [*campaign.running_steps()], "a step", seconds=120)
        kills[campaign.kill()] += 1
        wait_until(lambda: campaign.running() < SRUNS_AT_ONCE, "an end", seconds=120)
    with Controller(own_cluster.directory) as controller:
        checks = controller.request("check")["checks"]
        assert [one for one in checks if not one["ok"]] == []
    for srun in campaign.sruns:
        srun.wait(timeout=120)
    wait_until(lambda: not own_cluster.busy_jobs(), "the end of all jobs", seconds=300)
    codes = Counter(campaign.check_step(number) for number in range(len(campaign.sruns)))
    runs = own_cluster.ask("runs")
    records = Counter(run["record"]["request"]["number"] for run in runs)
    assert set(records.values()) <= {1}  # W4
    wait_until(lambda: campaign.directories() == [], "the nodes to forget all steps", seconds=120)
    assert {tuple(node) for node in own_cluster.nodes().values()} == {("UP", "")}  # W3
    log_figure(f"{len(campaign.sruns)} sruns, kills: {dict(kills)}, exit codes: {dict(codes)}")
