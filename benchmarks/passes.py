"""Scheduling pass over ten thousand pending jobs and ten thousand nodes, and its sets of nodes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks import nodesets
from benchmarks.full_cluster import NOW, full_cluster
from benchmarks.measure import Curve, Figure, Say, Table, at_most
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.slurm.backfill import backfill
from fairbank.scheduling.slurm.main_pass import main_pass
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.scheduling.slurm.queue_order import queue_entries

NODES = JOBS = 10_000
ABOUT = (
    f"{NODES:,} nodes, all but 200 of them filled with jobs of all sizes, and {JOBS:,} pending jobs"
    " in three partitions. Parameters are Slurm's defaults: the main pass goes through the whole"
    " queue, backfill tests 500 jobs and plans a day ahead, in steps of a minute. CPU time, one"
    " thread."
)
GROWING = "The main pass and backfill together, as above. CPU time, one thread."


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 3 if short else 9
    say(f"{JOBS:,} jobs on {NODES:,} nodes")
    there, parameters = full_cluster(NODES, JOBS, free=200), SchedulerParameters()
    figures = cpu_time_each(
        {
            "the order of the queue": partial(_order, there),
            "the main pass": partial(main_pass, there, parameters, NOW, full=True),
            "backfill": partial(backfill, there, parameters, NOW),
            "both, one after the other": partial(run_passes, there, parameters, NOW),
        },
        rounds,
    )
    tables = [Table("One pass", ABOUT, tuple(figures), (at_most("both passes", figures[-1], 500),))]
    tables.append(
        _growing("nodes", {nodes: (nodes, 1_000) for nodes in (10, 100, 1_000, NODES)}, rounds, say)
    )
    tables.append(
        _growing(
            "waiting jobs",
            {jobs: (1_000, jobs) for jobs in (100, 1_000, JOBS, *(() if short else (10 * JOBS,)))},
            rounds,
            say,
        )
    )
    say(f"sets of {nodesets.NODES:,} nodes")
    return tables + nodesets.tables(rounds)


def _growing(what: str, sizes: Mapping[int, tuple[int, int]], rounds: int, say: Say) -> Table:
    """Return the time of a pass by number of nodes or jobs; each size carries both numbers."""
    contenders = dict[str, Callable[[], object]]()
    by_size: list[tuple[int, str]] = []
    for size, (nodes, jobs) in sizes.items():
        say(f"{jobs:,} jobs on {nodes:,} nodes")
        name = f"{jobs:,} jobs, {nodes:,} nodes"
        contenders[name] = partial(_both, full_cluster(nodes, jobs, free=nodes // 50))
        by_size.append((size, name))
    curve = Curve("both passes", tuple(by_size))
    return Table(
        f"A pass by the number of {what}",
        GROWING,
        tuple(cpu_time_each(contenders, rounds)),
        curves=(curve,),
        sizes=what,
    )


def _order(there: OnNodes) -> object:
    return queue_entries(there.machine, there.queue.jobs(), NOW)


def _both(there: OnNodes) -> object:
    return run_passes(there, SchedulerParameters(), NOW)


def cpu_time_each(contenders: Mapping[str, Callable[[], object]], rounds: int) -> list[Figure]:
    """Return the CPU time of one call of each contender, in milliseconds.

    Rounds alternate, after one that is not counted. Python collects cyclic garbage as rarely as in
    our server.
    """
    gc.set_threshold(50_000, 10, 10)
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(-1, rounds):
        for name, work in contenders.items():
            begun = time.process_time()
            work()
            if number >= 0:
                seen[name].append((time.process_time() - begun) * 1_000)
    return [Figure(name, "ms", tuple(times)) for name, times in seen.items()]
