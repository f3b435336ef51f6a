"""One live pass over ten thousand waiting jobs and ten thousand nodes, and the sets of nodes that it works with."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks import nodesets
from benchmarks.crowded import NOW, crowded
from benchmarks.measure import Figure, Say, Table, at_most
from fairbank.scheduling.backfill import backfill
from fairbank.scheduling.main import main
from fairbank.scheduling.on_nodes import OnNodes
from fairbank.scheduling.order import entries
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.slurm import both

NODES = JOBS = 10_000
ABOUT = (
    f"{NODES:,} nodes, full with jobs of all sizes but for 200, and {JOBS:,} jobs waiting in three partitions. Parameters are Slurm's own: "
    "the main pass goes through the whole queue, backfill tests 500 jobs and plans for a day ahead, in steps of a minute. One thread."
)
GROWING = "The main pass and backfill together, by the length of the queue and by the number of nodes. One thread."


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 3 if short else 9
    say(f"{JOBS:,} jobs on {NODES:,} nodes")
    there, asked = crowded(NODES, JOBS, free=200), Parameters()
    figures = timed(
        {
            "the order of the queue": partial(_order, there),
            "the main pass": partial(main, there, asked, NOW, full=True),
            "backfill": partial(backfill, there, asked, NOW),
            "both, one after the other": partial(both, there, asked, NOW),
        },
        rounds,
    )
    tables = [Table("One pass", ABOUT, tuple(figures), (at_most("both passes", figures[-1], 500),))]
    tables.append(Table("How a pass grows", GROWING, tuple(growing(rounds, short=short, say=say))))
    say(f"sets of {nodesets.NODES:,} nodes")
    return tables + nodesets.tables(rounds)


def growing(rounds: int, *, short: bool, say: Say) -> list[Figure]:
    sizes = [(100, 1_000), (1_000, 1_000), (NODES, 1_000)] + ([] if short else [(1_000, JOBS), (1_000, 100_000)])
    contenders = dict[str, Callable[[], object]]()
    for nodes, jobs in sizes:
        say(f"{jobs:,} jobs on {nodes:,} nodes")
        contenders[f"{jobs:,} jobs, {nodes:,} nodes"] = partial(_both, crowded(nodes, jobs, free=nodes // 50))
    return timed(contenders, rounds)


def _order(there: OnNodes) -> object:
    return entries(there.machine, there.queue.jobs(), NOW)


def _both(there: OnNodes) -> object:
    return both(there, Parameters(), NOW)


def timed(contenders: Mapping[str, Callable[[], object]], rounds: int) -> list[Figure]:
    """Milliseconds of one call each. Python looks for cycles as rarely as in our server (`fairbank.rest.server.serving`)."""
    gc.set_threshold(50_000, 10, 10)
    return [Figure(each.name, "ms", tuple(one / 1_000 for one in each.rounds)) for each in nodesets.timed(contenders, rounds, times=1)]
