"""Short jobs: how many end in a second, of an array, of one connection and of many `sbatch`; beside
a real Slurm and task-spooler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.clusters import HERE, NODES, Cluster, Shell, running_cluster, slurm_shell
from benchmarks.measure import Figure, Say, Table, at_least, ratio
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from tests.slurm.lab import cluster as lab

RECORDED_SLURM = 45
"""Jobs per second of a real Slurm on two cores, from its recorded runs."""
ARRAY, ONE_BY_ONE, COMMANDS = "array of `true`", "jobs by one connection", "`sbatch`, 4 at a time"
SLURM = "Slurm"
TSP = "`tsp true`, one after the other, task-spooler"
LEAST = {ARRAY: 1.0, ONE_BY_ONE: 1.0, COMMANDS: 0.6}
"""Least jobs per second beside those of Slurm, whose `sbatch` is not a program in Python."""
SBATCH = "sbatch -o /dev/null -t 1 --wrap true"
UNTIL_EMPTY = 'while [ "$(squeue -h -o %i)" ]; do sleep 0.05; done'


class Rates:
    """Jobs per second of each contender, in each way to submit them."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], list[float]] = {}

    def measure(self, way: str, contender: str, jobs: int, run: Callable[[], object]) -> None:
        begun = time.perf_counter()
        run()
        rate = jobs / (time.perf_counter() - begun)
        self._seen.setdefault((way, contender), []).append(rate)

    def figure(self, way: str, contender: str) -> Figure:
        return Figure(f"{way}, {contender}", "jobs/s", tuple(self._seen[way, contender]))

    def figures(self) -> tuple[Figure, ...]:
        return tuple(self.figure(*key) for key in self._seen)


def measure_beside_slurm(
    cluster: Cluster, slurm: lab.Cluster | str, jobs: int, rounds: int, say: Say
) -> Table:
    """Measure jobs on virtual nodes with the bank in the loop, beside a real Slurm if there is
    one.
    """
    rates = Rates()
    shell = slurm_shell(slurm) if isinstance(slurm, lab.Cluster) else None
    for number in range(rounds):
        say(f"{jobs} jobs in three ways, round {number + 1} of {rounds}")
        rates.measure(ARRAY, HERE, jobs, lambda: _array(cluster.shell, jobs))
        if shell:
            rates.measure(ARRAY, SLURM, jobs, lambda: _array(shell, jobs))
            rates.measure(COMMANDS, SLURM, jobs, lambda: _by_commands(shell, jobs))
        rates.measure(ONE_BY_ONE, HERE, jobs, lambda: _one_by_one(cluster, jobs))
        rates.measure(COMMANDS, HERE, jobs // 2, lambda: _by_commands(cluster.shell, jobs // 2))
    ours = {way: rates.figure(way, HERE) for way in LEAST}
    about = (
        f"{jobs} jobs of `true` on {NODES} virtual nodes, with the bank in the loop, from the first"
        " submission to the last end; half as many by `sbatch`."
    )
    if shell:
        theirs = {way: rates.figure(way, SLURM) for way in (ARRAY, COMMANDS)}
        # Slurm has no connection for many submissions.
        beside = {**theirs, ONE_BY_ONE: theirs[COMMANDS]}
        about += f" Slurm has {NODES} slurmd, and no bank."
        promises = [
            ratio(f"{figure.name} / {beside[way].name}", figure, beside[way], LEAST[way])
            for way, figure in ours.items()
        ]
    else:
        about += f" No Slurm: {slurm}. It ran {RECORDED_SLURM} to 47 jobs/s on two cores."
        promises = [
            at_least(figure.name, figure, LEAST[way] * RECORDED_SLURM)
            for way, figure in ours.items()
        ]
    return Table("Workload manager: short jobs", about, rates.figures(), tuple(promises))


def measure_on_one_node(jobs: int, rounds: int, say: Say) -> Table:
    """Measure jobs on one node without a bank, beside task-spooler where that is installed."""
    rates, tsp = Rates(), shutil.which("tsp")
    cpus = len(os.sched_getaffinity(0))
    with running_cluster(say, "--no-bank", "--cpus", str(cpus), nodes=1) as (cluster, _):
        for number in range(rounds):
            say(f"{jobs} jobs on one node, round {number + 1} of {rounds}")
            rates.measure(ARRAY, HERE, jobs, lambda: _array(cluster.shell, jobs))
            rates.measure(ONE_BY_ONE, HERE, jobs, lambda: _one_by_one(cluster, jobs))
            if tsp:
                rates.measure(TSP, f"{cpus} slots", jobs, lambda: _spooled(tsp, jobs, cpus))
    about = (
        f"{jobs} jobs of `true` on one node with {cpus} CPUs, without a bank, from the first"
        " submission to the last end."
        f"{'' if tsp else ' task-spooler is not installed here.'}"
    )
    return Table("Workload manager: short jobs on one node", about, rates.figures())


def _array(shell: Shell, jobs: int) -> None:
    shell(f"{SBATCH} --array=1-{jobs} > /dev/null; {UNTIL_EMPTY}")


def _by_commands(shell: Shell, jobs: int) -> None:
    shell(f"set -e; seq {jobs} | xargs -P 4 -I{{}} {SBATCH} > /dev/null; {UNTIL_EMPTY}")


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
    cluster.shell(UNTIL_EMPTY)


def _spooled(tsp: str, jobs: int, slots: int) -> None:
    """Run jobs in a task-spooler of our own, which starts them in their order."""
    with TemporaryDirectory() as folder:
        script = (
            f"{tsp} -S {slots}; for i in $(seq {jobs}); do {tsp} -n true > /dev/null; done;"
            f" {tsp} -w; {tsp} -K"
        )
        environment = {"TS_SOCKET": str(Path(folder) / "socket"), "TMPDIR": folder}
        subprocess.run(
            ["bash", "-e", "-c", script], env=os.environ | environment, cwd=folder, check=True
        )
