"""Workload manager on one host: short jobs with the bank in the loop, the start of its commands,
and its daemons; beside a real Slurm on the same host.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.clusters import (
    NODES,
    Cluster,
    Shell,
    running_cluster,
    slurm_if_obtainable,
    slurm_shell,
)
from benchmarks.measure import Figure, Say, Table, at_most
from benchmarks.short_jobs import measure_beside_slurm, measure_on_one_node
from tests.slurm.lab import cluster as lab
from tests.slurm.lab.daemons import SLURMCTLD
from tests.wlm.stepd.steps import private_kib

NOTHING = "python3 -I -c pass"
IDLE_SECONDS = 30.0
"""Long enough for what the daemons do every some seconds."""
WAITING_STEP = """
job=$(sbatch --parsable -t 10 -o step --wrap 'echo $PPID; exec sleep 600')
until [ -s step ]; do sleep 0.05; done
echo $job $(cat step)
"""
"""Script that prints the number of a job that sleeps, and the process id of its step daemon."""
REMARK = """
In "Workload manager: short jobs", Slurm's sbatch is a program in C. Ours starts Python and has a
fork of the fork server, on the cores that the daemons use too: `sbatch --help` in "Workload
manager: commands" shows how long that takes. Many jobs are submitted faster through one connection,
or as an array.
"""


def measure(*, short: bool, say: Say) -> list[Table]:
    jobs, rounds = (200, 1) if short else (1_000, 3)
    with (
        running_cluster(say, "--cpus", str(NODES)) as (cluster, ready),
        slurm_if_obtainable(say) as slurm,
    ):
        commands = _commands(cluster, 5 if short else 30)
        daemons = _daemons(cluster, ready, slurm)
        beside = measure_beside_slurm(cluster, slurm, jobs, rounds, say)
    return [beside, measure_on_one_node(jobs, rounds, say), commands, daemons]


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
            begun = time.perf_counter()
            cluster.run(*command)
            seen[name].append((time.perf_counter() - begun) * 1_000)
    figures = {name: Figure(name, "ms", tuple(values)) for name, values in seen.items()}
    most = min(80.0, 4 * figures[NOTHING].median)
    promises = tuple(at_most(name, figures[name], most) for name in commands if name != NOTHING)
    about = (
        "Elapsed time on an empty queue: a fork of another process runs each command. The target is"
        " the smaller of 80 ms and four times the time of a Python that does nothing."
    )
    return Table("Workload manager: commands", about, tuple(figures.values()), promises)


def _daemons(cluster: Cluster, ready: float, slurm: lab.Cluster | str) -> Table:
    every = cluster.processes()
    memory = _mib(every)
    of_slurm = [p.pid for p in slurm.processes()] if isinstance(slurm, lab.Cluster) else []
    idle, idle_slurm = _busiest_shares(list(every), of_slurm)
    ours = (
        Figure("ready", "s", (ready,)),
        Figure("memory of all processes", "MiB", (memory,)),
        Figure("idle, of a core, the busiest process", "%", (idle,)),
        Figure("private memory of a step daemon", "MiB", (_step_daemon_mib(cluster.shell),)),
    )
    bounds = (5.0, 400.0, 1.0, 4.0)
    promises = tuple(
        at_most(figure.name, figure, bound) for figure, bound in zip(ours, bounds, strict=True)
    )
    about = (
        f"`fairbank cluster up --nodes {NODES} --cpus {NODES}` with its bank; memory is the"
        " proportional set size."
    )
    if isinstance(slurm, lab.Cluster):
        shown = "idle, of a core, the busiest process of Slurm"
        theirs = (Figure(shown, "%", (idle_slurm,)), *_slurm_daemons(slurm))
        about += (
            f" Slurm has a slurmctld and {NODES} slurmd on the same host, and is ready when all"
            " nodes are idle."
        )
    else:
        theirs = ()
        about += f" No Slurm: {slurm}."
    return Table("Workload manager: daemons", about, (*ours, *theirs), promises)


def _busiest_shares(*groups: list[int]) -> list[float]:
    """Return for each group of processes which share of a core its busiest one uses, in percent."""
    before = {pid: _run_seconds(pid) for pids in groups for pid in pids}
    time.sleep(IDLE_SECONDS)
    used = {pid: _run_seconds(pid) - seconds for pid, seconds in before.items()}
    return [max((used[pid] for pid in pids), default=0) / IDLE_SECONDS * 100 for pids in groups]


def _slurm_daemons(slurm: lab.Cluster) -> tuple[Figure, ...]:
    slurm.stop(SLURMCTLD, *slurm.node_names)
    begun = time.perf_counter()
    slurm.start(SLURMCTLD, *slurm.node_names)
    slurm.wait_for_nodes("idle")
    ready = time.perf_counter() - begun
    of_nodes = [pid for node in slurm.node_names if (pid := slurm.pid(node))]
    every = [process.pid for process in slurm.processes()]
    step = _step_daemon_mib(slurm_shell(slurm))
    return (
        Figure(f"ready, slurmctld and {NODES} slurmd", "s", (ready,)),
        Figure(f"memory of {NODES} slurmd", "MiB", (_mib(of_nodes),)),
        Figure("memory with slurmctld, slurmdbd, MariaDB and munged", "MiB", (_mib(every),)),
        Figure("private memory of a slurmstepd", "MiB", (step,)),
    )


def _step_daemon_mib(shell: Shell) -> float:
    job, pid = shell(WAITING_STEP).split()
    memory = private_kib(int(pid)) / 1_024
    shell(f"scancel {job}; rm step")
    return memory


def _mib(pids: Iterable[int]) -> float:
    """Return the memory of processes, of shared pages their part."""
    return sum(map(_proportional_kib, pids)) / 1_024


def _run_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process.

    The times of `stat` are whole clock ticks on many kernels. They count twice what a process has
    used that is woken at each tick by a timer.
    """
    texts = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(text.split()[0]) for text in texts) / 1e9


def _proportional_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # the process of a command that has just ended
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
