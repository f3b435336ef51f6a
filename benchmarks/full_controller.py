"""Controller with 10,000 waiting jobs and 1,000 simulated nodes, of whose jobs 50 end per second:
its passes, its memory, and the answers that commands get meanwhile. For each job that starts,
another one is submitted.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import NamedTuple

from benchmarks.measure import Figure, Say, Table, at_most
from benchmarks.subprocess_round import p50_and_p99_ms
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller

NODES, CPUS, MEMORY, WAITING, ENDS = 1_000, 4, 4_000, 10_000, 50
SECONDS, PAUSE, REFILL_PAUSE = 30.0, 0.02, 0.1
PASS_MS, ANSWER_MS, MEMORY_MIB = 500, 100, 300
PASSES = {"schedule_cycle": "main pass", "bf_cycle": "pass with backfill"}
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

ControllerFigures = Mapping[str, float]
"""Statistics of the controller, and the time of the answer (`at`)."""


@contextmanager
def waiting_controller(say: Say, jobs: int) -> Iterator[tuple[Path, int]]:
    """Run a controller with waiting jobs, and no node; yield its directory and process id."""
    with TemporaryDirectory(prefix="fb-") as folder, ExitStack() as processes:
        directory = Path(folder)
        (directory / "nodes").mkdir()
        (directory / "wlm.toml").write_text(SETTINGS)
        pid = start_program(processes, "fairbank.wlm.controller", folder)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(_submit, [directory] * 4, [range(part, jobs, 4) for part in range(4)]))
        say(f"{jobs:,} jobs are submitted")
        yield directory, pid


@contextmanager
def running_controller(say: Say) -> Iterator[tuple[Path, int]]:
    """Run the controller and the nodes with jobs; yield its directory and process id."""
    with waiting_controller(say, WAITING + NODES) as (directory, pid), ExitStack() as processes:
        arguments = (directory, NODES, CPUS, MEMORY, ENDS)
        start_program(processes, "benchmarks.simulated_nodes", *arguments)
        with Controller(directory) as controller:
            while controller.request("statistics")["jobs_running"] < NODES // 2:
                time.sleep(0.5)
        say(f"the jobs of {NODES:,} simulated nodes run")
        yield directory, pid


@contextmanager
def full_controller(say: Say) -> Iterator[tuple[Path, int]]:
    """Run the controller and the nodes, with a new job for each that starts; yield its directory
    and process id.
    """
    with running_controller(say) as (directory, pid), ThreadPoolExecutor(1) as refill:
        stop = Event()
        filled = refill.submit(_keep_full, directory, stop)
        try:
            yield directory, pid
        finally:
            stop.set()
        filled.result()


def start_program(processes: ExitStack, module: str, *arguments: object) -> int:
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


class AnswerRound(NamedTuple):
    """Seconds that each kind of request took, and the figures of the controller meanwhile."""

    taken: Mapping[str, Sequence[float]]
    statistics: Sequence[ControllerFigures]


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds, memory = list[AnswerRound](), list[float]()
    with full_controller(say) as (directory, pid), Controller(directory) as controller:
        for number in range(1 if short else 3):
            say(f"round {number + 1}")
            rounds.append(_answers(controller, SECONDS))
            memory.append(peak_mib(pid))
    taken = [one.taken for one in rounds]
    p99 = [
        _figure(f"{name}, p99", "ms", [p50_and_p99_ms(one[name])[1] for one in taken])
        for name in taken[0]
    ]
    seen = [one.statistics for one in rounds]
    passes = [
        _figure(f"{text}, {kind}", "ms", [value(one, name) for one in seen])
        for name, text in PASSES.items()
        for kind, value in (("mean", _mean_ms), ("longest", _longest_ms))
    ]
    peak = _figure("memory of the controller", "MiB", memory)
    waiting = [[one["jobs_pending"] for one in statistics] for statistics in seen]
    figures = (
        _figure("ends", "jobs/s", map(_ends_per_second, seen)),
        _figure("waiting jobs, begin", "jobs", [jobs[0] for jobs in waiting]),
        _figure("waiting jobs, end", "jobs", [jobs[-1] for jobs in waiting]),
        _figure("waiting jobs, least", "jobs", map(min, waiting)),
        *passes,
        *p99,
        peak,
    )
    promises = (
        *(at_most(figure.name, figure, PASS_MS) for figure in passes),
        *(at_most(figure.name, figure, ANSWER_MS) for figure in p99),
        at_most(peak.name, peak, MEMORY_MIB),
    )
    about = (
        f"{WAITING:,} jobs wait. {NODES:,} simulated nodes end {ENDS} jobs per second, and as many"
        f" are submitted. One user sends requests one after the other, {SECONDS:g} s a round."
    )
    return [Table("Workload manager: full queue", about, figures, promises)]


def _figure(name: str, unit: str, values: Iterable[float]) -> Figure:
    return Figure(name, unit, tuple(values))


def _ends_per_second(statistics: Sequence[ControllerFigures]) -> float:
    first, last = statistics[0], statistics[-1]
    return (last["jobs_completed"] - first["jobs_completed"]) / (last["at"] - first["at"])


def _mean_ms(statistics: Sequence[ControllerFigures], name: str) -> float:
    """Return the mean of the passes of a round, or of all before it if none ended in it."""
    ends = statistics[0], statistics[-1]
    counts = [one[f"{name}_counter"] for one in ends]
    if counts[0] == counts[1]:
        return ends[1][f"{name}_mean"] / 1_000
    totals = [one[f"{name}_counter"] * one[f"{name}_mean"] for one in ends]
    return (totals[1] - totals[0]) / (counts[1] - counts[0]) / 1_000


def _longest_ms(statistics: Sequence[ControllerFigures], name: str) -> float:
    """Return the longest pass of a round. The pause after a pass is as long as the pass, so that a
    long one is seen.
    """
    return max(one[f"{name}_last"] for one in statistics) / 1_000


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


def _keep_full(directory: Path, stop: Event) -> None:
    """Submit a job for each one that starts, until stopped."""
    numbers = count()
    with Controller(directory) as controller:
        while not stop.wait(REFILL_PAUSE):
            missing = WAITING - controller.request("statistics")["jobs_pending"]
            for number in islice(numbers, max(missing, 0)):
                requests.submit(controller, _job(number))


def _answers(controller: Controller, seconds: float) -> AnswerRound:
    """Send requests one after the other."""
    numbers, statistics = count(), list[ControllerFigures]()

    def submit() -> None:
        requests.submit(controller, _job(next(numbers)))

    def note_statistics() -> None:
        statistics.append({**controller.request("statistics"), "at": time.monotonic()})

    kinds: dict[str, Callable[[], object]] = {
        "submission": submit,
        "a job": lambda: requests.rows(
            controller, "jobs", COLUMNS, matching={"jobs": [str(WAITING)]}
        ),
        "statistics": note_statistics,
        "ping": lambda: controller.request("ping"),
    }
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, ask in kinds.items():
            begun = time.perf_counter()
            ask()
            taken[name].append(time.perf_counter() - begun)
        time.sleep(PAUSE)
    return AnswerRound(taken, statistics)


def peak_mib(pid: int) -> float:
    """Return the largest memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1_024
