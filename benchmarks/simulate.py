"""Simulating EASY, beside a plain loop in Python that does nothing else: whole processes, reading the file included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.books import sqlite_folder
from benchmarks.measure import Figure, Say, Table, at_least, at_most, ratio
from fairbank.simulator.centre import Centre, Pool
from fairbank.simulator.swf import write
from fairbank.simulator.workload import month
from tests.support.server import FAIRBANK

SEED = 11
YEARS = Centre(pools=(Pool("cpu", 768), Pool("gpu", 192, unit=8)), projects=40, users=300, jobs=200_000, days=800)
SHARED = Path(os.environ.get("FAIRBANK_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data" / "swf"
MEMORY_MIB = 110

REMARK = """Processor time of the whole process counts: other work on the machine changes it less than the time on the clock. The plain
loop (`benchmarks/plain_easy.py`) checks, counts and shows nothing, and keeps its queue in a list; both give the same mean wait. The
recorded traces are not shipped: those that are missing (`FAIRBANK_SHARED` names their folder) are left out, and this is said."""


class Trace(NamedTuple):
    """A file, how many jobs it has, and how many of them a second are promised."""

    name: str
    file: Path
    jobs: int
    promised: float


class Taken(NamedTuple):
    """What a process took: seconds of processors, and MiB at the most."""

    seconds: float
    memory: float


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 1 if short else 5
    with sqlite_folder() as folder:
        made = folder / "years.swf"
        centre = Centre(jobs=2_000, days=10) if short else YEARS
        say(f"a synthetic trace of {centre.jobs:,} jobs")
        with made.open("w") as file:
            file.writelines(write(*month(centre, SEED)))
        traces = [
            Trace("workload model", made, centre.jobs, 60_000),
            Trace("KTH-SP2", SHARED / "KTH-SP2-1996-2.1-cln.swf.gz", 28_476, 40_000),
            Trace("UB CCR week", SHARED / "UBCCR-Slurm-medium-week.swf.gz", 19_579, 15_000),
        ]
        return [_table(trace, rounds, say) for trace in traces if _is_there(trace, say)]


def _is_there(trace: Trace, say: Say) -> bool:
    """The recorded traces are not ours to ship. One that is missing is told: its promises are not measured then."""
    if not trace.file.exists():
        say(f"{trace.name} is left out: there is no {trace.file}; FAIRBANK_SHARED says in which folder data/swf is")
    return trace.file.exists()


def _table(trace: Trace, rounds: int, say: Say) -> Table:
    ours, theirs = [], []
    for number in range(rounds):
        say(f"{trace.name}, round {number + 1} of {rounds}")
        ours.append(_taken([FAIRBANK, "simulate", str(trace.file), "--policy", "easy"]))
        theirs.append(_taken([sys.executable, "-m", "benchmarks.plain_easy", str(trace.file)]))
    rate = Figure("fairbank simulate --policy easy", "jobs/s", tuple(trace.jobs / each.seconds for each in ours))
    plain = Figure("a plain loop", "jobs/s", tuple(trace.jobs / each.seconds for each in theirs))
    memory = Figure("memory of fairbank simulate, at the most", "MiB", tuple(each.memory for each in ours))
    about = f"{trace.jobs:,} jobs, whole process."
    promises = (
        at_least("EASY", rate, trace.promised),
        ratio("beside a plain loop", rate, plain, 0.25),
        at_most("memory", memory, MEMORY_MIB),
    )
    return Table(f"Simulating EASY: {trace.name}", about, (rate, plain, memory), promises)


_WATCHED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def _taken(command: list[str]) -> Taken:
    """Run a command that must succeed, from a small process: Linux counts the memory of whoever starts a command as the command's."""
    said = subprocess.run([sys.executable, "-c", _WATCHED, *command], check=True, capture_output=True, text=True).stdout
    return Taken(*map(float, said.split()))
