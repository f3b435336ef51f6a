"""Controller with 10,000 waiting jobs and 1,000 simulated nodes, of whose jobs 50 end per second:
its passes, its memory, and the answers that commands get meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, Say, Table, at_most
from benchmarks.subprocess_round import p50_and_p99_ms
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller

NODES, CPUS, MEMORY, WAITING, ENDS = 1_000, 4, 4_000, 10_000, 50
SECONDS, PAUSE = 30.0, 0.02
PASS_MS, ANSWER_MS, MEMORY_MIB = 500, 100, 300
PASSES = {"schedule_cycle": "main pass, mean", "bf_cycle": "pass with backfill, mean"}
SETTINGS = f"""
[cluster]
cluster_name = "lab"
max_job_count = 40000
slurmd_timeout = 0

[priority]
priority_type = "priority/multifactor"
priority_weight_age = 1000
priority_weight_fairshare = 10000
priority_weight_job_size = 100

[[nodes]]
node_name = "n[0001-{NODES:04}]"
cpus = {CPUS}
real_memory = {MEMORY}

[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
default_time = "60"
"""
COLUMNS = ("job_id", "partition", "name", "user", "state", "priority")


@contextmanager
def full_controller(say: Say) -> Iterator[tuple[Path, int]]:
    """Run the controller and the nodes; yield its directory and process id."""
    with TemporaryDirectory(prefix="fb-") as folder, ExitStack() as processes:
        directory = Path(folder)
        (directory / "nodes").mkdir()
        (directory / "wlm.toml").write_text(SETTINGS)
        pid = _start(processes, "fairbank.wlm.controller", folder)
        with ThreadPoolExecutor(4) as threads:
            parts = [range(part, WAITING + NODES, 4) for part in range(4)]
            list(threads.map(_submit, [directory] * 4, parts))
        say(f"{WAITING + NODES:,} jobs are submitted")
        _start(processes, "benchmarks.simulated_nodes", folder, NODES, CPUS, MEMORY, ENDS)
        with Controller(directory) as controller:
            while requests.statistics(controller)["jobs_running"] < NODES // 2:
                time.sleep(0.5)
        say(f"the jobs of {NODES:,} simulated nodes run")
        yield directory, pid


def _start(processes: ExitStack, module: str, *arguments: object) -> int:
    """Start a program that runs as long as the stack, and return its process id when it is
    ready.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    processes.callback(process.wait)
    processes.callback(process.terminate)
    assert process.stdout is not None
    process.stdout.readline()
    return process.pid


def measure(*, short: bool, say: Say) -> list[Table]:
    ends, memory, passes = list[float](), list[float](), dict[str, list[float]]()
    answers: dict[str, list[float]] = {}
    with full_controller(say) as (directory, pid), Controller(directory) as controller:
        for number in range(1 if short else 3):
            say(f"round {number + 1}")
            before, begun = requests.statistics(controller), time.perf_counter()
            taken = _answers(controller, SECONDS)
            after, elapsed = requests.statistics(controller), time.perf_counter() - begun
            ends.append((after["jobs_completed"] - before["jobs_completed"]) / elapsed)
            memory.append(_peak_mib(pid))
            for name in PASSES:
                passes.setdefault(name, []).append(after[f"{name}_mean"] / 1_000)
            for name, values in taken.items():
                answers.setdefault(f"{name}, p99", []).append(p50_and_p99_ms(values)[1])
    rate = Figure("ends", "jobs/s", tuple(ends))
    peak = Figure("memory of the controller", "MiB", tuple(memory))
    pass_times = [Figure(PASSES[name], "ms", tuple(values)) for name, values in passes.items()]
    p99 = [Figure(name, "ms", tuple(values)) for name, values in answers.items()]
    promises = (
        *(at_most(figure.name, figure, PASS_MS) for figure in pass_times),
        *(at_most(figure.name, figure, ANSWER_MS) for figure in p99),
        at_most(peak.name, peak, MEMORY_MIB),
    )
    about = (
        f"{WAITING:,} jobs wait. {NODES:,} simulated nodes end {ENDS} jobs per second. One user"
        f" sends requests one after the other, {SECONDS:g} s a round."
    )
    figures = (rate, *pass_times, *p99, peak)
    return [Table("Workload manager: full queue", about, figures, promises)]


def _submit(directory: Path, numbers: range) -> None:
    with Controller(directory) as controller:
        for number in numbers:
            requests.submit(controller, _job(number))


def _job(number: int) -> requests.JobToSubmit:
    options = {
        "output": "/dev/null",
        "time": str(10 + number % 97),
        "job-name": f"job{number}",
        "account": f"a{number % 20}",
        "cpus-per-task": str(CPUS),
        "nodes": "2" if number % 11 == 0 else "1",
    }
    return requests.JobToSubmit(b"#!/bin/sh\ntrue\n", options, "/", [b"PATH=/usr/bin:/bin"])


def _answers(controller: Controller, seconds: float) -> dict[str, list[float]]:
    """Return how long each kind of request took."""
    numbers = count()

    def submit() -> None:
        requests.submit(controller, _job(next(numbers)))

    kinds: dict[str, Callable[[], object]] = {
        "submission": submit,
        "a job": lambda: requests.rows(
            controller, "jobs", COLUMNS, matching={"jobs": [str(WAITING)]}
        ),
        "statistics": lambda: requests.statistics(controller),
        "ping": lambda: requests.ping(controller),
    }
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, ask in kinds.items():
            begun = time.perf_counter()
            ask()
            taken[name].append(time.perf_counter() - begun)
        time.sleep(PAUSE)
    return taken


def _peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1_024
