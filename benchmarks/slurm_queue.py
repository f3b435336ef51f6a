"""Full queue of a real slurmctld, beside the controller with as many waiting jobs: `squeue`,
memory, passes, and the answers that commands get while short jobs run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.clusters import NODES, SLURM_USER, Shell, running_slurm, slurm_shell
from benchmarks.full_controller import WAITING, peak_mib, waiting_controller
from benchmarks.measure import Figure, Say, Table, ratio
from benchmarks.steps import repeated
from benchmarks.subprocess_round import p50_and_p99_ms
from fairbank.cli.commands.cluster.directory import ClusterDirectory
from fairbank.cli.commands.cluster.settings_files import write_links
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import SLURMCTLD
from tests.support.conditions import wait_until

MOST_SQUEUE = 1.2
WAITS = (f"--nodes={NODES}", "--exclusive", "--time=10", "--nice=1000", "--output=/dev/null")
"""Options of a job that waits while any other runs."""
CYCLE = re.compile(r"^\t(?:Mean|Max) cycle: +(\d+)$", re.MULTILINE)
CYCLES = (
    "main pass, longest",
    "main pass, mean",
    "pass with backfill, longest",
    "pass with backfill, mean",
)
"""Microseconds in the output of sdiag, and their names in its order."""
REMARK = """
squeue is run as after `fairbank cluster up`, by its fork server. The controller keeps the rows of
jobs that have not changed; without them, its part would be 70 ms more. "Workload manager: full
queue" has the time of a request for one job.
"""


class Scale(NamedTuple):
    squeues: int
    tasks: int


LONG, SHORT = Scale(20, 1_000), Scale(3, 200)


def measure(*, short: bool, say: Say) -> list[Table]:
    """Measure both. Raises tests.slurm.lab.packages.Unobtainable where Slurm cannot be
    installed.
    """
    scale = SHORT if short else LONG
    with running_slurm(say) as slurm:
        _fill(slurm, WAITING)
        with waiting_controller(say, WAITING) as (directory, pid), _shell_of(directory) as shell:
            lists = _lists(shell, slurm_shell(slurm), scale)
            memory = peak_mib(pid)
        say(f"{scale.tasks} short jobs before those that wait in Slurm")
        answers = _answers(slurm, scale)
        slurmctld = slurm.pid(SLURMCTLD)
        assert slurmctld is not None
        memories = (
            Figure("memory of the controller", "MiB", (memory,)),
            Figure("memory of slurmctld", "MiB", (peak_mib(slurmctld),)),
        )
    ours, theirs = lists
    promise = ratio("squeue / Slurm's squeue", ours, theirs, MOST_SQUEUE, is_most=True)
    about = (
        f"{WAITING:,} jobs wait: in the controller, without nodes, and in a real Slurm with"
        f" {NODES} slurmd. `squeue` prints all of them. Then an array of {scale.tasks:,} `true`"
        " runs before them in Slurm, and a user runs commands one after the other: what slurmctld"
        ' says of its passes, and the times of the commands. "Workload manager: full queue" has'
        " the same of the controller."
    )
    title = "Workload manager: full queue beside Slurm"
    return [Table(title, about, (*lists, *memories, *answers), (promise,))]


def _fill(slurm: Cluster, waiting: int) -> None:
    """Let one job run on a node, and others wait for all nodes."""
    slurm.submit(SLURM_USER, "--time=60", script="sleep 3600")
    job = slurm.submit(SLURM_USER, f"--array=1-{waiting}", *WAITS)
    # A task that is changed gets a record of its own, as if it had been submitted alone.
    slurm.root("scontrol", "update", f"jobid={job}_[1-{waiting - 1}]", "timelimit=11", seconds=120)


@contextmanager
def _shell_of(directory: Path) -> Iterator[Shell]:
    """Yield the shell of a user of a controller, with the commands that `cluster up` writes."""
    cluster = ClusterDirectory(directory)
    write_links(cluster)
    path = f"{cluster.links}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = os.environ | {"FAIRBANK_CLUSTER": str(directory), "PATH": path}

    def run(script: str) -> str:
        words = ["bash", "-c", script]
        return subprocess.run(
            words, env=environment, check=True, capture_output=True, text=True
        ).stdout

    program = [sys.executable, "-X", "utf8", "-m", "fairbank.wlm.commands.forks.fork_server"]
    with subprocess.Popen([*program, cluster.commands_socket]) as server:
        try:
            wait_until(cluster.commands_socket.exists, "the fork server")
            yield run
        finally:
            server.terminate()


def _lists(ours: Shell, theirs: Shell, scale: Scale) -> tuple[Figure, Figure]:
    taken: Mapping[str, list[float]] = {"squeue": [], "Slurm's squeue": []}
    for _ in range(scale.squeues):
        for shell, values in zip((ours, theirs), taken.values(), strict=True):
            values += repeated(shell, "squeue", 1)
    first, second = (
        Figure(f"{name}, {WAITING:,} jobs", "ms", tuple(values)) for name, values in taken.items()
    )
    return first, second


def _answers(slurm: Cluster, scale: Scale) -> tuple[Figure, ...]:
    """Run an array before the waiting jobs, and commands until it has ended."""
    slurm.root("sdiag", "--reset")
    begun = time.perf_counter()
    array = slurm.submit(SLURM_USER, f"--array=1-{scale.tasks}", "--time=1", "-o", os.devnull)
    commands = {
        "submission": ("sbatch", *WAITS, "--wrap=true"),
        "a job": ("squeue", "-h", "-j", str(array + 1)),
        "statistics": ("sdiag",),
        "ping": ("scontrol", "ping"),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    while slurm.run(SLURM_USER, "squeue", "-h", "-j", str(array)).out:
        for name, command in commands.items():
            started = time.perf_counter()
            slurm.run(SLURM_USER, *command)
            taken[name].append(time.perf_counter() - started)
    rate = scale.tasks / (time.perf_counter() - begun)
    cycles = [int(microseconds) / 1_000 for microseconds in CYCLE.findall(slurm.root("sdiag"))]
    answers = {f"{name}, command, p99": p50_and_p99_ms(values)[1] for name, values in taken.items()}
    return (
        Figure("slurmctld: ends", "jobs/s", (rate,)),
        *(
            Figure(f"slurmctld: {name}", "ms", (value,))
            for name, value in [*zip(CYCLES, cycles, strict=False), *answers.items()]
        ),
    )
