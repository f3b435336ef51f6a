"""Benchmark of the priorities of a whole queue against the same formula in plain Python."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Curve, Figure, Say, Table, at_most, ratio, time_each
from fairbank.priority.multifactor.combination import priorities
from fairbank.priority.multifactor.pending_jobs import (
    NO_QOS,
    FactorScale,
    PendingColumns,
    pending,
    scale,
)
from fairbank.priority.settings import MultifactorSettings, PriorityWeights

NOW, WEEK = 1_700_000_000, 604_800
MILLION = 1_000_000
SIZES = (1_000, 10_000, 100_000, MILLION)
PLAINLY = 20_000  # jobs that plain Python is given; its time is given for a million

WEIGHTS = PriorityWeights(
    age=1_000,
    association=100,
    fairshare=10_000,
    job_size=500,
    partition=1_000,
    qos=2_000,
    tres={"cpu": 1_000.0, "mem": 2_000.0, "gres/gpu": 3_000.0},
)
SETTINGS = MultifactorSettings(weights=WEIGHTS)

REMARK = """
Jobs are computed in blocks, so that intermediate values stay in the processor's cache.
"""
ABOUT = (
    "Age, association, fair share, job size, partition, QOS, three TRES, site and nice, each job in"
    " one of four partitions; one thread. Plain Python works the same formula out job by job, over"
    " fewer jobs; its time is scaled to as many."
)


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 3 if short else 15
    say(f"the priorities of {MILLION:,} jobs")
    jobs, to = queue(MILLION), cluster()
    rows, plainer = plain_rows(jobs.rows(slice(PLAINLY))), plain_scale(to, SETTINGS)
    ours, plainly = time_each(
        {
            "Fairbank": lambda: priorities(jobs, to, SETTINGS, NOW),
            "plain Python": lambda: [plain(row, plainer, SETTINGS, NOW) for row in rows],
        },
        rounds,
    )
    plainly = Figure(
        plainly.name, plainly.unit, tuple(rate * MILLION / PLAINLY for rate in plainly.rounds)
    )
    queues = {size: f"{size:,} jobs" for size in SIZES}
    grown = time_each(
        {
            name: partial(priorities, jobs.rows(slice(size)), to, SETTINGS, NOW)
            for size, name in queues.items()
        },
        rounds,
    )
    promises = (
        at_most("priorities of a million jobs", ours, 60),
        ratio("plain Python / Fairbank", plainly, ours, 8),
    )
    return [
        Table("Priorities of a million jobs", ABOUT, (ours, plainly), promises),
        Table(
            "Priorities by the length of the queue",
            "The same, of the first jobs of the queue.",
            tuple(grown),
            curves=(Curve("priorities", tuple(queues.items())),),
            sizes="jobs",
        ),
    ]


def cluster() -> FactorScale:
    totals = {
        "cpu": [64_000, 32_000, 16_000, 64_000],
        "mem": [256_000_000] * 4,
        "gres/gpu": [400, 400, 100, 800],
    }
    return scale(
        nodes=1_000,
        cpus=64_000,
        partition_factors=[1, 2, 5, 10],
        qos_priorities=[0, 10, 100],
        association_max=1_000,
        totals=totals,
    )


def queue(count: int) -> PendingColumns:
    """Jobs of every kind, the same each time."""
    random = np.random.default_rng(11)

    def some(low: int, high: int) -> np.typing.NDArray[np.int64]:
        return random.integers(low, high, count)

    return pending(
        cluster(),
        count,
        accrued_at=NOW - some(0, 2 * WEEK),
        association=some(0, 1_001),
        fairshare=random.random(count),
        nodes=some(1, 100),
        cpus=some(1, 6_400),
        limit_minutes=some(1, 10_080),
        nice=some(0, 100),
        site=some(0, 1_000),
        partition=some(0, 4),
        qos=some(NO_QOS, 3),
        tres={"cpu": some(1, 6_400), "mem": some(1, 1_000_000), "gres/gpu": some(0, 9)},
    )


Row = tuple[Any, ...]
"""A job's columns, in Python's own numbers."""


def plain_rows(jobs: PendingColumns) -> list[Row]:
    """The same jobs one by one."""
    return list(zip(*(column.T.tolist() for column in jobs), strict=True))


class Plain(NamedTuple):
    """A scale in Python's own numbers, with what is the same for all jobs worked out."""

    nodes: int
    cpus: int
    association_max: float
    by_partition: list[float]
    by_qos: list[float]
    tres: list[tuple[float, list[float]]]
    """Weight and the partitions' totals of each TRES."""


def plain_scale(to: FactorScale, settings: MultifactorSettings) -> Plain:
    weights = settings.weights
    factors, qoses = to.partition_factors.tolist(), to.qos_priorities.tolist()
    return Plain(
        nodes=to.nodes,
        cpus=to.cpus,
        association_max=to.association_max,
        by_partition=[factor / max(1.0, *factors) * weights.partition for factor in factors],
        by_qos=[priority / (max(qoses) or 1.0) * weights.qos for priority in qoses],
        tres=[
            (weights.tres.get(name, 0.0), totals)
            for name, totals in zip(to.tres, to.totals.tolist(), strict=True)
        ],
    )


def plain(row: Row, to: Plain, settings: MultifactorSettings, now: int) -> int:
    """Return the priority of one job (slurm-rules.md, "Job priority"), large jobs favoured."""
    accrued, association, fairshare, nodes, cpus, _, nice, site, partition, qos, counts = row
    weights = settings.weights
    age = min(max(now - accrued, 0) / settings.max_age_seconds, 1.0) if accrued else 0.0
    beside = association / to.association_max if to.association_max else 0.0
    size = (nodes / to.nodes + cpus / to.cpus) / 2 if cpus else nodes / to.nodes
    by_tres = 0.0
    for count, (weight, totals) in zip(counts, to.tres, strict=True):
        if totals[partition]:
            by_tres += count / totals[partition] * weight
    priority = (
        age * weights.age
        + beside * weights.association
        + fairshare * weights.fairshare
        + min(size, 1.0) * weights.job_size
        + to.by_partition[partition]
        + to.by_qos[qos]
        + by_tres
        + site
        - nice
    )
    return min(int(max(priority, 1.0)), 2**32 - 1)
