"""Year of a million jobs, and the growth of a simulation from ten thousand jobs on: whole
processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import Curve, Figure, Say, Table, at_most
from benchmarks.process import ProcessCost, run_process
from fairbank.simulator.traces.swf import write
from fairbank.simulator.traces.synthetic import SitePartition, SyntheticSite, month
from tests.support.server import FAIRBANK

SEED = 11
DAYS, MILLION = 365, 1_000_000
POOLS = tuple(
    pool
    for number in range(10)
    for pool in (SitePartition(f"cpu{number}", 768), SitePartition(f"gpu{number}", 192, unit=8))
)
OURS, PLAIN = "fairbank simulate --policy easy", "a plain loop"
ABOUT = f"""A synthetic site of {sum(pool.processors for pool in POOLS):,} processors, 87 % of them
busy, that receives {MILLION:,} jobs in a year: its first days, and the year. CPU time of the whole
process, EASY, the file not compressed."""
SECONDS, MEMORY_MIB = 120, 256


def tables(folder: Path, *, rounds: int, short: bool, say: Say) -> list[Table]:
    """Measure. The million jobs have one round."""
    sizes = (1_000, 10_000) if short else (10_000, 100_000, MILLION)
    figures: list[Figure] = []
    last: list[ProcessCost] = []
    for size in sizes:
        say(f"{size:,} jobs")
        trace = _made(folder, size)
        last, plain = [], []
        for _ in range(1 if size == MILLION else rounds):
            last.append(run_process([FAIRBANK, "simulate", str(trace), "--policy", "easy"]))
            if size != MILLION:  # the plain loop would take as long as all the rest
                plain.append(
                    run_process([sys.executable, "-m", "benchmarks.plain_easy", str(trace)])
                )
        figures += [
            _milliseconds(_name(who, size), rounds)
            for who, rounds in ((OURS, last), (PLAIN, plain))
            if rounds
        ]
        trace.unlink()
    curves = tuple(
        Curve(
            who, tuple((size, _name(who, size)) for size in sizes if who == OURS or size != MILLION)
        )
        for who in (OURS, PLAIN)
    )
    grown = Table(
        "Simulation by number of jobs", ABOUT, tuple(figures), curves=curves, sizes="jobs"
    )
    return [grown] if short else [grown, _year(last)]


def _year(rounds: list[ProcessCost]) -> Table:
    seconds = Figure("fairbank simulate --policy easy", "s", tuple(cost.seconds for cost in rounds))
    memory = Figure("its memory, at the most", "MiB", tuple(cost.memory for cost in rounds))
    about = (
        f"{MILLION:,} jobs, as above. The start and the wait of each job are kept, for the"
        " fingerprint and the medians."
    )
    return Table(
        "A year of a million jobs",
        about,
        (seconds, memory),
        (at_most("the year", seconds, SECONDS), at_most("memory", memory, MEMORY_MIB)),
    )


def _made(folder: Path, jobs: int) -> Path:
    file = folder / f"{jobs}.swf"
    centre = SyntheticSite(
        pools=POOLS, projects=100, users=1_000, jobs=jobs, days=max(1, round(jobs * DAYS / MILLION))
    )
    with file.open("w") as to:
        to.writelines(write(*month(centre, SEED)))
    return file


def _name(who: str, size: int) -> str:
    return f"{who}, {size:,} jobs"


def _milliseconds(name: str, rounds: list[ProcessCost]) -> Figure:
    return Figure(name, "ms", tuple(cost.seconds * 1_000 for cost in rounds))
