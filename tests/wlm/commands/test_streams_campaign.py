"""Campaign of streams: each line comes once, in order, whatever happens to srun and node daemon."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from tests.support.conditions import wait_until
from tests.support.figures import LogFigure
from tests.wlm.commands.shell import Shell
from tests.wlm.controller.small_cluster import SmallCluster

TASKS = 64
LINE = 100  # bytes
LINES_PER_MB = 1_000_000 // LINE
OVERLAP_MAX = 2 * 64 * 1024
"""Bytes that an srun may have written just before it was killed, without having said so to the
step daemons of two nodes.
"""
KINDS = ("stop", "stop and kill node daemon", "kill node daemon", "kill srun")
SHORT_WRITES = 2_000_000


def writer(megabytes: int) -> tuple[str, ...]:
    """Return the command of a task that writes numbered lines."""
    count, filler = megabytes * LINES_PER_MB, "x" * (LINE - 12)
    line = f'printf "%02d %07d {filler}\\n", ENVIRON["SLURM_PROCID"], i'
    return "awk", f"BEGIN {{ for (i = 0; i < {count}; i++) {line} }}"


class Received:
    """Lines that arrived. `next` has the number of the next one of each task."""

    def __init__(self) -> None:
        self.next = dict.fromkeys(range(TASKS), 0)

    def add(self, path: Path, *, is_rest: bool) -> int:
        """Check the output of one command after those of earlier ones. Return the bytes that came
        again: those at its begin, if it shows the rest after one that was killed.
        """
        begun, again = set[int](), 0
        with path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):  # the kernel was writing when it was killed
                    break
                assert len(line) == LINE, line
                rank, number = int(line[:2]), int(line[3:10])
                if is_rest and rank not in begun:
                    assert number <= self.next[rank], (path, rank)
                    again += (self.next[rank] - number) * LINE
                    self.next[rank] = number
                begun.add(rank)
                assert number == self.next[rank], (path, rank)
                self.next[rank] += 1
        return again


class StreamsCampaign:
    """Step whose srun and node daemon are stopped and killed, each time after some output.

    It belongs to a job that an srun which is killed does not end. Between two
    disturbances comes at most one of so many equal `parts` of the output.
    """

    kinds: Sequence[str] = KINDS
    parts = 12

    def __init__(self, shell: Shell, cluster: SmallCluster, seed: int) -> None:
        self.shell, self.cluster, self.random = shell, cluster, random.Random(seed)
        _, _, err = shell.run("salloc", "-N", "2", "-n", "4", "--no-shell")
        self.job = err[0].split()[-1]
        self.outputs: list[Path] = []
        self.done: Counter[str] = Counter()

    def start(self, *words: str) -> None:
        """Start srun or sattach, with its output in a file."""
        self.outputs.append(self.shell.directory / f"all{len(self.outputs)}")
        with self.outputs[-1].open("wb") as output:
            self.process = self.shell.start(*words, stdout=output, stderr=subprocess.DEVNULL)

    def run(self, written: Callable[[], int], total: int) -> str:
        """Disturb the step until it has ended. Return its state.

        Args:
            written: returns the bytes that are written so far.
            total: bytes that are written at the end.
        """
        while self.process.poll() is None:
            self._wait_for(written, written() + self.random.randrange(total // self.parts))
            if self.process.poll() is None:
                self.disturb(self.random.choice(self.kinds))
        with Controller(self.cluster.directory) as controller:

            def state() -> str:
                return requests.find_step(controller, self.job, 0).state

            # A node daemon that was killed just before reports the end after its start.
            wait_until(lambda: state() != "RUNNING", "the end of the step", seconds=60)
            ended = state()
            requests.change_jobs(controller, "cancel", [self.job])
        return ended

    def _wait_for(self, written: Callable[[], int], target: int) -> None:
        """Wait for some output, or the end."""
        wait_until(
            lambda: written() >= target or self.process.poll() is not None, "output", seconds=600
        )

    def disturb(self, kind: str) -> None:
        self.done[kind] += 1
        if kind == "kill srun":
            self.process.kill()
            self.process.wait()
            self.start("sattach", f"{self.job}.0")
            return
        if kind.startswith("stop"):
            self.process.send_signal(signal.SIGSTOP)
        if kind.endswith("node daemon"):
            self.cluster.kill_node()
            self.cluster.start_node()
        self.process.send_signal(signal.SIGCONT)

    def shown(self) -> int:
        return sum(path.stat().st_size for path in self.outputs)


class KillsOfSrun(StreamsCampaign):
    """Step whose sruns are killed, also when only one of its nodes has output left."""

    kinds = ("kill srun",)
    parts = 40


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", [StreamsCampaign, KillsOfSrun])
def test_each_line_comes_once_in_order_to_srun(
    shell: Shell,
    cluster: SmallCluster,
    kind: type[StreamsCampaign],
    seed: int,
    rounds: Callable[[int, int], int],
    log_figure: LogFigure,
) -> None:
    megabytes = rounds(100, 5)
    campaign = kind(shell, cluster, seed)
    campaign.start(
        "srun", f"--jobid={campaign.job}", "-n", str(TASKS), "--overcommit", *writer(megabytes)
    )
    total = TASKS * megabytes * LINES_PER_MB * LINE
    assert campaign.run(campaign.shown, total) == "COMPLETED"
    received, again = Received(), 0
    for at, output in enumerate(campaign.outputs):
        again += received.add(output, is_rest=at > 0)
    assert set(received.next.values()) == {megabytes * LINES_PER_MB}
    assert again <= OVERLAP_MAX * campaign.done["kill srun"]
    log_figure(f"{total:,} bytes, {dict(campaign.done)}, {again:,} bytes came again")


@pytest.mark.campaign
def test_each_line_comes_once_in_order_to_the_files_of_tasks(
    shell: Shell, cluster: SmallCluster, rounds: Callable[[int, int], int], log_figure: LogFigure
) -> None:
    megabytes = rounds(100, 5)
    campaign = StreamsCampaign(shell, cluster, 1)
    files = [shell.directory / f"out{rank}" for rank in range(TASKS)]
    words = ("srun", f"--jobid={campaign.job}", "-n", str(TASKS), "--overcommit", "-o", "out%t")
    campaign.start(*words, *writer(megabytes))

    def written() -> int:
        return sum(path.stat().st_size for path in files if path.exists())

    total = TASKS * megabytes * LINES_PER_MB * LINE
    assert campaign.run(written, total) == "COMPLETED"
    received = Received()
    for path in files:
        received.add(path, is_rest=False)
    assert set(received.next.values()) == {megabytes * LINES_PER_MB}
    log_figure(f"{total:,} bytes, {dict(campaign.done)}")


@pytest.mark.campaign
def test_short_writes_come_once_in_order(shell: Shell) -> None:
    script = f"import os\nfor i in range({SHORT_WRITES}): os.write(1, b'%d\\n' % i)"
    with (shell.directory / "all").open("wb") as output:
        process = shell.start("srun", sys.executable, "-c", script, stdout=output)
        assert process.communicate(timeout=600)[1] == ""
    with (shell.directory / "all").open("rb") as lines:
        for number, line in enumerate(lines):
            assert line == b"%d\n" % number
    assert number == SHORT_WRITES - 1
