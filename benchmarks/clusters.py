"""Clusters on this host: virtual nodes of `fairbank cluster up`, and a real Slurm; and shells of
their users.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Say
from fairbank.wlm.stepd.processes import Process, descendants, process_table
from tests.slurm.lab import cluster as lab
from tests.slurm.lab import guard
from tests.slurm.lab.packages import Unobtainable
from tests.support.server import FAIRBANK

NODES = 16
HERE = "Fairbank's workload manager"
SLURM_USER = "alice"
SCRIPT_SECONDS = 600

Shell = Callable[[str], str]
"""Function that runs a script of bash and returns its output."""


class Cluster:
    """Cluster of `fairbank cluster up` with its bank, and the environment of its users."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        home = str(directory.parent)
        self.environment = {
            "HOME": home,
            "LC_ALL": "C.UTF-8",
            "PATH": f"{directory}/bin{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "FAIRBANK_CLUSTER": str(directory),
            "FAIRBANK_CONFIG": f"{directory}/bank/fairbank.toml",
            "FAIRBANK_AGENT_CONFIG": f"{directory}/bank/agent.toml",
        }

    def run(self, *words: str) -> str:
        """Run a command in the directory above, and return its output.

        Raises subprocess.SubprocessError if it fails or takes longer than SCRIPT_SECONDS.
        """
        return subprocess.run(
            words,
            env=self.environment,
            cwd=self.directory.parent,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=SCRIPT_SECONDS,
        ).stdout

    def shell(self, script: str) -> str:
        return self.run("bash", "-c", script)

    def processes(self) -> dict[int, Process]:
        """Return the supervisor and all below it."""
        state = json.loads((self.directory / "supervisor.json").read_text())
        table = process_table()
        below = descendants([state["pid"]], table)
        return {process.pid: process for process in [table[state["pid"]], *below]}


@contextmanager
def running_cluster(say: Say, *options: str, nodes: int = NODES) -> Iterator[tuple[Cluster, float]]:
    """Run a cluster of virtual nodes; yield it and the seconds until it was ready.

    `options` are further ones of `fairbank cluster up`.
    """
    with TemporaryDirectory(prefix="fb-") as folder:
        cluster = Cluster(Path(folder) / "cluster")
        begun = time.perf_counter()
        cluster.run(FAIRBANK, "cluster", "up", "--nodes", str(nodes), "--dir", "cluster", *options)
        ready = time.perf_counter() - begun
        say(f"{nodes} virtual nodes of Fairbank are ready")
        try:
            yield cluster, ready
        finally:
            cluster.run(FAIRBANK, "cluster", "down", "--now")


@contextmanager
def running_slurm(say: Say) -> Iterator[lab.Cluster]:
    """Run a real Slurm with as many nodes, without Fairbank. Raises Unobtainable."""
    with guard.running_cluster("bench", "wide") as slurm:
        say(f"{NODES} slurmd are ready")
        yield slurm


@contextmanager
def slurm_if_obtainable(say: Say) -> Iterator[lab.Cluster | str]:
    """Run a real Slurm; or yield why there can be none."""
    with ExitStack() as stack:
        slurm: lab.Cluster | str
        try:
            slurm = stack.enter_context(running_slurm(say))
        except Unobtainable as why:
            say(f"without Slurm: {why}")
            slurm = str(why)
        yield slurm


def slurm_shell(slurm: lab.Cluster) -> Shell:
    """Return the shell of a user of Slurm."""
    return lambda script: (
        slurm.run(SLURM_USER, "bash", "-c", script, seconds=SCRIPT_SECONDS).checked().out
    )
