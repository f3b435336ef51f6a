"""Simulation of deep queues: thousands of jobs of unlike widths and limits that wait at once. Whole
processes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from benchmarks.bank import sqlite_folder
from benchmarks.measure import Curve, Figure, Say, Table, at_least, ratio
from benchmarks.process import ProcessCost, run_process
from tests.support.server import FAIRBANK

SEED, PROCESSORS, DAY, HOUR = 5, 1_024, 86_400, 3_600
OURS, PLAIN = "fairbank simulate --policy easy", "a plain loop"
PLAIN_MAX = 10_000
"""Jobs up to which the plain loop, which tests each of them at each event, ends within a minute."""
WAITING = {"conservative": 2_000, "slurm": 5_000}

REMARK = """Jobs of any width up to the machine and any limit up to a day arrive in the same second,
so that each policy begins with all of them in its queue. Under Slurm's passes half of the jobs are
narrower than 23 processors, and limits are at most two hours: otherwise years would pass, of which
most of the time goes into priorities every five minutes."""


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 1 if short else 3
    with sqlite_folder() as folder:
        return [
            _easy(folder, (1_000, 5_000) if short else (2_500, 5_000, 10_000, 40_000), rounds, say),
            *(
                _other(folder, policy, waiting // 4 if short else waiting, rounds, say)
                for policy, waiting in WAITING.items()
            ),
        ]


def _easy(folder: Path, sizes: tuple[int, ...], rounds: int, say: Say) -> Table:
    figures: dict[str, Figure] = {}
    for size in sizes:
        trace = _made(folder, size, PROCESSORS, DAY)
        ours, plain = list[ProcessCost](), list[ProcessCost]()
        for number in range(rounds):
            say(f"EASY, {size:,} waiting jobs, round {number + 1} of {rounds}")
            ours.append(run_process([FAIRBANK, "simulate", str(trace), "--policy", "easy"]))
            if size <= PLAIN_MAX:
                command = [sys.executable, "-m", "benchmarks.plain_easy", str(trace)]
                plain.append(run_process(command))
        for who, costs in ((OURS, ours), (PLAIN, plain)):
            if costs:
                name = _name(who, size)
                figures[name] = Figure(name, "ms", tuple(cost.seconds * 1_000 for cost in costs))
    largest = max(size for size in sizes if size <= PLAIN_MAX)
    beside = ratio(
        f"a plain loop / Fairbank, {largest:,} jobs",
        figures[_name(PLAIN, largest)],
        figures[_name(OURS, largest)],
        1 if largest < PLAIN_MAX else 2,
    )
    curves = tuple(
        Curve(who, tuple((size, _name(who, size)) for size in sizes if _name(who, size) in figures))
        for who in (OURS, PLAIN)
    )
    about = f"Jobs that wait at once for {PROCESSORS:,} processors. CPU time of the whole process."
    return Table(
        "EASY by number of waiting jobs",
        about,
        tuple(figures.values()),
        (beside,),
        curves=curves,
        sizes="waiting jobs",
    )


def _other(folder: Path, policy: str, waiting: int, rounds: int, say: Say) -> Table:
    is_slurm = policy == "slurm"
    trace = _made(folder, waiting, *((512, 2 * HOUR) if is_slurm else (PROCESSORS, DAY)))
    costs = []
    for number in range(rounds):
        say(f"{policy}, {waiting:,} waiting jobs, round {number + 1} of {rounds}")
        costs.append(run_process([FAIRBANK, "simulate", str(trace), "--policy", policy]))
    rate = Figure(
        f"fairbank simulate --policy {policy}",
        "jobs/s",
        tuple(waiting / cost.seconds for cost in costs),
    )
    about = f"{waiting:,} jobs that wait at once, until the last has ended; whole process."
    return Table(f"Deep queue: {policy}", about, (rate,), (at_least(policy, rate, 300),))


def _name(who: str, size: int) -> str:
    return f"{who}, {size:,} jobs"


def _made(folder: Path, jobs: int, widest: int, longest: int) -> Path:
    """Write a trace. Widths are even up to the machine's; up to less, their logarithms are."""
    rng = Random(SEED)
    file = folder / f"{jobs}-{widest}.swf"
    with file.open("w") as to:
        to.write(f"; MaxProcs: {PROCESSORS}\n")
        for number in range(1, jobs + 1):
            width = rng.randint(1, widest) if widest == PROCESSORS else int(widest ** rng.random())
            limit = rng.randint(60, longest)
            run, user = rng.randint(1, limit), rng.randint(1, 50)
            to.write(
                f"{number} 0 -1 {run} {width} -1 -1 {width} {limit} -1 1 {user} 1 -1 1 1 -1 -1\n"
            )
    return file
