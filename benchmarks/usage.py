"""Tick over all usage: it decays, and the usage of running jobs is added, up to the root; beside
plain Python.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.measure import Curve, Figure, Say, Table, at_most, ratio, time_each
from fairbank.priority.fairshare.charges import ChargedJobs
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.usage_ticks import ChargedRows, Rules, UsageLedger, apply_tick
from tests.priority.recomputed_usage import zero_usage

LEVELS, TRES, TICK = 6, 10, 300
NOON = 1_000_000_000
RULES = Rules(Decay())
Plain = tuple[list[list[float]], list[float], list[float]]
MILLISECONDS, TIMES = 20, 8
TICKED, FADED, PLAINLY = "a tick", "fading", "fading in plain Python"

REMARK = """
Usage is kept in C's long double, as in Slurm, so that it agrees to the last bit: sixteen bytes per
figure and no vector instructions. The usage of a job is added to each association up to the root,
in the order of the jobs.
"""


class Scale(NamedTuple):
    """Number of associations, in a tree of LEVELS levels, and of running jobs."""

    associations: int
    jobs: int


PROMISED = Scale(100_000, 1_000)
CURVE = (Scale(1_000, 10), Scale(10_000, 100), PROMISED, Scale(1_000_000, 10_000))


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 3 if short else 15
    figures: dict[str, Figure] = {}
    scales = CURVE[:3] if short else CURVE
    for scale in scales:
        say(f"{scale.associations:,} associations")
        figures |= {figure.name: figure for figure in _figures(scale, rounds)}
    name = _named(PROMISED)
    ours, theirs = figures[f"{FADED}, {name}"], figures[f"{PLAINLY}, {name}"]
    promises = (
        at_most(f"a tick, {name}", figures[f"{TICKED}, {name}"], MILLISECONDS),
        ratio("plain Python / Fairbank, fading", theirs, ours, TIMES),
    )
    curves = tuple(
        Curve(
            what,
            tuple(
                (scale.associations, label)
                for scale in scales
                if (label := f"{what}, {_named(scale)}") in figures
            ),
        )
        for what in (TICKED, FADED, PLAINLY)
    )
    about = (
        f"{TRES} TRES each, in a tree of {LEVELS} levels; one running job per hundred associations,"
        " and none in the row for decay alone."
    )
    return [
        Table(
            "A tick over all usage",
            about,
            tuple(figures.values()),
            promises,
            curves,
            "associations",
        )
    ]


def _named(scale: Scale) -> str:
    return f"{scale.associations:,} associations"


def _figures(scale: Scale, rounds: int) -> list[Figure]:
    payers, jobs = cluster(scale)
    none = jobs.only(np.zeros(scale.jobs, bool))
    usage = tick(zero_usage(payers, TRES), jobs, payers)
    # The lists hold doubles, less work than the long doubles of Slurm and Fairbank, so the
    # ratio is too modest.
    plain = [
        usage.associations.tres.astype(float).tolist(),
        usage.associations.raw.tolist(),
        usage.associations.wall.tolist(),
    ]
    contenders: dict[str, Callable[[], object]] = {
        TICKED: lambda: tick(usage, jobs, payers),
        FADED: lambda: tick(usage, none, payers),
    }
    if scale.associations <= PROMISED.associations:
        contenders[PLAINLY] = lambda: decay_in_python(*plain)
    return time_each(
        {f"{what}, {_named(scale)}": work for what, work in contenders.items()}, rounds
    )


def tick(usage: UsageLedger, jobs: ChargedJobs, payers: ChargedRows) -> UsageLedger:
    return apply_tick(usage, jobs, payers, RULES, last=NOON, now=NOON + TICK)


def decay_in_python(tres: list[list[float]], raw: list[float], wall: list[float]) -> Plain:
    """Do the same decay with lists, in the shortest Python."""
    left = (1 - 0.693 / RULES.decay.half_life) ** TICK
    return (
        [[value * left for value in row] for row in tres],
        [value * left for value in raw],
        [value * left for value in wall],
    )


def cluster(scale: Scale) -> tuple[ChargedRows, ChargedJobs]:
    chance = random.Random(scale.associations)
    parent = np.full(scale.associations, -1, np.int64)
    wide = max(1, round(scale.associations ** (1 / (LEVELS - 1))))
    for row in range(1, scale.associations):
        parent[row] = (row - 1) // wide
    leaves = range(scale.associations // wide, scale.associations)
    who = np.array([chance.choice(leaves) for _ in range(scale.jobs)], np.int64)
    nobody = np.full(scale.jobs, -1, np.int64)
    counts = np.array(
        [[chance.randrange(1, 1_000) for _ in range(TRES)] for _ in range(scale.jobs)], np.uint64
    )
    start = np.full(scale.jobs, NOON, np.int64)
    billed = counts[:, 0].astype(np.float64) * 1.25
    jobs = ChargedJobs(
        who, nobody, nobody, np.ones(scale.jobs), start, np.zeros_like(start), billed, counts
    )
    return ChargedRows(parent, np.zeros(0, bool)), jobs
