"""Campaign of kills: node daemon, launcher, step daemons and scripts at random moments."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from fairbank.cluster.job import Run
from fairbank.wlm.node.control_group import group_processes
from fairbank.wlm.node.orphans import find_orphans, group_of
from fairbank.wlm.protocol.messages import RunStatus
from fairbank.wlm.stepd.processes import process_table
from fairbank.wlm.stepd.step import read_start
from tests.support.figures import LogFigure
from tests.support.signals import kill
from tests.wlm.node.running_node import RunningNode

JOBS_AT_ONCE = 5
SCRIPT = "echo start\n(sleep 0.0{0} &)\nsleep 0.{0}\necho end"


class Campaign:
    """Jobs and kills on one node. `ends` has all reported causes and statuses by run."""

    def __init__(self, node: RunningNode, seed: int) -> None:
        self.node, self.random = node, random.Random(seed)
        self.runs: dict[Run, Path] = {}
        self.ends: dict[Run, set[tuple[str, int | None]]] = defaultdict(set)

    def submit(self) -> None:
        number = len(self.runs) + 1
        output = self.node.folder / f"out{number}"
        script = SCRIPT.format(self.random.randrange(1, 4))
        run = self.node.submit(script, number, output=str(output), append=True)
        self.runs[run] = output

    def kill(self) -> str:
        """Kill a process at random, and return what it was."""
        kind = self.random.choice(["node daemon", "launcher", "step daemon", "script"])
        if kind == "node daemon":
            self.note(self.node.controller.changes)
            self.node.restart()
            self.note(self.node.controller.registration.runs)
            return kind
        if kind == "launcher":
            kill(self.node.launcher)
            return kind
        starts = [read_start(str(self.node.directories.path(run))) for run in self.runs]
        for start in self.random.sample(starts, len(starts)):
            process = process_table().get(start.daemon) if start else None
            if start and process and process.start == start.daemon_start:
                kill(start.daemon if kind == "step daemon" else start.script)
                return kind
        return "nothing"

    def note(self, statuses: list[RunStatus] | tuple[RunStatus, ...]) -> None:
        for status in statuses:
            if status.end is not None:
                self.ends[status.run].add((status.end.cause, status.end.status))

    def check(self, run: Run, output: Path) -> str:
        """Check what is left of a run that is finished, and return its cause."""
        (end,) = self.ends[run]
        cause, status = end
        lines = output.read_text().split() if output.exists() else []
        assert lines in ([], ["start"], ["start", "end"])  # it started once at most
        if cause == "launch":
            assert lines == []
        if (cause, status) == ("exit", 0):
            assert lines == ["start", "end"]
        directory = self.node.directories.path(run)
        start = read_start(str(directory))
        assert find_orphans(directory, start, process_table()) == []
        assert group_processes(group_of(directory)) == []
        return cause


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_leave_each_run_with_one_end_and_no_process(
    node: RunningNode, seed: int, rounds: Callable[[int, int], int], log_figure: LogFigure
) -> None:
    campaign = Campaign(node, seed)
    kills: Counter[str] = Counter()
    for _ in range(rounds(100, 30)):
        for _ in range(JOBS_AT_ONCE):
            campaign.submit()
        kills[campaign.kill()] += 1
    for run in campaign.runs:
        node.controller.wait(run, "finished")
    campaign.note(node.controller.changes)
    causes = Counter(campaign.check(run, output) for run, output in campaign.runs.items())
    log_figure(f"{len(campaign.runs)} jobs, kills: {dict(kills)}, ends: {dict(causes)}")
    for run in campaign.runs:
        node.controller.forget(run)
    node.restart()
    assert node.controller.registration.runs == ()
