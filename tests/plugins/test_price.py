"""Prices and remedies in Lua: they equal the bank's to the SU-minute."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbank.bank.pricing import bill, longest_paid
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster
from fairbank.core.tres import BillingRule, parse_counts
from fairbank.core.units import show_shortfall, show_su
from fairbank.slurm.policy_file import PolicyPartition, SubmissionPolicy, render
from tests.plugins.interpreter import Lua
from tests.plugins.policies import CPU, GPU, GPU_T4, LONG, SITE_POLICY, places

# The jobs of tests/slurm/test_jobs.py, with the billing that Slurm computes, and those of HADM.
EXAMPLES = [
    (CPU, "cpu=1,mem=64G,node=1", 60, "normal"),
    (CPU, "cpu=32,mem=1G,node=1", 60, "normal"),
    (CPU, "cpu=4,mem=2G,node=1", 7, "high"),
    (CPU, "cpu=1,mem=1000,node=1", 1, "low"),
    (GPU, "cpu=16,mem=64G,gres/gpu=2,node=1", 30, "normal"),
    (GPU, "cpu=8,mem=160G,gres/gpu=1,node=1", 10_080, "high"),
    (GPU_T4, "cpu=1,mem=1G,node=1", 1, "low"),
    (GPU_T4, "cpu=16,mem=96G,gres/gpu=1,node=2", 59, "normal"),
    (LONG, "cpu=64,mem=1T", 525_600, "high"),
]


def cluster_of(policy: SubmissionPolicy) -> Cluster:
    return Cluster(
        "lab",
        {place.partition.name: place.partition for place in policy.partitions},
        policy.qos_factors,
    )


def arguments(
    lua: Lua,
    policy: SubmissionPolicy,
    place: PolicyPartition,
    counts: Mapping[str, Fraction],
    qos: str,
    minutes: int,
) -> Any:
    """Return the arguments of Lua's functions."""
    table = lua.module("policy_file").parse(render(policy))
    lua_counts = lua.table(**{name: int(count) for name, count in counts.items()})
    return table, table.partitions[place.partition.name], lua_counts, qos, minutes


@pytest.mark.parametrize(("place", "counts", "minutes", "qos"), EXAMPLES)
def test_price_is_that_of_the_bank(
    lua: Lua, place: PolicyPartition, counts: str, minutes: int, qos: str
) -> None:
    requested = parse_counts(counts)
    expected = bill(
        JobRequest("lab", place.partition.name, requested, minutes * 60, qos),
        cluster_of(SITE_POLICY),
    ).amount
    assert (
        lua.module("price").amount(*arguments(lua, SITE_POLICY, place, requested, qos, minutes))
        == expected
    )


# Slurm always counts processors and nodes, and no memory would mean all memory of a node.
_count = st.integers(1, 10**6).map(Fraction)
_counts = st.fixed_dictionaries(
    {"cpu": _count, "node": _count},
    optional=dict.fromkeys(["mem", "gres/gpu", "gres/gpu:a100"], _count),
)


@given(
    place=places,
    counts=_counts,
    minutes=st.integers(1, 20_000),
    adding=st.sampled_from(BillingRule),
    qos=st.sampled_from(["high", "low", "x"]),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_price_is_that_of_the_bank(
    lua: Lua,
    place: PolicyPartition,
    counts: dict[str, Fraction],
    minutes: int,
    adding: BillingRule,
    qos: str,
) -> None:
    place = msgspec.structs.replace(
        place, partition=msgspec.structs.replace(place.partition, billing_rule=adding)
    )
    policy = msgspec.structs.replace(
        SITE_POLICY, projects=(), balances=(), short_terms=(), partitions=(place,)
    )
    expected = bill(
        JobRequest("lab", place.partition.name, counts, minutes * 60, qos), cluster_of(policy)
    ).amount
    if expected < 2**53:
        assert (
            lua.module("price").amount(*arguments(lua, policy, place, counts, qos, minutes))
            == expected
        )


@pytest.mark.parametrize(("place", "counts", "minutes", "qos"), EXAMPLES)
@pytest.mark.parametrize(
    "share", [Fraction(0), Fraction(1, 100), Fraction(1, 3), Fraction(99, 100)]
)
def test_remedies_fit_and_longer_limits_do_not(
    lua: Lua, place: PolicyPartition, counts: str, minutes: int, qos: str, share: Fraction
) -> None:
    price, requested = lua.module("price"), parse_counts(counts)
    full = bill(
        JobRequest("lab", place.partition.name, requested, minutes * 60, qos),
        cluster_of(SITE_POLICY),
    )
    available = int(full.amount * share)
    job = arguments(lua, SITE_POLICY, place, requested, qos, minutes)
    assert price.longest_limit(*job, available) == min(
        longest_paid(full.billing * full.factor, available) // 60, minutes - 1 or 0
    )
    reduced = price.reduced_counts(*job, available)
    if reduced is not None:
        smaller = {**requested, **{name: Fraction(int(n)) for name, n in reduced.items()}}
        assert all(0 < smaller[name] < requested[name] for name in dict(reduced))
        assert (
            bill(
                JobRequest("lab", place.partition.name, smaller, minutes * 60, qos),
                cluster_of(SITE_POLICY),
            ).amount
            <= available
        )


@pytest.mark.parametrize("minutes", [0, 1, 25, 59, 60, 90, -90, -25, 3600, 7_200_000, 10**13 + 1])
def test_su_has_the_format_of_the_bank(lua: Lua, minutes: int) -> None:
    assert lua.module("text").su(minutes) == show_su(minutes)


@pytest.mark.parametrize(
    ("price", "available"),
    [
        (46_080, 37_789),
        (61, 0),
        (61, 59),
        (25, 24),
        (90, -25),
        (60, 0),
        (10**12 + 1, 10**12 - 1),
        (1, 1),
        (1, 2),
    ],
)
def test_shortfall_is_that_of_the_bank(lua: Lua, price: int, available: int) -> None:
    assert lua.module("text").shortfall(price, available) == show_shortfall(price, available)


@given(price=st.integers(0, 10**12), available=st.integers(-(10**12), 10**12))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_shortfall_is_that_of_the_bank(lua: Lua, price: int, available: int) -> None:
    assert lua.module("text").shortfall(price, available) == show_shortfall(price, available)
