"""Whole tables at once equal one job after the other, to the last bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.core.time import DAY
from fairbank.priority.fairshare.charges import ChargedJobs
from fairbank.priority.fairshare.decay import Reset, fading
from fairbank.priority.fairshare.usage import DecayedUsage
from fairbank.priority.fairshare.usage_ticks import ChargedRows, Rules, apply_tick, end_jobs
from tests.priority.recomputed_usage import zero_usage
from tests.priority.scalar_ledgers import Owner, Work, charge, tick

NOON = 1_000_000_000
TRES = 3


class Life(NamedTuple):
    """Jobs that start at `NOON`, some ticks, and the ends of the first jobs."""

    parent: list[int]
    keeps: list[bool]
    jobs: list[tuple[int, int, int, float, float, list[int]]]
    ticks: list[int]
    end: int
    half_life: int


@st.composite
def lives(draw: st.DrawFn) -> Life:
    rows = draw(st.integers(1, 8))
    parent = [-1, *(draw(st.integers(0, row - 1)) for row in range(1, rows))]
    keeps = draw(st.lists(st.booleans(), max_size=3))
    qos = st.integers(-1, len(keeps) - 1)
    count = st.integers(0, 10_000)
    factor, billable = st.sampled_from([1.0, 0.0, 0.1, 2.5]), st.floats(0, 1_000)
    one = st.tuples(
        st.integers(0, rows - 1),
        qos,
        qos,
        factor,
        billable,
        st.lists(count, min_size=TRES, max_size=TRES),
    )
    steps = draw(st.lists(st.integers(1, 1_000), min_size=1, max_size=5))
    jobs = draw(st.lists(one, min_size=1, max_size=6))
    ticks = [NOON + sum(steps[: number + 1]) for number in range(len(steps))]
    return Life(
        parent,
        keeps,
        jobs,
        ticks,
        draw(st.integers(0, len(jobs))),
        draw(st.sampled_from([0, 60, DAY, 7 * DAY])),
    )


@settings(max_examples=60)
@given(lives())
def test_vectorised_usage_equals_scalar_usage_bit_for_bit(life: Life) -> None:
    owners = [Owner(TRES) for _ in life.parent]
    for owner, above in zip(owners, life.parent, strict=True):
        owner.parent = owners[above] if above >= 0 else None
    qos = [Owner(TRES, keeps=keeps) for keeps in life.keeps]
    works = [
        Work(
            owners[who],
            qos[own] if own >= 0 else None,
            qos[other] if other >= 0 else None,
            factor,
            NOON,
            units,
            alloc,
        )
        for who, own, other, factor, units, alloc in life.jobs
    ]
    who, own, other, factor, units, alloc = (
        np.array(column) for column in zip(*life.jobs, strict=True)
    )
    start = np.full(len(works), NOON)
    jobs = ChargedJobs(
        who, own, other, factor, start, np.zeros_like(start), units, alloc.astype(np.uint64)
    )
    payers, rules = (
        ChargedRows(np.array(life.parent), np.array(life.keeps, bool)),
        Rules(fading(life.half_life, Reset.NONE)),
    )

    usage, last = zero_usage(payers, TRES), NOON
    for now in life.ticks:
        tick([*owners, *qos], works, last, now, life.half_life)
        usage, last = apply_tick(usage, jobs, payers, rules, last=last, now=now), now
    for work in works[: life.end]:
        charge(work, last, last + 77, life.half_life)
    usage = end_jobs(usage, jobs.only(np.arange(life.end)), payers, rules, last=last, now=last + 77)
    _same(owners, usage.associations)
    _same(qos, usage.qos)


def _same(owners: list[Owner], usage: DecayedUsage) -> None:
    assert [owner.raw for owner in owners] == list(usage.raw)
    assert [owner.wall for owner in owners] == usage.wall.tolist()
    assert [owner.used for owner in owners] == [list(row) for row in usage.tres]
