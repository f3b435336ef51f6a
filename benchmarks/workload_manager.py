"""Workload manager on one host: jobs per second with the bank in the loop, the start of its
commands, and its daemons.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.commands import cpu_ms
from benchmarks.measure import Figure, Say, Table, at_least, at_most
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.stepd.processes import TICKS_PER_SECOND, Process, descendants, process_table
from tests.support.server import FAIRBANK

NODES = 16
RECORDED_SLURM = 45
"""Jobs per second of a real Slurm on two cores, from its recorded runs."""
ARRAY, ONE_BY_ONE, COMMANDS = "array of `true`", "jobs by one connection", "`sbatch`, 4 at a time"
NOTHING = "python3 -I -c pass"
IDLE_SECONDS = 10.0


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
        """Run a command in the directory above, which must succeed, and return its output."""
        return subprocess.run(
            words,
            env=self.environment,
            cwd=self.directory.parent,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout

    def wait_for_all(self) -> None:
        """Wait until no job waits or runs."""
        while self.run("squeue", "-h", "-o", "%i"):
            time.sleep(0.05)

    def processes(self) -> dict[int, Process]:
        """Return the supervisor and all below it."""
        state = json.loads((self.directory / "supervisor.json").read_text())
        table = process_table()
        below = descendants([state["pid"]], table)
        return {process.pid: process for process in [table[state["pid"]], *below]}


@contextmanager
def running_cluster(say: Say, *options: str) -> Iterator[tuple[Cluster, float]]:
    """Run a cluster of virtual nodes; yield it and the seconds until it was ready.

    `options` are further ones of `fairbank cluster up`.
    """
    with TemporaryDirectory(prefix="fb-") as folder:
        cluster = Cluster(Path(folder) / "cluster")
        begun = time.perf_counter()
        cluster.run(FAIRBANK, "cluster", "up", "--nodes", str(NODES), "--dir", "cluster", *options)
        ready = time.perf_counter() - begun
        say(f"{NODES} nodes are ready")
        try:
            yield cluster, ready
        finally:
            cluster.run(FAIRBANK, "cluster", "down", "--now")


def measure(*, short: bool, say: Say) -> list[Table]:
    jobs, rounds = (200, 1) if short else (1_000, 3)
    with running_cluster(say) as (cluster, ready):
        commands = _commands(cluster, 5 if short else 30)
        daemons = _daemons(cluster, ready)
        rates: dict[str, list[float]] = {ARRAY: [], ONE_BY_ONE: [], COMMANDS: []}
        for number in range(rounds):
            say(f"{jobs} jobs in three ways, round {number + 1} of {rounds}")
            rates[ARRAY].append(_rate(cluster, jobs, _array))
            rates[ONE_BY_ONE].append(_rate(cluster, jobs, _one_by_one))
            rates[COMMANDS].append(_rate(cluster, jobs // 2, _by_commands))
    figures = {name: Figure(name, "jobs/s", tuple(values)) for name, values in rates.items()}
    about = (
        f"{jobs} jobs of `true` on {NODES} virtual nodes, with the bank in the loop, from the first"
        f" submission to the last end; half as many by sbatch. A real Slurm ran {RECORDED_SLURM} to"
        " 47 jobs/s on two cores."
    )
    promises = tuple(at_least(name, figures[name], RECORDED_SLURM) for name in (ARRAY, ONE_BY_ONE))
    title = "Workload manager: short jobs"
    return [Table(title, about, tuple(figures.values()), promises), commands, daemons]


def _rate(cluster: Cluster, jobs: int, submit: Callable[[Cluster, int], None]) -> float:
    begun = time.perf_counter()
    submit(cluster, jobs)
    cluster.wait_for_all()
    return jobs / (time.perf_counter() - begun)


def _array(cluster: Cluster, jobs: int) -> None:
    cluster.run("sbatch", "-o", os.devnull, "-t", "1", f"--array=1-{jobs}", "--wrap", "true")


def _one_by_one(cluster: Cluster, jobs: int) -> None:
    job = requests.JobToSubmit(
        script=b"#!/bin/sh\ntrue\n",
        options={"output": os.devnull, "time": "1"},
        directory=str(cluster.directory.parent),
        environment=[b"PATH=/usr/bin:/bin"],
    )
    with Controller(cluster.directory) as controller:
        for _ in range(jobs):
            requests.submit(controller, job)


def _by_commands(cluster: Cluster, jobs: int) -> None:
    with ThreadPoolExecutor(4) as threads:
        words = ("sbatch", "-o", os.devnull, "-t", "1", "--wrap", "true")
        for done in [threads.submit(cluster.run, *words) for _ in range(jobs)]:
            done.result()


def _commands(cluster: Cluster, rounds: int) -> Table:
    links = cluster.directory / "bin"
    commands: Mapping[str, list[str]] = {
        NOTHING: [sys.executable, "-I", "-c", "pass"],
        "squeue": [str(links / "squeue")],
        "sinfo": [str(links / "sinfo")],
        "sbatch --help": [str(links / "sbatch"), "--help"],
    }
    seen: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            seen[name].append(cpu_ms(command, cluster.environment))
    figures = {name: Figure(name, "ms", tuple(values)) for name, values in seen.items()}
    most = min(80.0, 4 * figures[NOTHING].median)
    promises = tuple(at_most(name, figures[name], most) for name in commands if name != NOTHING)
    about = (
        "Processor time on an empty queue; at most 80 ms, and four times that of a Python that does"
        " nothing."
    )
    return Table("Workload manager: commands", about, tuple(figures.values()), promises)


def _daemons(cluster: Cluster, ready: float) -> Table:
    before = cluster.processes()
    memory = sum(map(_proportional_kib, before)) / 1_024
    time.sleep(IDLE_SECONDS)
    after = cluster.processes()
    ticks = [after[pid].cpu_ticks - before[pid].cpu_ticks for pid in after.keys() & before.keys()]
    idle = max(ticks) / TICKS_PER_SECOND / IDLE_SECONDS * 100
    figures = (
        Figure("ready", "s", (ready,)),
        Figure("memory of all processes", "MiB", (memory,)),
        Figure("idle, of a core, the busiest process", "%", (idle,)),
    )
    bounds = (5.0, 400.0, 1.0)
    promises = tuple(
        at_most(figure.name, figure, bound) for figure, bound in zip(figures, bounds, strict=True)
    )
    about = (
        f"`fairbank cluster up --nodes {NODES}` with its bank; memory is the proportional set size."
    )
    return Table("Workload manager: daemons", about, figures, promises)


def _proportional_kib(pid: int) -> int:
    """Return the memory of a process, of shared pages its part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
