"""Simulation of EASY and of Slurm's passes, beside a plain loop in Python and AccaSim: whole
processes, reading the file included.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks import accasim, trace_reader, year
from benchmarks.bank import sqlite_folder
from benchmarks.measure import Figure, Say, Table, at_least, at_most, ratio
from benchmarks.process import ProcessCost, run_process
from fairbank.simulator.traces.swf import write
from fairbank.simulator.traces.synthetic import SitePartition, SyntheticSite, month
from tests.support import traces as recorded
from tests.support.server import FAIRBANK

SEED = 11
YEARS = SyntheticSite(
    pools=(SitePartition("cpu", 768), SitePartition("gpu", 192, unit=8)),
    projects=40,
    users=300,
    jobs=200_000,
    days=800,
)
SHARED = Path(os.environ.get("FAIRBANK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
MEMORY_MIB = 110
FIRST = 10_000
"""Number of jobs for AccaSim, which takes a millisecond per job."""

REMARK = """CPU time of the whole process is measured: other work on the machine changes it less
than elapsed time. The plain loop (`benchmarks/plain_easy.py`) checks, counts and shows nothing, and
keeps its queue in a list; both give the same mean wait. The recorded traces are not
part of the repository (`FAIRBANK_SHARED` names their directory); the benchmark says which
ones are missing.

`pip` finds AccaSim among the simulators that we looked for, but neither Batsim nor
pysimgrid."""


class Trace(NamedTuple):
    """Trace file, its number of jobs, and the claimed jobs per second under EASY."""

    name: str
    file: Path
    jobs: int
    promised: float


KTH = Trace(
    "KTH-SP2", recorded.trace_file(SHARED, recorded.KTH), recorded.JOBS[recorded.KTH], 40_000
)
UBCCR = Trace(
    "UB CCR week",
    recorded.trace_file(SHARED, recorded.UBCCR),
    recorded.JOBS[recorded.UBCCR],
    15_000,
)


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 1 if short else 3
    with sqlite_folder() as folder:
        made = folder / "years.swf"
        centre = replace(YEARS, jobs=50_000, days=200) if short else YEARS
        say(f"a synthetic trace of {centre.jobs:,} jobs")
        with made.open("w") as file:
            file.writelines(write(*month(centre, SEED)))
        traces = [Trace("workload model", made, centre.jobs, 60_000), KTH, UBCCR]
        tables = [_easy(trace, rounds, say) for trace in traces if _is_there(trace, say)]
        tables.append(trace_reader.table(made, folder, rounds=15 * rounds, say=say))
        if KTH.file.exists():
            tables.append(_slurm(KTH, rounds, say))
            tables += [] if short else _beside_accasim(KTH, folder / "accasim", say)
        return tables + year.tables(folder, rounds=rounds, short=short, say=say)


def _is_there(trace: Trace, say: Say) -> bool:
    """Return whether a recorded trace is available, or say that it is missing. They are not part of
    the repository.
    """
    if not trace.file.exists():
        say(
            f"{trace.name} is left out: there is no {trace.file}; FAIRBANK_SHARED says in which"
            " folder data/swf is"
        )
    return trace.file.exists()


def _simulated(trace: Trace, policy: str) -> ProcessCost:
    return run_process([FAIRBANK, "simulate", str(trace.file), "--policy", policy])


def _rate(name: str, jobs: int, rounds: Iterable[ProcessCost]) -> Figure:
    return Figure(name, "jobs/s", tuple(jobs / cost.seconds for cost in rounds))


def _easy(trace: Trace, rounds: int, say: Say) -> Table:
    ours, theirs = [], []
    for number in range(rounds):
        say(f"{trace.name}, round {number + 1} of {rounds}")
        ours.append(_simulated(trace, "easy"))
        theirs.append(run_process([sys.executable, "-m", "benchmarks.plain_easy", str(trace.file)]))
    rate = _rate("fairbank simulate --policy easy", trace.jobs, ours)
    plain = _rate("a plain loop", trace.jobs, theirs)
    memory = Figure(
        "memory of fairbank simulate, at the most", "MiB", tuple(cost.memory for cost in ours)
    )
    about = (
        f"{trace.jobs:,} jobs, whole process: the main pass at every event, backfill every 30 s, "
        "priorities again every 5 minutes."
    )
    promises = (
        at_least("EASY", rate, trace.promised),
        ratio("beside a plain loop", rate, plain, 0.25),
        at_most("memory", memory, MEMORY_MIB),
    )
    return Table(f"Simulating EASY: {trace.name}", about, (rate, plain, memory), promises)


def _slurm(trace: Trace, rounds: int, say: Say) -> Table:
    say(f"{trace.name} under Slurm's passes")
    rate = _rate(
        "fairbank simulate --policy slurm",
        trace.jobs,
        [_simulated(trace, "slurm") for _ in range(rounds)],
    )
    about = (
        f"{trace.jobs:,} jobs, whole process: the main pass at every event, backfill every 30 s,"
        " priorities every 5 minutes."
    )
    return Table(
        f"Simulating Slurm: {trace.name}",
        about,
        (rate,),
        (at_least("Slurm's passes", rate, 5_000),),
    )


def _beside_accasim(trace: Trace, folder: Path, say: Say) -> list[Table]:
    say("AccaSim is installed")
    try:
        other = accasim.install(folder)
    except accasim.Unavailable as why:
        about = f"AccaSim could not be installed where this was measured: {why}"
        return [Table(f"Beside AccaSim: {trace.name}", about, ())]
    ready, jobs = other.prepare(trace.file, FIRST)
    say(f"{jobs:,} jobs of {trace.name} by AccaSim")
    theirs = _rate("AccaSim, EASY", jobs, [other.simulate(ready, 100)])
    ours = _rate(
        "fairbank simulate --policy easy", jobs, [_simulated(trace._replace(file=ready), "easy")]
    )
    about = f"The first {jobs:,} jobs. {accasim.ABOUT}"
    return [
        Table(
            f"Beside AccaSim: {trace.name}",
            about,
            (ours, theirs),
            (ratio("Fairbank / AccaSim", ours, theirs, 10),),
        )
    ]
