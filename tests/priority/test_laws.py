"""Laws of priorities that hold for every queue, cluster and settings."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.slurm_numbers import NICE_MAX, U32_MAX
from fairbank.priority.multifactor.combination import LOWEST, priorities, weighted
from fairbank.priority.multifactor.pending_jobs import FactorScale, pending, scale
from fairbank.priority.settings import RAW, Flag, MultifactorSettings, PriorityWeights

NOW = 2_000_000_000
U64_MAX = 2**64 - 1
LARGEST = float(np.finfo(float).max)

u32, nice = st.integers(0, U32_MAX), st.integers(-NICE_MAX, NICE_MAX)
weight = st.one_of(st.sampled_from([0, 1, U32_MAX]), st.integers(0, U32_MAX))
tres_weight = st.one_of(st.sampled_from([0.0, 1.0, 1e308]), st.floats(0, 1e6))
weights = st.builds(
    PriorityWeights,
    age=weight,
    association=weight,
    fairshare=weight,
    job_size=weight,
    partition=weight,
    qos=weight,
    tres=st.fixed_dictionaries({"cpu": tres_weight, "gres/gpu": tres_weight}),
)
normal = st.frozensets(
    st.sampled_from([Flag.SMALL_RELATIVE_TO_TIME, Flag.INCR_ONLY, Flag.CALCULATE_RUNNING])
)


def some_settings(
    flags: st.SearchStrategy[frozenset[Flag]],
) -> st.SearchStrategy[MultifactorSettings]:
    return st.builds(
        MultifactorSettings,
        weights=weights,
        flags=flags,
        max_age_seconds=st.integers(0, U32_MAX),
        favour_small=st.booleans(),
        accounted=st.booleans(),
    )


@dataclass(frozen=True)
class Case:
    """One job in a cluster."""

    to: FactorScale
    job: dict[str, Any]

    def priority(self, settings: MultifactorSettings, now: int = NOW, **other: Any) -> int:
        return int(priorities(pending(self.to, 1, **(self.job | other)), self.to, settings, now)[0])


@st.composite
def cases(draw: st.DrawFn, *, fitting: bool = False) -> Case:
    """Draw a job of any size that the types allow; `fitting`: no larger than the cluster."""
    nodes, cpus, highest = (draw(st.integers(1, U32_MAX)) for _ in range(3))
    factors = draw(st.lists(st.integers(0, 65_535), min_size=1, max_size=3))
    qoses = draw(st.lists(u32, max_size=3))
    totals = {
        name: [draw(st.integers(0, U64_MAX)) for _ in factors] for name in ("cpu", "gres/gpu")
    }
    to = scale(
        nodes=nodes,
        cpus=cpus,
        partition_factors=factors,
        qos_priorities=qoses,
        association_max=highest,
        totals=totals,
    )
    partition = draw(st.integers(0, len(factors) - 1))
    return Case(
        to,
        {
            "accrued_at": draw(st.one_of(st.just(0), st.integers(1, 2 * NOW))),
            "association": draw(st.integers(0, highest)),
            "fairshare": draw(st.floats(0, 1)),
            "nodes": draw(st.integers(1, nodes if fitting else U32_MAX)),
            "cpus": draw(st.integers(0, cpus if fitting else U32_MAX)),
            "limit_minutes": draw(st.integers(1, U32_MAX)),
            "nice": draw(nice),
            "site": draw(nice),
            "partition": partition,
            "qos": draw(st.integers(-1, len(qoses) - 1)),
            "tres": {
                name: draw(st.integers(0, totals[name][partition] if fitting else U64_MAX))
                for name in totals
            },
        },
    )


@given(cases(fitting=True), some_settings(normal))
def test_normalised_factors_are_from_0_to_1(case: Case, settings: MultifactorSettings) -> None:
    one = PriorityWeights(
        age=1,
        association=1,
        fairshare=1,
        job_size=1,
        partition=1,
        qos=1,
        tres={"cpu": 1.0, "gres/gpu": 1.0},
    )
    result = MultifactorSettings(
        weights=one,
        flags=settings.flags,
        max_age_seconds=settings.max_age_seconds,
        favour_small=settings.favour_small,
    )
    terms = weighted(pending(case.to, 1, **case.job), case.to, result, NOW)
    for column in (*terms[:6], *terms.tres):
        assert 0.0 <= column[0] <= 1.0


@given(cases(), some_settings(st.frozensets(st.sampled_from(list(Flag)))))
def test_priority_is_positive_32_bit_integer(case: Case, settings: MultifactorSettings) -> None:
    assert LOWEST <= case.priority(settings) <= U32_MAX


FULL = scale(
    nodes=1,
    cpus=1,
    partition_factors=[65_535],
    qos_priorities=[U32_MAX],
    association_max=U32_MAX,
    totals={"cpu": [U64_MAX], "mem": [U64_MAX]},
)
"""A cluster whose every figure is as large as its type."""
MOST = {
    "accrued_at": 1,
    "association": U32_MAX,
    "fairshare": 1.0,
    "nodes": U32_MAX,
    "cpus": U32_MAX,
    "qos": 0,
    "tres": {"cpu": U64_MAX},
}
FACTORS = ("age", "association", "fairshare", "job_size", "partition", "qos")


@pytest.mark.parametrize("several", [1, 2, 6])
@pytest.mark.parametrize(
    ("site", "given"),
    [(0, 0), (0, 1), (1, 0), (NICE_MAX, -NICE_MAX), (-NICE_MAX, NICE_MAX), (NICE_MAX, NICE_MAX)],
)
def test_extreme_priorities_equal_integer_sum(several: int, site: int, given: int) -> None:
    """Python's integers are unbounded, so a value that wraps around or is truncated early would
    differ.
    """
    for first in range(len(FACTORS)):
        chosen = (*FACTORS, *FACTORS)[first : first + several]
        heavy = msgspec.structs.replace(PriorityWeights(), **dict.fromkeys(chosen, U32_MAX))
        result = Case(FULL, MOST).priority(
            MultifactorSettings(weights=heavy), site=site, nice=given
        )
        assert result == min(max(several * U32_MAX + site - given, LOWEST), U32_MAX)


def test_largest_weight_gives_highest_priority() -> None:
    heavy = PriorityWeights(tres={"cpu": LARGEST, "mem": LARGEST})
    for flags in (RAW, frozenset[Flag]()):
        assert (
            Case(FULL, MOST).priority(
                MultifactorSettings(weights=heavy, flags=flags), site=-NICE_MAX, nice=NICE_MAX
            )
            == U32_MAX
        )
    assert (
        Case(FULL, {}).priority(MultifactorSettings(weights=heavy), site=-NICE_MAX, nice=NICE_MAX)
        == LOWEST
    )


@given(cases(), some_settings(normal), st.data())
def test_priority_is_monotonic_in_its_factors(
    case: Case, settings: MultifactorSettings, data: st.DataObject
) -> None:
    before = case.priority(settings)
    column, most = data.draw(
        st.sampled_from(
            [("fairshare", 1.0), ("association", int(case.to.association_max)), ("site", NICE_MAX)]
        )
    )
    low = case.job[column]
    higher = data.draw(
        st.floats(low, most) if column == "fairshare" else st.integers(low, int(most))
    )
    raised: dict[str, Any] = {column: higher}
    assert case.priority(settings, **raised) >= before
    assert case.priority(settings, now=data.draw(st.integers(NOW, 2 * NOW))) >= before
    assert (
        case.priority(settings, nice=data.draw(st.integers(case.job["nice"], NICE_MAX))) <= before
    )
    counts = case.job["tres"]
    assert (
        case.priority(
            settings, tres=counts | {"cpu": data.draw(st.integers(counts["cpu"], U64_MAX))}
        )
        >= before
    )


@given(cases(fitting=True), some_settings(normal), st.data())
def test_larger_jobs_gain_without_favor_small(
    case: Case, settings: MultifactorSettings, data: st.DataObject
) -> None:
    before = case.priority(settings)
    larger = {
        "nodes": data.draw(st.integers(case.job["nodes"], case.to.nodes)),
        "cpus": data.draw(st.integers(max(case.job["cpus"], 1), case.to.cpus))
        if case.job["cpus"]
        else 0,
    }
    after = case.priority(settings, **larger)
    assert after <= before if settings.favour_small else after >= before


@given(
    cases(), some_settings(normal), st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms()
)
def test_order_of_queue_changes_no_priority(
    case: Case, settings: MultifactorSettings, shares: list[float], random: Random
) -> None:
    order = list(range(len(shares)))
    random.shuffle(order)

    def reckoned(fairshare: list[float]) -> list[int]:
        jobs = pending(case.to, len(fairshare), **(case.job | {"fairshare": fairshare}))
        return [int(priority) for priority in priorities(jobs, case.to, settings, NOW)]

    result = reckoned(shares)
    assert reckoned([shares[row] for row in order]) == [result[row] for row in order]
